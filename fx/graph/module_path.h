#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fx {

/// A dotted attribute path ("encoder.layer1.weight"), split once, read live from any root module.
class ModulePath {
 public:
  explicit ModulePath(std::string_view path);

  const std::string& str() const noexcept { return path_; }
  /// The parameter or buffer there, or null. O(atoms).
  const at::Tensor* find_tensor(const torch::nn::Module& root) const;
  /// The submodule there, or null. O(atoms).
  const std::shared_ptr<torch::nn::Module>* find_module(const torch::nn::Module& root) const;

  /// "Node referenced nonexistent target a.b: 'Linear' object has no attribute 'b'", up to the
  /// failing atom. @throws RunError kMissingAttr
  [[noreturn]] void throw_missing(const torch::nn::Module& root) const;

 private:
  std::string path_;
  std::vector<std::string> atoms_;
};

}  // namespace fx
