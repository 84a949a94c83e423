#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fx/capture/tracer.h"
#include "fx/ops/value.h"

namespace fx {

/// A tracer that also runs what it records, on tensors without data
/// (torch.fx.experimental.meta_tracer.MetaTracer): nodes get the tensor as meta()["val"], and a
/// program may ask traced tensors for their shape, strides and dtype and branch by them.
///
///     MetaTracer tracer({{"x", torch::empty({8, 3}, torch::kMeta)}});
///     auto gm = symbolic_trace(tracer, net);
///
/// The graph holds for inputs for which these questions have the same answers. Values are still not
/// to be had: item(), data_ptr(). Operators and modules without an implementation for such tensors
/// run on zeros instead, modules as copies, which costs what they cost. Where nothing is known of
/// an input, nothing is known of what comes of it, and asking is refused as in any other trace.
class MetaTracer : public Tracer {
 public:
  /// @param inputs shape, strides and dtype of inputs by name; their data is not read.
  explicit MetaTracer(std::map<std::string, at::Tensor> inputs) : inputs_(std::move(inputs)) {}

  Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                    std::string_view type) override;
  Argument create_tensor_arg(const at::Tensor& tensor) override;
  void trace_module(const torch::nn::Module& module, std::string_view path, Node& node) override;
  const at::Tensor* known_tensor(const Node& node) const override;

 private:
  /// The arguments of a node as values, if all of them are known.
  struct Inputs {
    Values args;
    KwValues kwargs;
    bool known = false;
  };
  Inputs inputs_of(const Node& node) const;
  void learn(Node& node, Value value);

  std::map<std::string, at::Tensor> inputs_;
  std::unordered_map<const Node*, Value> values_;  // on the meta device; of this trace and others
};

}  // namespace fx
