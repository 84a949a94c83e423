#include "fx/graph/module_path.h"

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/module_access.h"
#include "fx/graph/module_types.h"

namespace fx {

ModulePath::ModulePath(std::string_view path) : path_(path) {
  for (std::string_view rest = path;;) {
    const auto dot = rest.find('.');
    atoms_.emplace_back(rest.substr(0, dot));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
}

const at::Tensor* ModulePath::find_tensor(const torch::nn::Module& root) const {
  const torch::nn::Module* at = &root;
  for (std::size_t i = 0; i + 1 < atoms_.size(); ++i) {
    const auto* child = detail::children(*at).find(atoms_[i]);
    if (!child || !*child) return nullptr;
    at = child->get();
  }
  if (const at::Tensor* parameter = detail::parameters(*at).find(atoms_.back())) return parameter;
  return detail::buffers(*at).find(atoms_.back());
}

const std::shared_ptr<torch::nn::Module>* ModulePath::find_module(
    const torch::nn::Module& root) const {
  const torch::nn::Module* at = &root;
  const std::shared_ptr<torch::nn::Module>* child = nullptr;
  for (const std::string& atom : atoms_) {
    child = detail::children(*at).find(atom);
    if (!child || !*child) return nullptr;
    at = child->get();
  }
  return child;
}

void ModulePath::throw_missing(const torch::nn::Module& root) const {
  const torch::nn::Module* at = &root;
  std::string seen;
  for (std::size_t i = 0; i < atoms_.size(); ++i) {
    seen += (i ? "." : "") + atoms_[i];
    const auto* child = detail::children(*at).find(atoms_[i]);
    if (i + 1 < atoms_.size() && child && *child) {
      at = child->get();
      continue;
    }
    throw RunError(ErrorCode::kMissingAttr, "Node referenced nonexistent target " + seen + ": " +
                                                str_repr(module_type_name(*at)) +
                                                " object has no attribute " + str_repr(atoms_[i]));
  }
  FX_ASSERT(false, "a path has atoms");
}

}  // namespace fx
