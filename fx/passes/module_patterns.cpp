#include "fx/passes/module_patterns.h"

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/passes/attribute_uses.h"
#include "fx/passes/tools_common.h"

namespace fx {

bool matches_module_pattern(const GraphModule& module, const std::vector<std::string_view>& pattern,
                            const Node& node) {
  const Node* current = &node;
  for (auto wanted = pattern.rbegin(); wanted != pattern.rend(); ++wanted) {
    if (!current || current->op() != Opcode::kCallModule ||
        get_node_target(module, *current) != *wanted)
      return false;
    current = current->num_args() > 0 ? current->args()[0].node_or_null() : nullptr;
  }
  return !pattern.empty();
}

void replace_node_module(GraphModule& module, Node& node,
                         std::shared_ptr<torch::nn::Module> new_module) {
  const std::string path = node.target().str();
  if (node.op() != Opcode::kCallModule || !module.find_submodule(path))
    throw GraphError(ErrorCode::kMissingAttribute,
                     "node " + str_repr(node.name()) + " calls no module");
  if (is_own_attribute(module, path)) return module.set_submodule(path, std::move(new_module));
  std::string own = flat_path(path);
  if (module.attr_kind(own) != GraphOwner::AttrKind::kMissing)
    own = module.fresh_attribute(own + "_");
  module.set_submodule(own, std::move(new_module));
  node.set_target(own);
}

std::shared_ptr<GraphModule> lift_subgraph_as_module(const GraphModule& module,
                                                     std::shared_ptr<Graph> subgraph,
                                                     std::string class_name) {
  return std::make_shared<GraphModule>(module, std::move(subgraph), std::move(class_name));
}

}  // namespace fx
