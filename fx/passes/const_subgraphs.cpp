#include "fx/passes/const_subgraphs.h"

#include "fx/base/error.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/module_access.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/constant_nodes.h"
#include "fx/passes/inline_module.h"

namespace fx {

class ConstSplitter {
 public:
  ConstSplitter(const GraphModule& module, const SplitConstOptions& options)
      : module_(module),
        graph_(module.graph()),
        options_(options),
        rules_{.fold_trainable = options.fold_trainable,
               .fold_outputs = options.fold_outputs,
               .skip = options.skip_folding_node_fn} {}

  std::shared_ptr<FoldedGraphModule> split() {
    find_constants();
    std::shared_ptr<FoldedGraphModule> folded(new FoldedGraphModule(module_.class_name()));
    folded->device_ = options_.device_for_folded_attrs;
    make_const_part(*folded);
    make_main_part(*folded);
    return folded;
  }

 private:
  void find_constants() {
    const ConstantNodes rules(module_, rules_);
    is_constant_.resize(graph_.id_bound());
    for (const Node& node : graph_.nodes()) {
      bool is_constant = rules.may_fold(node) && !rules.is_returned(node);
      for (const Node* input : node.all_input_nodes())
        is_constant = is_constant && is_constant_[input->id()];
      is_constant_[node.id()] = is_constant;
    }
    for (const Node& node : graph_.nodes()) {
      if (!is_constant_[node.id()] || node.op() == Opcode::kGetAttr) continue;
      for (const Node* user : node.users())
        if (!is_constant_[user->id()]) {
          results_.push_back(&node);
          break;
        }
    }
  }

  void make_const_part(FoldedGraphModule& folded) const {
    if (results_.empty()) return;
    auto graph = std::make_shared<Graph>();
    ValueMap map;
    // What the results need, and no more.
    std::vector<bool> is_needed(graph_.id_bound());
    for (const Node* node : results_) is_needed[node->id()] = true;
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (is_needed[it->id()])
        for (const Node* input : it->all_input_nodes()) is_needed[input->id()] = true;
    for (const Node& node : graph_.nodes())
      if (is_needed[node.id()])
        map.emplace(&node, graph->node_copy(node, [&](Node& input) { return map.at(&input); }));
    std::vector<Argument> values;
    for (const Node* node : results_) values.push_back(map.at(node));
    graph->output(Argument::tuple(std::move(values)));
    folded.const_subgraph_module_ =
        std::make_shared<GraphModule>(module_, std::move(graph), "const_subgraph_module");
  }

  void make_main_part(FoldedGraphModule& folded) const {
    // Owned by nobody while it is made, since the folded attributes are not there yet.
    auto graph = std::make_shared<Graph>();
    ValueMap map;
    std::vector<bool> is_result(graph_.id_bound());
    for (const Node* node : results_) is_result[node->id()] = true;
    std::size_t count = 0;
    for (const Node& node : graph_.nodes()) {
      if (is_result[node.id()]) {
        const std::string path = get_unique_attr_name_in_module(
            module_, "_FX_CONST_FOLDED_ATTRS_" + std::to_string(count++));
        Node& read = graph->create_node(Opcode::kGetAttr, Target::string(path), {}, {}, node.name(),
                                        node.type());
        read.meta() = node.meta();
        map.emplace(&node, read);
        folded.folded_attrs_.push_back(path);
        continue;
      }
      if (is_constant_[node.id()] && !is_used_outside(node)) continue;
      if (node.op() == Opcode::kGetAttr || node.op() == Opcode::kCallModule)
        folded.share_attribute(module_, node.target().str(), &node);
      map.emplace(&node, graph->node_copy(node, [&](Node& input) { return map.at(&input); }));
    }
    folded.set_graph(std::move(graph));
    folded.set_specs(module_.in_spec(), module_.out_spec());
    folded.set_input_guards(module_.input_guards());
    folded.set_mutations(module_.mutations());
    folded.meta() = module_.meta();
    // The flag alone: submodules are shared with the original.
    detail::training(folded) = module_.is_training();
  }

  // An attribute that what stays reads too, or dead code that was there before.
  bool is_used_outside(const Node& node) const {
    if (node.op() != Opcode::kGetAttr) return false;
    if (node.num_users() == 0) return true;
    for (const Node* user : node.users())
      if (!is_constant_[user->id()]) return true;
    return false;
  }

  const GraphModule& module_;
  const Graph& graph_;
  const SplitConstOptions& options_;
  const ConstantRules rules_;
  std::vector<bool> is_constant_;     // by node id
  std::vector<const Node*> results_;  // constants that others use
};

void FoldedGraphModule::run_folding() {
  if (!const_subgraph_module_) return;
  if (has_folding_been_run_)
    throw PassError(ErrorCode::kPassFailed, "Folding has already been run");
  const Values results = elements(const_subgraph_module_->forward({}));
  FX_ASSERT(results.size() == folded_attrs_.size(), "one attribute for each result");
  has_folding_been_run_ = true;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Target path = Target::string(folded_attrs_[i]);
    if (results[i].isTensor()) {
      at::Tensor tensor = results[i].toTensor().detach();
      tensor = device_ ? tensor.to(*device_, tensor.scalar_type(), false, /*copy=*/true)
                       : tensor.clone();
      const bool requires_grad = results[i].toTensor().requires_grad();
      set_parameter(folded_attrs_[i], tensor.set_requires_grad(requires_grad));
      for (Node* node : graph().find_nodes(Opcode::kGetAttr, path))
        set_tensor_meta(*node, NestedTensorMeta(Value(tensor)));
      continue;
    }
    for (Node* node : graph().find_nodes(Opcode::kGetAttr, path)) {
      std::size_t item = 0;
      const auto guard = graph().inserting_before(*node);
      const Argument literal = argument_of(results[i], [&](const Value& value) {
        const std::string own =
            get_unique_attr_name_in_module(*this, folded_attrs_[i] + "_" + std::to_string(item++));
        set_parameter(own, value.toTensor().detach().clone());
        return Argument(graph().get_attr(own));
      });
      for (Node* user : node->users().to_vector()) user->replace_input_with(*node, literal);
      graph().erase_node(*node);
    }
  }
  recompile();
}

Value FoldedGraphModule::forward(Values inputs, KwValues kwargs) {
  if (!has_folding_been_run_) run_folding();
  return GraphModule::forward(std::move(inputs), std::move(kwargs));
}

std::shared_ptr<FoldedGraphModule> split_const_subgraphs(const GraphModule& module,
                                                         const SplitConstOptions& options) {
  return ConstSplitter(module, options).split();
}

}  // namespace fx
