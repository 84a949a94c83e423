#include "fx/graph/module_copies.h"

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_access.h"
#include "fx/graph/module_types.h"

namespace fx::detail {

std::shared_ptr<GraphModule> ModuleCopies::of(const GraphModule& module) {
  return module.copy_with(*this);
}

std::shared_ptr<torch::nn::Module> ModuleCopies::of(const torch::nn::Module& module,
                                                    const std::string& name) {
  if (auto found = modules_.find(&module); found != modules_.end()) return found->second;
  std::shared_ptr<torch::nn::Module> made;
  if (const auto* graph_module = dynamic_cast<const GraphModule*>(&module)) {
    made = of(*graph_module);
  } else if (is_plain(module)) {
    made = std::make_shared<torch::nn::Module>();
    copy_members(module, *made);
  } else {
    try {
      made = module.clone(device_);
    } catch (const c10::Error&) {
      throw GraphError(ErrorCode::kNotCopyable, "the submodule " + str_repr(name) + " of class " +
                                                    module_type_name(module) +
                                                    " cannot be copied: it has no clone()");
    }
    adopt(module, *made);
  }
  training(*made) = module.is_training();
  modules_.emplace(&module, made);
  return made;
}

void ModuleCopies::copy_members(const torch::nn::Module& from, torch::nn::Module& to) {
  for (const auto& item : parameters(from)) parameters(to).insert(item.key(), of(item.value()));
  for (const auto& item : buffers(from)) buffers(to).insert(item.key(), of(item.value()));
  for (const auto& item : children(from))
    children(to).insert(item.key(), item.value() ? of(*item.value(), item.key()) : nullptr);
}

void ModuleCopies::adopt(const torch::nn::Module& from, torch::nn::Module& to) {
  auto adopt_all = [&](const TensorDict& originals, TensorDict& copies) {
    for (auto& item : copies)
      if (const at::Tensor* original = originals.find(item.key()))
        tensors_.adopt(*original, item.value());
  };
  adopt_all(parameters(from), parameters(to));
  adopt_all(buffers(from), buffers(to));
  for (auto& item : children(to)) {
    const std::shared_ptr<torch::nn::Module>* original = children(from).find(item.key());
    if (original && *original && item.value()) adopt(**original, *item.value());
  }
}

}  // namespace fx::detail
