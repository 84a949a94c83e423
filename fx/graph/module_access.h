#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

namespace fx::detail {

/// torch::nn::Module offers its tables only as copies, O(entries) a lookup, and cannot replace an
/// entry. Explicit instantiation may name private members ([temp.explicit]/12), so these give
/// direct access; a renamed member in another LibTorch is a compile error here and nowhere else.
template <typename Tag, auto kMember>
struct PrivateMember {
  friend auto& private_member(Tag, torch::nn::Module& module) { return module.*kMember; }
};

struct ParametersTag {};
struct BuffersTag {};
struct ChildrenTag {};
struct TrainingTag {};
auto& private_member(ParametersTag, torch::nn::Module& module);
auto& private_member(BuffersTag, torch::nn::Module& module);
auto& private_member(ChildrenTag, torch::nn::Module& module);
auto& private_member(TrainingTag, torch::nn::Module& module);
template struct PrivateMember<ParametersTag, &torch::nn::Module::parameters_>;
template struct PrivateMember<BuffersTag, &torch::nn::Module::buffers_>;
template struct PrivateMember<ChildrenTag, &torch::nn::Module::children_>;
template struct PrivateMember<TrainingTag, &torch::nn::Module::is_training_>;

using TensorDict = torch::OrderedDict<std::string, at::Tensor>;
using ModuleDict = torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>;

inline TensorDict& parameters(torch::nn::Module& module) {
  return private_member(ParametersTag(), module);
}
inline TensorDict& buffers(torch::nn::Module& module) {
  return private_member(BuffersTag(), module);
}
inline ModuleDict& children(torch::nn::Module& module) {
  return private_member(ChildrenTag(), module);
}
inline const TensorDict& parameters(const torch::nn::Module& module) {
  return parameters(const_cast<torch::nn::Module&>(module));
}
inline const TensorDict& buffers(const torch::nn::Module& module) {
  return buffers(const_cast<torch::nn::Module&>(module));
}
inline const ModuleDict& children(const torch::nn::Module& module) {
  return children(const_cast<torch::nn::Module&>(module));
}

/// The flag of this module alone; train() also sets those of its children.
inline bool& training(torch::nn::Module& module) { return private_member(TrainingTag(), module); }

/// A plain container, made to hold what is below it, as opposed to a module with behaviour.
inline bool is_plain(const torch::nn::Module& module) {
  return typeid(module) == typeid(torch::nn::Module);
}

/// "a.b" for "a" and "b", "b" for "" and "b".
inline std::string join_path(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}

/// Inserts or replaces an entry, keeping its place.
template <typename T>
void assign(torch::OrderedDict<std::string, T>& dict, const std::string& key, T value) {
  if (T* found = dict.find(key))
    *found = std::move(value);
  else
    dict.insert(key, std::move(value));
}

}  // namespace fx::detail
