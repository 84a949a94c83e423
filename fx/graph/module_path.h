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
  /// The path up to the first atom that does not exist; the whole path when all do.
  std::string missing_part(const torch::nn::Module& root) const;

 private:
  std::string path_;
  std::vector<std::string> atoms_;
};

/// "Node referenced nonexistent target a.b", up to the failing atom.
/// @throws RunError kMissingAttr
[[noreturn]] void throw_missing_attr(const ModulePath& path, const torch::nn::Module& root);

}  // namespace fx
