#include "fx/capture/module_scopes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/capture/tracer.h"
#include "fx/graph/module_types.h"

namespace fx {
namespace {

std::string parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return std::string(dot == std::string_view::npos ? "" : path.substr(0, dot));
}

bool is_inside(std::string_view path, std::string_view outer) {
  return outer.empty() || path == outer || (path.starts_with(outer) && path[outer.size()] == '.');
}

std::string common_of(std::string a, std::string_view b) {
  while (!is_inside(b, a)) a = parent_of(a);
  return a;
}

struct Modules {
  std::unordered_map<std::string, const torch::nn::Module*> by_path;

  explicit Modules(const torch::nn::Module& root) {
    for (const auto& item : root.named_modules("", /*include_self=*/false))
      by_path.emplace(item.key(), item.value().get());
  }

  bool is_leaf(const std::string& path) const {
    const auto found = by_path.find(path);
    const ModuleType* type = found == by_path.end() ? nullptr : find_module_type(*found->second);
    return type && type->is_leaf;
  }

  ModuleStack stack(const std::string& path) const {
    ModuleStack out;
    for (std::string at = path; !at.empty(); at = parent_of(at))
      if (const auto found = by_path.find(at); found != by_path.end())
        out.emplace_back(at, module_type_name(*found->second));
    std::ranges::reverse(out);
    return out;
  }
};

using Scopes = std::vector<std::optional<std::string>>;

// Scopes of nodes that read parameters or buffers, or take results of such a node apart.
Scopes owned_scopes(const std::vector<Node*>& nodes, const Modules& modules) {
  Scopes out(nodes.size());
  std::unordered_map<const Node*, std::string> made_of_parameters, scopes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    std::optional<std::string>& scope = out[i];
    if (node.op() == Opcode::kGetAttr) {
      std::string owner = parent_of(node.target().str());
      if (!owner.empty() && !modules.by_path.contains(owner)) continue;
      if (!node.target().str().starts_with("_tensor_constant"))
        made_of_parameters.emplace(&node, owner), scope = std::move(owner);
    } else if (!node.is_placeholder() && !node.is_output()) {
      bool only_parameters = true;
      const auto inputs = node.all_input_nodes();
      for (const Node* input : inputs) {
        const auto found = made_of_parameters.find(input);
        only_parameters &= found != made_of_parameters.end();
        if (found == made_of_parameters.end()) continue;
        scope = scope ? common_of(*scope, found->second) : found->second;
      }
      if (scope && only_parameters) made_of_parameters.emplace(&node, *scope);
      if (const auto found = inputs.empty() ? scopes.end() : scopes.find(inputs[0]);
          node.calls("operator.getitem") && found != scopes.end())
        scope = found->second;
    }
    if (scope) scopes.emplace(&node, *scope);
  }
  return out;
}

}  // namespace

void set_module_scopes(Graph& graph, const torch::nn::Module& root,
                       const std::set<std::string>& called) {
  const Modules modules(root);
  if (modules.by_path.empty()) return;
  std::vector<Node*> nodes;
  for (Node& node : graph.nodes()) nodes.push_back(&node);
  const Scopes owned = owned_scopes(nodes, modules);
  Scopes following(nodes.size() + 1);
  for (std::size_t i = nodes.size(); i-- > 0;)
    following[i] = owned[i] ? owned[i] : following[i + 1];
  std::optional<std::string> before;
  std::unordered_map<std::string, ModuleStack> stacks;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (owned[i]) before = owned[i];
    if (nodes[i]->is_placeholder() || nodes[i]->is_output()) continue;
    const auto* recorded = nodes[i]->meta().get<ModuleStack>("nn_module_stack");
    std::string scope;
    if (owned[i]) {
      scope = *owned[i];
    } else if (before && following[i] && !recorded) {
      scope = common_of(*before, *following[i]);
      // Between two calls of one layer.
      if (modules.is_leaf(scope)) scope = parent_of(scope);
    }
    // What belongs to a module that was called in a scope was recorded there.
    if (nodes[i]->op() != Opcode::kGetAttr)
      while (called.contains(scope) && !(recorded && scope == recorded->back().first))
        scope = parent_of(scope);
    if (recorded && !is_inside(scope, recorded->back().first)) continue;
    if (scope.empty()) continue;
    auto [found, is_new] = stacks.try_emplace(scope);
    if (is_new) found->second = modules.stack(scope);
    nodes[i]->meta().set("nn_module_stack", found->second);
  }
}

at::Tensor detail::run_in_scopes(torch::nn::SequentialImpl& modules, at::Tensor value) {
  for (auto& child : modules) {
    const ModuleScope scope(*child.ptr());
    value = child.forward<at::Tensor>(std::move(value));
  }
  return value;
}

void name_by_module(Graph& graph) {
  for (Node& node : graph.nodes()) {
    const auto* stack = node.meta().get<ModuleStack>("nn_module_stack");
    if (!stack || stack->empty() || node.op() == Opcode::kGetAttr) continue;
    std::string name = stack->back().first + "_";
    std::ranges::replace(name, '.', '_');
    std::string_view target = node.target().str();
    target.remove_prefix(target.rfind(':') == std::string_view::npos ? 0 : target.rfind(':') + 1);
    target = target.substr(0, target.find('.'));
    if (node.calls("operator.getitem")) target = "getitem";
    node.rename(name + std::string(target));
  }
}

}  // namespace fx
