#pragma once

// Internal: builds a graph from the schema.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/base/error.h"
#include "fx/graph/graph_module.h"
#include "fx/io/argument_import.h"
#include "fx/io/operator_policy.h"
#include "fx/io/value_meta.h"
#include "fx/io/weights.h"

namespace fx::io {

/// Builds a GraphModule from a program and its tensors, in one pass over the program:
///
/// - placeholders are the user's inputs only, in flattened order;
/// - parameters, buffers and constants become get_attr nodes behind them, one for each that is
///   used, and attributes of the module under their qualified names;
/// - nodes become call_function of "aten::..." overloads and "operator...." built-ins, arguments as
///   the file has them; several results become operator.getitem nodes;
/// - graphs of higher-order operators become GraphModules below the one that calls them, each read
///   by a get_attr node; those that only run without gradients (torch.no_grad) or without autocast
///   are inlined, the former's results detached;
/// - what the signature lists as mutated is written by aten::copy_ nodes at the end;
/// - the output is the tuple of the user's outputs; in_spec and out_spec restore the structure.
///
/// Node meta: "val" (ValueMetaPtr), "stack_trace", "nn_module_stack", "torch_fn".
class GraphImporter {
 public:
  /// `label` starts error messages.
  GraphImporter(const schema::ExportedProgram& program, std::string label,
                const OperatorPolicy& policy);

  /// @throws ImportError kBadProgram, kBadTreespec, kBadExpression, kBadWeight; kUnsupported and
  ///   kForbiddenOperator listing everything that stands in the way. O(nodes + arguments).
  std::shared_ptr<GraphModule> build(std::vector<Weight> weights, std::vector<Weight> constants,
                                     const std::string& class_name);

 private:
  using Metas = std::unordered_map<std::string_view, ValueMetaPtr>;

  void index_metas(const schema::Graph& graph);
  void expect_outputs(const std::vector<schema::Argument>& outputs);
  void register_tensors(std::vector<Weight> weights, std::vector<Weight> constants);
  void import_inputs();
  void import_user_input(const schema::InputSpec& spec, const schema::Argument& input,
                         const std::string& where);
  void import_attribute(const schema::InputSpec& spec, const std::string& where);
  void check_constant_inputs();
  void import_nodes(const schema::Graph& graph, const std::string& prefix);
  void import_node(const schema::Node& node, const std::string& where);
  void import_higher_order(const schema::Node& node, const std::string& where);
  void inline_graph(const schema::Node& node, std::size_t graph_index, bool detach,
                    const std::string& where);
  Node& import_subgraph(const schema::GraphArgument& argument, const std::string& where);
  std::shared_ptr<GraphModule> build_subgraph(const schema::GraphArgument& argument,
                                              const std::string& where);
  void check_branches(const schema::Graph& first, const schema::Graph& second,
                      const std::string& where);
  void import_operator(const schema::Node& node, const std::string& name, const std::string& where);
  void import_builtin(const schema::Node& node, const std::string& name, const std::string& where);
  void import_unsupported(const schema::Node& node, const std::string& where);
  void split_arguments(const schema::Node& node, const Overload& overload, const std::string& where,
                       Args& args, Kwargs& kwargs);
  void import_results(const schema::Node& node, Node& result, const std::string& where);
  void define_result(const schema::Argument& output, Node& node, const std::string& where);
  void define_elements(const std::vector<schema::Argument>& outputs, Node& sequence,
                       const std::string& where);
  void import_outputs();
  void import_mutation(const schema::OutputSpec& spec, const std::string& where);
  void drop_unused();
  void lint(const std::string& where) const;
  void set_specs();

  /// What belongs to the graph that is being built; a nested graph has its own.
  struct Scope {
    std::shared_ptr<GraphModule> module;
    Graph* graph;
    ValueTable values;
    Metas metas;
    std::vector<Node*> droppable;
  };
  /// Exchanges it with the current one.
  void swap_scope(Scope& scope);

  const ValueMetaPtr& meta_of(const std::string& value_name) const;
  void set_meta(Node& node, const std::string& value_name) {
    node.meta().set("val", meta_of(value_name));
  }
  Meta node_meta(const schema::Node& node) const;
  [[noreturn]] void fail(const std::string& what, ErrorCode code = ErrorCode::kBadProgram) const;

  const schema::ExportedProgram& program_;
  const schema::Graph& graph_spec_;
  std::string label_;
  const OperatorPolicy& policy_;
  std::shared_ptr<GraphModule> module_;
  Graph* graph_ = nullptr;
  ValueTable values_;
  Problems problems_;
  ValueMetaReader meta_reader_;
  Metas metas_;
  struct ConstantInput {
    Node* node;
    Argument value;
    std::string name;
  };
  std::vector<ConstantInput> constant_inputs_;
  std::unordered_map<std::string, at::Tensor> tensors_;  // by qualified name
  std::unordered_map<std::string, Node*> attributes_;    // get_attr nodes by qualified name
  std::vector<std::string> mutations_;                   // what the copies at the end write
  std::vector<Node*> droppable_;                         // made in advance, dropped when unused
  std::size_t num_autocasts_ = 0;                        // that are open around the current graph
  std::size_t num_user_inputs_ = 0;
  std::size_t num_user_outputs_ = 0;
};

}  // namespace fx::io
