#include "fx/passes/replace_modules.h"

#include <unordered_map>

#include "fx/passes/attribute_uses.h"

namespace fx {

PassResult replace_modules(GraphModule& module, const ModuleReplacement& replacement) {
  PassResult result;
  std::unordered_map<const torch::nn::Module*, std::shared_ptr<torch::nn::Module>> made;
  std::unordered_map<std::string, std::string> moved;  // old paths to new ones
  // The old modules must outlive the search: another might get the address of a dead one.
  std::vector<std::shared_ptr<torch::nn::Module>> old_modules;
  for (Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kCallModule) continue;
    const std::string path = node.target().str();
    if (const auto known = moved.find(path); known != moved.end()) {
      if (known->second != path) node.set_target(known->second);
      continue;
    }
    const auto old = module.find_submodule(path);
    if (!old) continue;
    old_modules.push_back(old);
    auto [entry, is_new] = made.try_emplace(old.get());
    if (is_new) {
      entry->second = replacement(*old);
      result.rewrites += entry->second != nullptr;
    }
    if (!entry->second) continue;
    std::string to = path;
    if (!is_own_attribute(module, path)) {
      to = module.fresh_attribute(flat_path(path) + "_");
      node.set_target(to);
    }
    module.set_submodule(to, entry->second);
    moved.emplace(path, to);
  }
  result.changed = result.rewrites > 0;
  return result;
}

}  // namespace fx
