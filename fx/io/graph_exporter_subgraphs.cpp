// The part of GraphExporter that writes graphs which higher-order operators are given.

#include <algorithm>
#include <utility>

#include "fx/base/text.h"
#include "fx/graph/subgraphs.h"
#include "fx/io/graph_exporter.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

/// What a graph that runs over the first dimension of a tensor is given.
ValueMetaPtr row_of(const ValueMetaPtr& meta) {
  if (!meta || meta->sizes.empty()) return nullptr;
  auto row = std::make_shared<ValueMeta>(*meta);
  row->sizes.erase(row->sizes.begin());
  if (!row->strides.empty()) row->strides.erase(row->strides.begin());
  return row;
}

/// Whether what a graph says of an input can be true of the operand.
bool can_be(const ValueMeta& claim, const ValueMeta& operand) {
  if (claim.kind != operand.kind) return false;
  if (claim.kind != ValueMeta::Kind::kTensor) return true;
  if (claim.dtype != operand.dtype || claim.sizes.size() != operand.sizes.size()) return false;
  for (std::size_t i = 0; i < claim.sizes.size(); ++i)
    if (claim.sizes[i].is_known() &&
        !(operand.sizes[i].is_known() && claim.sizes[i].value == operand.sizes[i].value))
      return false;
  return true;
}

}  // namespace

/// What is known of the operands, in the order in which the graphs take them; null for the unknown.
std::vector<ValueMetaPtr> GraphExporter::operand_metas(const Node& call,
                                                       const HigherOrderOp& op) const {
  using Kind = HigherOrderOp::Kind;
  std::vector<ValueMetaPtr> metas;
  auto add = [&](const Argument& operand, bool is_row) {
    const Node* node = operand.node_or_null();
    const ValueMetaPtr meta = node != nullptr ? type_of(*node).meta : nullptr;
    metas.push_back(is_row ? row_of(meta) : meta);
    if (operand.kind() != Argument::Kind::kInt) return;
    auto number = std::make_shared<ValueMeta>();
    number->kind = ValueMeta::Kind::kInt;
    number->number = {operand.to_int(), nullptr};
    metas.back() = std::move(number);
  };
  if (op.num_lists == 0) {
    for (const Argument& operand : call.args().subspan(op.first_operand)) add(operand, false);
    return metas;
  }
  for (std::size_t i = 0; i < op.num_lists; ++i) {
    const bool scans = op.kind == Kind::kAssociativeScan && i == 0;
    const bool are_rows =
        scans || (op.kind == Kind::kScan && i == 1) || (op.kind == Kind::kMap && i == 0);
    const Argument& list = call.args()[op.first_operand + i];
    if (list.kind() != Argument::Kind::kList && list.kind() != Argument::Kind::kTuple) return {};
    for (int times = scans ? 2 : 1; times > 0; --times)
      for (const Argument& operand : list.items()) add(operand, are_rows);
  }
  return metas;
}

schema::GraphArgument GraphExporter::export_subgraph(const Node& call, const HigherOrderOp& op,
                                                     const Node& attribute) {
  const std::string& path = attribute.target().str();
  std::string name = path;
  if (!is_identifier(path)) {
    for (char& c : name)
      if (c == '.') c = '_';
    name = fresh_name(name);
  }
  const auto nested = std::dynamic_pointer_cast<GraphModule>(module_.find_submodule(path));
  // The graph says what its inputs are, as far as that can be true of the operands, else these do.
  const std::shared_ptr<GraphModule> copy = nested->deep_copy();
  if (const auto* ranges = module_.meta().get<RangeConstraints>("range_constraints"))
    copy->meta().set("range_constraints", *ranges);
  const std::vector<Node*> inputs = copy->graph().placeholders();
  const std::vector<ValueMetaPtr> metas = operand_metas(call, op);
  for (std::size_t i = 0; i < std::min(inputs.size(), metas.size()); ++i) {
    const auto* claim = inputs[i]->meta().get<ValueMetaPtr>("val");
    if (metas[i] && !(claim && *claim && can_be(**claim, *metas[i])))
      inputs[i]->meta().set("val", metas[i]);
  }
  const std::string place = where(call) + ", graph " + shown(path);
  Problems problems;
  const ValueTypes types = find_value_types(*copy, {}, problems);
  schema::GraphArgument out{std::move(name), nullptr};
  if (!types.new_symbols.empty())
    problems.add("sizes that its own nodes read from tensors have no form", place);
  GraphExporter exporter(*copy, types, problems, node_meta_);
  if (problems.empty())
    out.graph = std::make_shared<const schema::Graph>(exporter.build_subgraph());
  if (!problems.empty()) problems_.add("a graph that is passed on:" + problems.list(), place);
  return out;
}

schema::Graph GraphExporter::build_subgraph() {
  out_ = &program_.graph_module.graph;
  name_values();
  for (const Node& node : graph_.nodes()) {
    if (node.op() != Opcode::kGetAttr) continue;
    skipped_.insert(&node);
    if (module_.nested_graph(node.target().str()) == nullptr)
      problems_.add("a tensor of its own has no form: pass it on as an operand", where(node));
  }
  for (const Node* input : graph_.placeholders()) {
    skipped_.insert(input);
    const ValueType& type = type_of(*input);
    if (type.kind != ValueType::Kind::kValue) {
      problems_.add("nothing is known of an input", where(*input));
      continue;
    }
    declare(names_.at(input), type.meta);
    out_->inputs.push_back(name_argument(names_.at(input), *type.meta));
  }
  if (!problems_.empty()) return {};
  add_nodes();
  const Argument& result = graph_.output_node().arg(0);
  const bool is_tuple =
      result.kind() == Argument::Kind::kTuple || result.kind() == Argument::Kind::kList;
  out_->is_single_tensor_return = !is_tuple;
  if (is_tuple)
    for (const Argument& item : result.items())
      out_->outputs.push_back(export_argument(item, nullptr, "the output"));
  else
    out_->outputs.push_back(export_argument(result, nullptr, "the output"));
  return std::move(*out_);
}

void GraphExporter::add_higher_order(const Node& node, const HigherOrderOp& op) {
  has_subgraphs_ = true;
  if (const std::string problem = subgraph_problem(node); !problem.empty())
    return problems_.add(shown(op.name) + ": " + problem, where(node));
  schema::Node out;
  out.target = std::string(kHigherOrderPrefix) + std::string(op.name);
  std::size_t num_results = 0;
  bool is_tuple = true;
  for (std::size_t i = 0; i < node.num_args(); ++i) {
    const Argument& argument = node.args()[i];
    schema::NamedArgument input{"", {}, schema::ArgumentKind::kPositional};
    if (op.is_graph(i)) {
      schema::GraphArgument graph = export_subgraph(node, op, argument.node());
      if (graph.graph == nullptr) continue;  // told already
      num_results = graph.graph->outputs.size();
      is_tuple = !graph.graph->is_single_tensor_return;
      input.arg = {std::move(graph)};
    } else {
      input.arg = export_argument(argument, nullptr, where(node));
    }
    out.inputs.push_back(std::move(input));
  }
  if (!problems_.empty()) return;
  add_results(node, num_results, out, is_tuple);
  out.is_hop_single_tensor_return = !is_tuple;
  out.name = std::string(node.name());
  out.metadata = metadata(node);
  out_->nodes.push_back(std::move(out));
}

}  // namespace fx::io
