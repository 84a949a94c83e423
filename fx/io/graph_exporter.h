#pragma once

// Internal: from a graph to the schema of exported programs.

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/argument_import.h"
#include "fx/io/export_schema.h"
#include "fx/io/pt2_origin.h"
#include "fx/io/value_types.h"
#include "fx/ops/higher_order.h"
#include "fx/ops/op_info.h"

namespace fx::io {

/// Why a node is no call of an operator overload, as far as the node alone tells: it calls a
/// module, a method, a torch function, an own function, or an operator without saying which
/// overload. Empty for all others.
std::string not_an_overload(const Node& node);

/// A tensor that a program needs, by qualified name.
struct ExportedTensor {
  std::string name;
  at::Tensor tensor;
  bool is_param = false;
};

/// Builds an exported program from a GraphModule whose calls are operator overloads and arithmetic
/// on numbers. The inverse of GraphImporter:
///
/// - parameters, buffers and constants become inputs in front of the user's, under the names of
///   their get_attr nodes; those that no node reads are kept;
/// - operator.getitem of sequences become names of results;
/// - inputs with a default that the graph only compares are constant inputs;
/// - GraphModules that a higher-order operator is given become graphs of their own, whose inputs
/// are
///   what the operator passes on;
/// - in a graph that changes nothing else, copies into buffers, parameters and inputs right before
///   the output become mutations of the signature; in all others, operators that write stay calls;
/// - structured results become flat ones and an out_spec.
///
/// Everything that has no form goes to `problems`, and the program is of no use then.
class GraphExporter {
 public:
  GraphExporter(const GraphModule& module, const ValueTypes& types, Problems& problems,
                bool node_meta);

  /// @throws ImportError kNotExportable for structures without a form. O(nodes + arguments).
  schema::ExportedProgram build();

  /// What the program's inputs are besides the user's; in the order of the state dict.
  const std::vector<ExportedTensor>& weights() const { return weights_; }
  const std::vector<ExportedTensor>& constants() const { return constants_; }
  /// Whether a call may change its inputs, parameters or buffers.
  bool changes_state() const { return !functional_ || !mutations_.empty(); }
  /// Whether problems would go away if the program were recorded as operators while it runs.
  bool needs_capture() const { return needs_capture_ && !has_subgraphs_; }

 private:
  using ElementNames = std::vector<std::string>;

  // Inputs, outputs, signature.
  void find_constant_inputs();
  void find_mutations();
  void name_values();
  void add_attributes();
  void add_attribute(schema::InputSpec::Kind kind, const std::string& path, at::Tensor tensor,
                     bool persistent);
  void add_user_inputs();
  void add_outputs();
  void add_mutations();
  void add_module_calls();
  void add_ranges();
  schema::Argument constant_value(const Argument& value, const std::string& where);
  TreeSpec flatten_output(const Argument& value, std::vector<Argument>& leaves) const;

  // Nodes (graph_exporter_nodes.cpp).
  void add_nodes();
  void add_node(const Node& node);
  void add_operator(const Node& node, const Overload& overload);
  void add_builtin(const Node& node, const std::string& target);
  void add_results(const Node& node, std::size_t count, schema::Node& out, bool is_tuple = false);
  void add_inputs(const Node& node, const Overload& overload, schema::Node& out);
  schema::Argument result_of(const Node& node, const ValueType& type);
  ElementNames element_names(const Node& sequence, const ValueType& type);
  schema::Map<std::string> metadata(const Node& node) const;
  bool is_number(const Argument& argument) const;

  // Higher-order operators (graph_exporter_subgraphs.cpp).
  schema::Graph build_subgraph();
  void add_higher_order(const Node& node, const HigherOrderOp& op);
  schema::GraphArgument export_subgraph(const Node& call, const HigherOrderOp& op,
                                        const Node& attribute);
  std::vector<ValueMetaPtr> operand_metas(const Node& call, const HigherOrderOp& op) const;

  // Arguments.
  schema::Argument export_argument(const Argument& argument, const ArgRule* rule,
                                   const std::string& where);
  schema::Argument export_list(std::span<const Argument> items, const ArgRule* rule,
                               const std::string& where);
  schema::Argument export_node(const Node& node, const std::string& where);

  // Values.
  const ValueType& type_of(const Node& node) const;
  void declare(const std::string& name, const ValueMetaPtr& meta);
  schema::Argument name_argument(const std::string& name, const ValueMeta& meta) const;
  std::string fresh_name(const std::string& candidate);
  std::string where(const Node& node) const;
  void unknown(const Node& node);
  void not_an_operator(const Node& node, const std::string& what);

  const GraphModule& module_;
  const Graph& graph_;
  const ValueTypes& types_;
  Problems& problems_;
  bool node_meta_;
  Pt2OriginPtr origin_;

  schema::ExportedProgram program_;
  schema::Graph* out_ = nullptr;
  std::vector<ExportedTensor> weights_, constants_;
  std::unordered_map<const Node*, std::string> names_;
  std::unordered_map<const Node*, ElementNames> elements_;   // of nodes that give sequences
  std::unordered_map<std::string, std::string> attributes_;  // names by path
  std::set<std::string, std::less<>> taken_;
  std::unordered_set<std::string> declared_;
  std::unordered_set<const Node*> skipped_;          // have no node of their own
  std::unordered_set<const Node*> constant_inputs_;  // placeholders
  std::vector<const Node*> mutations_;               // copies, in order
  bool functional_ = false;                          // no node writes
  bool needs_capture_ = false;
  bool has_subgraphs_ = false;  // which a recording would lose
};

}  // namespace fx::io
