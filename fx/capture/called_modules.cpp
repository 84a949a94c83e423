#include "fx/capture/called_modules.h"

#include <algorithm>

#include "fx/graph/module_access.h"
#include "fx/graph/module_types.h"

namespace fx {

void CalledModules::add_paths(const torch::nn::Module& module, const std::string& path) {
  paths_of_[&module].push_back(path);
  types_.emplace(path, module_type_name(module));
  for (const auto& child : detail::children(module))
    if (child.value()) add_paths(*child.value(), detail::join_path(path, child.key()));
}

void CalledModules::enter(const torch::nn::Module& module) {
  if (paths_of_.empty()) add_paths(root_, "");
  ModuleStack stack = scopes_.empty() ? ModuleStack() : scopes_.back();
  const auto found = paths_of_.find(&module);
  // The root itself is no part of a path, and a module from elsewhere is part of its caller.
  if (found == paths_of_.end() || found->second[0].empty()) {
    scopes_.push_back(std::move(stack));
    return;
  }
  const std::string around = stack.empty() ? "" : stack.back().first + ".";
  const auto below = std::ranges::find_if(
      found->second, [&](const std::string& path) { return path.starts_with(around); });
  const std::string& path = below == found->second.end() ? found->second[0] : *below;
  // With the modules in between that are called without a scope.
  if (!path.starts_with(around)) stack.clear();
  const std::size_t from = stack.empty() ? 0 : stack.back().first.size() + 1;
  for (std::size_t dot = path.find('.', from);; dot = path.find('.', dot + 1)) {
    const std::string part = path.substr(0, dot);
    stack.emplace_back(part, types_.at(part));
    if (dot == std::string::npos) break;
  }
  paths_.insert(path);
  scopes_.push_back(std::move(stack));
}

const ModuleStack* CalledModules::stack() const {
  return scopes_.empty() || scopes_.back().empty() ? nullptr : &scopes_.back();
}

}  // namespace fx
