#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>

#include <set>
#include <string>

#include "fx/graph/graph.h"

namespace fx {

class Recorder;

/// While it lives, what the capture on this thread records belongs to `module`: the holders of
/// fx::nn make one around each call. Costs one thread-local read where nothing is captured.
class ModuleScope {
 public:
  explicit ModuleScope(const torch::nn::Module& module);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Recorder* recorder_;  // null where nothing is captured
};

namespace detail {
/// Runs a chain of modules that each take and give one tensor, with a scope around each of them.
at::Tensor run_in_scopes(torch::nn::SequentialImpl& modules, at::Tensor value);
}  // namespace detail

/// Says of nodes which modules of `root` they belong to: meta()["nn_module_stack"] (ModuleStack, as
/// Tracer has it). What was recorded in a ModuleScope has it already; it may only become more exact
/// here. Of the rest, by who owns the parameters and buffers that a node reads. What reads none
/// belongs to the innermost module around its neighbours that do: torch::nn tells nobody where a
/// forward begins and ends, so that an activation between two layers is of their parent. Modules
/// that were `called` through a scope have nothing outside of it. O(nodes + modules).
void set_module_scopes(Graph& graph, const torch::nn::Module& root,
                       const std::set<std::string>& called = {});

/// Names nodes with a module stack after it: "%layer1_conv_conv2d".
void name_by_module(Graph& graph);

}  // namespace fx
