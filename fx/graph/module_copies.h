#pragma once

#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fx/graph/tensor_copies.h"

namespace fx {
class GraphModule;
}

namespace fx::detail {

/// The deep copies of a tree of modules: what was one module or one tensor, or shared memory, does
/// so in the copy. Plain containers and GraphModules are copied entry by entry; other modules clone
/// themselves, and their tensors then get the memory of the copies made elsewhere.
class ModuleCopies {
 public:
  explicit ModuleCopies(std::optional<torch::Device> device = std::nullopt)
      : device_(device), tensors_(device) {}

  std::shared_ptr<GraphModule> of(const GraphModule& module);
  at::Tensor of(const at::Tensor& tensor) { return tensors_(tensor); }

  /// Copies parameters, buffers and children of `from` into `to`.
  /// @throws GraphError kNotCopyable for a module without clone().
  void copy_members(const torch::nn::Module& from, torch::nn::Module& to);

 private:
  std::shared_ptr<torch::nn::Module> of(const torch::nn::Module& module, const std::string& name);
  void adopt(const torch::nn::Module& from, torch::nn::Module& to);

  std::optional<torch::Device> device_;
  TensorCopies tensors_;
  std::map<const torch::nn::Module*, std::shared_ptr<torch::nn::Module>> modules_;
};

}  // namespace fx::detail
