#include "fx/passes/attribute_uses.h"

#include <algorithm>

#include "fx/graph/module_access.h"
#include "fx/passes/nested.h"

namespace fx {
namespace {

int find(const std::unordered_map<const void*, int>& counts, const void* key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

int find(const std::unordered_map<std::string, int>& counts, std::string_view key) {
  const auto found = counts.find(std::string(key));
  return found == counts.end() ? 0 : found->second;
}

// Calls fn for "a", "a.b" of "a.b.c" until it returns false.
void for_each_parent(std::string_view path, auto&& fn) {
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1))
    if (!fn(path.substr(0, dot))) return;
}

// Calls fn(holder, name) for each step of the path that there is: module, "a"; its a, "b".
void for_each_place(const GraphModule& module, std::string_view path, auto&& fn) {
  if (module.constants().contains(path)) return;  // reached by the module's own graph alone
  const torch::nn::Module* holder = &module;
  while (holder) {
    const auto dot = path.find('.');
    const std::string name(path.substr(0, dot));
    fn(*holder, name);
    if (dot == std::string_view::npos) return;
    const auto* child = detail::children(*holder).find(name);
    holder = child ? child->get() : nullptr;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

AttributeUses::AttributeUses(const GraphModule& module) : module_(&module) {
  for (const Node& node : module.graph().nodes()) add(node);
}

void AttributeUses::count(const Node& node, int change) {
  if (node.op() != Opcode::kGetAttr && node.op() != Opcode::kCallModule) return;
  const std::string& path = node.target().str();
  exact_[path] += change;
  at_or_below_[path] += change;
  for_each_parent(path, [&](std::string_view parent) {
    at_or_below_[std::string(parent)] += change;
    return true;
  });
  if (const at::Tensor tensor = module_->find_tensor(path); tensor.defined())
    tensors_[tensor.unsafeGetTensorImpl()] += change;
  if (const auto called = module_->find_submodule(path)) {
    modules_[called.get()] += change;
    for (const at::Tensor& tensor : called->parameters())
      tensors_[tensor.unsafeGetTensorImpl()] += change;
    for (const at::Tensor& tensor : called->buffers())
      tensors_[tensor.unsafeGetTensorImpl()] += change;
  }
}

int AttributeUses::of_tensor(const at::Tensor& tensor) const {
  return find(tensors_, tensor.unsafeGetTensorImpl());
}

int AttributeUses::of_module(const torch::nn::Module& module) const {
  return find(modules_, &module);
}

int AttributeUses::at_or_below(std::string_view path) const { return find(at_or_below_, path); }

bool AttributeUses::is_used(std::string_view path) const {
  bool used = at_or_below(path) > 0;
  for_each_parent(path, [&](std::string_view parent) {
    used |= find(exact_, parent) > 0;
    return !used;
  });
  return used;
}

TreeUses::TreeUses(GraphModule& root) {
  for_each_graph_module(root, [&](GraphModule& module) {
    for (const Node& node : module.graph().nodes()) {
      if (node.op() != Opcode::kGetAttr && node.op() != Opcode::kCallModule) continue;
      const std::string& path = node.target().str();
      for_each_place(module, path, [&](const torch::nn::Module& holder, const std::string& name) {
        add(holder, name, module);
      });
      if (const auto called = module.find_submodule(path)) add_all_of(*called, module);
    }
  });
}

void TreeUses::add(const torch::nn::Module& holder, const std::string& name,
                   const GraphModule& user) {
  const auto [place, is_new] = users_[&holder].try_emplace(name, &user);
  if (!is_new && place->second != &user) place->second = nullptr;
}

// A nested graph speaks for itself.
void TreeUses::add_all_of(const torch::nn::Module& called, const GraphModule& user) {
  if (dynamic_cast<const GraphModule*>(&called)) return;
  for (const auto& item : detail::parameters(called)) add(called, item.key(), user);
  for (const auto& item : detail::buffers(called)) add(called, item.key(), user);
  for (const auto& item : detail::children(called)) {
    add(called, item.key(), user);
    if (item.value()) add_all_of(*item.value(), user);
  }
}

bool TreeUses::is_used_by_others(const GraphModule& module, std::string_view path) const {
  bool used = false;
  std::size_t steps_left = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.'));
  for_each_place(module, path, [&](const torch::nn::Module& holder, const std::string& name) {
    if (steps_left-- > 0) return;  // others may use something else below a parent
    const auto names = users_.find(&holder);
    if (names == users_.end()) return;
    const auto place = names->second.find(name);
    used = place != names->second.end() && place->second != &module;
  });
  return used;
}

bool is_own_attribute(const GraphModule& module, std::string_view path) {
  bool own = true;
  for_each_parent(path, [&](std::string_view parent_path) {
    const auto parent = module.find_submodule(parent_path);
    own = !parent || detail::is_plain(*parent);
    return own && parent;
  });
  return own;
}

std::string flat_path(std::string path) {
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

void delete_unused_attribute(GraphModule& module, const AttributeUses& uses, const TreeUses& tree,
                             const std::string& path) {
  if (uses.is_used(path) || !is_own_attribute(module, path)) return;
  if (tree.is_used_by_others(module, path)) return;
  // A layer's container goes as a whole, with what no node ever read (num_batches_tracked).
  const auto dot = path.rfind('.');
  const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
  if (module.attr_kind(path) == GraphOwner::AttrKind::kModule)
    module.delete_submodule(path);
  else if (!parent.empty() && uses.at_or_below(parent) == 0 &&
           !tree.is_used_by_others(module, parent))
    module.delete_submodule(parent);
  else
    module.delete_tensor(path);
}

}  // namespace fx
