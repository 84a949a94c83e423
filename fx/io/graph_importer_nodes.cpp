// The part of GraphImporter that turns the file's nodes into the graph's.

#include <algorithm>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/graph_importer.h"
#include "fx/io/shown.h"
#include "fx/io/symbolic_targets.h"
#include "fx/ops/higher_order.h"

namespace fx::io {
namespace {

constexpr std::size_t kMaxShownValue = 200;

/// The front of a text that may be as long as the file.
std::string cut(std::string text) {
  if (text.size() <= kMaxShownValue) return text;
  std::size_t end = kMaxShownValue;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

constexpr std::string_view kOperatorPrefix = "torch.ops.";

/// "aten::add.Tensor" for "torch.ops.aten.add.Tensor"; nothing if it is no such name.
std::optional<std::string> operator_name(std::string_view target) {
  if (!target.starts_with(kOperatorPrefix)) return std::nullopt;
  std::string_view rest = target.substr(kOperatorPrefix.size());
  std::size_t first = rest.find('.'), second = rest.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  std::string_view space = rest.substr(0, first);
  std::string_view name = rest.substr(first + 1, second - first - 1);
  std::string_view overload = rest.substr(second + 1);
  if (!is_identifier(space) || !is_identifier(name) || !is_identifier(overload))
    return std::nullopt;
  if (space.starts_with("__") || name.starts_with("__class")) return std::nullopt;
  std::string result = std::string(space) + "::" + std::string(name);
  return overload == "default" ? result : result + "." + std::string(overload);
}

/// "key,path,type;key,path,type": (path, type) pairs, outermost first. Commas inside brackets
/// belong to a key or type.
std::vector<std::pair<std::string, std::string>> module_stack(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> stack;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(';'), text.size());
    std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::vector<std::string_view> parts;
    std::size_t start = 0;
    int nesting = 0;
    for (std::size_t i = 0; i < entry.size(); ++i) {
      if (entry[i] == '(' || entry[i] == '[') ++nesting;
      if (entry[i] == ')' || entry[i] == ']') --nesting;
      if (entry[i] == ',' && nesting == 0) {
        parts.push_back(entry.substr(start, i - start));
        start = i + 1;
      }
    }
    parts.push_back(entry.substr(start));
    if (parts.size() == 3) stack.emplace_back(std::string(parts[1]), std::string(parts[2]));
  }
  return stack;
}

/// Whether a part of the graph computes gradients whatever the mode around it.
bool switches_gradients_on(const schema::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const schema::Node& node) {
    const HigherOrderOp* op = find_higher_order(node.target);
    if (op == nullptr || op->kind != HigherOrderOp::Kind::kGradMode || node.inputs.empty())
      return false;
    const bool* enabled = node.inputs[0].arg.get<bool>();
    return enabled == nullptr || *enabled;
  });
}

}  // namespace

Meta GraphImporter::node_meta(const schema::Node& node) const {
  Meta meta;
  for (const auto& [key, text] : node.metadata) {
    if (key == "nn_module_stack") {
      meta.set(key, module_stack(text));
    } else if (key == "stack_trace" || key == "torch_fn" || key == "source_fn_stack" ||
               key == "custom") {
      meta.set(key, text);
    }
  }
  return meta;
}

void GraphImporter::import_nodes(const schema::Graph& graph, const std::string& prefix) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const schema::Node& node = graph.nodes[i];
    std::string where = prefix + "node " + std::to_string(i);
    if (node.name)
      where += " " + shown(*node.name);
    else if (!node.outputs.empty() && value_name(node.outputs[0]) != nullptr)
      where += " " + shown(*value_name(node.outputs[0]));
    import_node(node, where);
  }
}

void GraphImporter::import_node(const schema::Node& node, const std::string& where) {
  if (node.target.starts_with(kHigherOrderPrefix)) return import_higher_order(node, where);
  if (std::optional<std::string> name = operator_name(node.target))
    return import_operator(node, *name, where);
  if (std::string builtin = builtin_of_target(node.target); !builtin.empty())
    return import_builtin(node, builtin, where);
  problems_.add(shown(node.target) + " is not the name of an operator that is known", where);
  import_unsupported(node, where);
}

/// Operators that take graphs. Those that only set a mode around one are inlined where that is the
/// same.
void GraphImporter::import_higher_order(const schema::Node& node, const std::string& where) {
  const HigherOrderOp* op = find_higher_order(node.target);
  if (op == nullptr) {
    problems_.add("higher-order operator " + shown(node.target.substr(kHigherOrderPrefix.size())) +
                      " is not supported",
                  where);
    return import_unsupported(node, where);
  }
  auto flag = [&](std::size_t index) {
    return index < node.inputs.size() ? node.inputs[index].arg.get<bool>() : nullptr;
  };
  std::vector<const schema::Graph*> graphs;
  for (std::size_t i = 0; i < op->num_graphs; ++i) {
    const std::size_t index = op->first_graph + i;
    const auto* graph =
        index < node.inputs.size() ? node.inputs[index].arg.get<schema::GraphArgument>() : nullptr;
    if (graph == nullptr)
      fail(where + ": argument " + std::to_string(index + 1) + " of " + std::string(op->name) +
           " is no graph");
    graphs.push_back(graph->graph.get());
  }
  using Kind = HigherOrderOp::Kind;
  if (op->kind == Kind::kGradMode && flag(0) != nullptr && !*flag(0) &&
      !switches_gradients_on(*graphs[0]))
    return inline_graph(node, op->first_graph, /*detach=*/true, where);
  const bool autocast_off = op->kind == Kind::kAutocast && flag(2) != nullptr && !*flag(2);
  if (autocast_off && num_autocasts_ == 0)
    return inline_graph(node, op->first_graph, /*detach=*/false, where);

  const std::size_t outer_autocasts = num_autocasts_;
  if (op->kind == Kind::kAutocast) num_autocasts_ = autocast_off ? 0 : num_autocasts_ + 1;
  Args args;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const schema::NamedArgument& input = node.inputs[i];
    if (input.kind && *input.kind == schema::ArgumentKind::kKeyword)
      fail(where + ": argument " + shown(input.name) + " of " + std::string(op->name) +
           " is given by name, wanted all by position");
    const auto* graph = input.arg.get<schema::GraphArgument>();
    if ((graph != nullptr) != op->is_graph(i))
      fail(where + ": argument " + std::to_string(i + 1) + " of " + std::string(op->name) + " is " +
           std::string(input.arg.tag()));
    if (graph != nullptr)
      args.emplace_back(import_subgraph(*graph, where));
    else
      args.push_back(import_argument(input.arg, values_, problems_,
                                     where + ", argument " + std::to_string(i + 1)));
  }
  num_autocasts_ = outer_autocasts;
  if (op->kind == Kind::kCond) check_branches(*graphs[0], *graphs[1], where);

  // What the last of the graphs returns is what the node does, one alone or a tuple.
  const schema::Graph& last = *graphs.back();
  if (last.outputs.size() != node.outputs.size())
    fail(where + ": its graph gives " + std::to_string(last.outputs.size()) +
         " values, the node has " + std::to_string(node.outputs.size()));
  if (node.is_hop_single_tensor_return.value_or(last.is_single_tensor_return) !=
      last.is_single_tensor_return)
    fail(where + ": node and graph differ in whether the result is one tensor or a tuple");
  Node& made = graph_->create_node(Opcode::kCallFunction, Target::function(node.target),
                                   std::move(args), {}, node.name.value_or(""));
  made.meta() = node_meta(node);
  if (last.is_single_tensor_return)
    import_results(node, made, where);
  else
    define_elements(node.outputs, made, where);
}

void GraphImporter::check_branches(const schema::Graph& first, const schema::Graph& second,
                                   const std::string& where) {
  auto claim = [](const schema::Graph& graph, const schema::Argument& output) {
    const auto* tensor = output.get<schema::TensorArgument>();
    const auto found = tensor == nullptr
                           ? graph.tensor_values.end()
                           : std::ranges::find(graph.tensor_values, tensor->name,
                                               &std::pair<std::string, schema::TensorMeta>::first);
    return found == graph.tensor_values.end() ? nullptr : &found->second;
  };
  for (std::size_t i = 0; i < std::min(first.outputs.size(), second.outputs.size()); ++i) {
    const schema::TensorMeta *a = claim(first, first.outputs[i]),
                             *b = claim(second, second.outputs[i]);
    if (a == nullptr || b == nullptr) continue;
    if (a->dtype != b->dtype || a->sizes.size() != b->sizes.size() ||
        a->device.type != b->device.type)
      fail(where + ": its branches do not agree in value " + std::to_string(i + 1) + ": " +
           meta_reader_.read(*a, "")->str() + " on " + a->device.type + " and " +
           meta_reader_.read(*b, "")->str() + " on " + b->device.type);
  }
}

void GraphImporter::swap_scope(Scope& scope) {
  std::swap(module_, scope.module);
  std::swap(graph_, scope.graph);
  std::swap(values_, scope.values);
  std::swap(metas_, scope.metas);
  std::swap(droppable_, scope.droppable);
}

/// A get_attr node of the graph as a module.
Node& GraphImporter::import_subgraph(const schema::GraphArgument& argument,
                                     const std::string& where) {
  if (!is_identifier(argument.name))
    fail(where + ": unusable name of a graph, " + shown(argument.name));
  std::string path = argument.name;
  for (std::size_t i = 1; module_->attr_kind(path) != GraphOwner::AttrKind::kMissing; ++i)
    path = argument.name + "_" + std::to_string(i);
  module_->set_submodule(path, build_subgraph(argument, where + ", graph " + shown(path)));
  return graph_->create_node(Opcode::kGetAttr, Target::string(path), {}, {}, path);
}

std::shared_ptr<GraphModule> GraphImporter::build_subgraph(const schema::GraphArgument& argument,
                                                           const std::string& where) {
  const schema::Graph& graph = *argument.graph;
  Scope scope{std::make_shared<GraphModule>(std::make_shared<Graph>(), argument.name),
              nullptr,
              ValueTable(label_),
              {},
              {}};
  scope.graph = &scope.module->graph();
  swap_scope(scope);
  index_metas(graph);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string at = where + ", input " + std::to_string(i);
    const std::string* name = value_name(graph.inputs[i]);
    if (name == nullptr)
      fail(at + " is " + std::string(graph.inputs[i].tag()) + ", wanted a value");
    Node& input = graph_->create_node(Opcode::kPlaceholder, Target::string(*name), {}, {}, *name);
    values_.define(*name, {&input, kind_of_value(graph.inputs[i])}, at);
    if (graph.inputs[i].get<schema::CustomObjArgument>() != nullptr)
      problems_.add("custom objects are not supported", at);
    else
      set_meta(input, *name);
  }
  import_nodes(graph, where + ", ");
  std::vector<Argument> results;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    results.push_back(import_argument(graph.outputs[i], values_, problems_,
                                      where + ", output " + std::to_string(i)));
  if (graph.is_single_tensor_return && results.size() != 1)
    fail(where + " gives one tensor and has " + std::to_string(results.size()) + " outputs");
  graph_->output(graph.is_single_tensor_return ? results[0] : Argument::tuple(std::move(results)));
  if (problems_.empty()) {
    drop_unused();
    lint(where);
    module_->recompile();
  }
  swap_scope(scope);
  return scope.module;
}

/// Puts the nodes of the graph that is input `graph_index` of `node` in its place; the inputs after
/// it are the graph's. `detach`: gradients do not flow out.
void GraphImporter::inline_graph(const schema::Node& node, std::size_t graph_index, bool detach,
                                 const std::string& where) {
  const schema::GraphArgument* body =
      graph_index < node.inputs.size() ? node.inputs[graph_index].arg.get<schema::GraphArgument>()
                                       : nullptr;
  if (body == nullptr) fail(where + " has no graph to call");
  const schema::Graph& inner = *body->graph;
  if (inner.inputs.size() != node.inputs.size() - graph_index - 1 ||
      inner.outputs.size() != node.outputs.size())
    fail(where + ": inputs or outputs do not fit its graph " + shown(body->name));

  ValueTable inner_values(label_);
  for (std::size_t i = 0; i < inner.inputs.size(); ++i) {
    const std::string* outer_name = value_name(node.inputs[graph_index + 1 + i].arg);
    const std::string* inner_name = value_name(inner.inputs[i]);
    if (outer_name == nullptr || inner_name == nullptr)
      fail(where + ": input " + std::to_string(i) + " of its graph is no value");
    inner_values.define(*inner_name, values_.get(*outer_name, where), where);
  }
  std::swap(values_, inner_values);
  Metas inner_metas;
  std::swap(metas_, inner_metas);
  index_metas(inner);
  import_nodes(inner, where + ", ");
  std::swap(values_, inner_values);
  std::swap(metas_, inner_metas);

  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string* outer_name = value_name(node.outputs[i]);
    const std::string* inner_name = value_name(inner.outputs[i]);
    if (node.outputs[i].get<std::monostate>() != nullptr) continue;
    if (outer_name == nullptr || inner_name == nullptr) {
      problems_.add("constants and lists as outputs of a nested graph are not supported", where);
      continue;
    }
    ImportedValue value = inner_values.get(*inner_name, where);
    if (detach && value.kind == ValueKind::kTensor) {
      Node* source = value.node;
      value.node = &graph_->call_function("aten::detach", {*source});
      value.node->meta() = source->meta();
    }
    values_.define(*outer_name, value, where);
  }
}

void GraphImporter::import_operator(const schema::Node& node, const std::string& name,
                                    const std::string& where) {
  const std::string base = name.substr(0, name.find('.'));
  const OpInfo& info = OpInfo::of(*Function::get(name));
  const std::string overload_name = name.size() > base.size() ? name.substr(base.size() + 1) : "";
  const Overload* overload = nullptr;
  for (const Overload& candidate : info.overloads)
    if (candidate.handle.operator_name().overload_name == overload_name) overload = &candidate;
  if (overload == nullptr) {
    problems_.add(
        "operator " + shown(name) + " is not in this process (load the library that registers it)",
        where);
    return import_unsupported(node, where);
  }
  if (std::optional<std::string> reason = policy_.refusal(base)) {
    problems_.add("operator " + shown(base) + " is refused: " + *reason, where, true);
    return import_unsupported(node, where);
  }
  Args args;
  Kwargs kwargs;
  split_arguments(node, *overload, where, args, kwargs);
  const std::size_t returns = overload->handle.schema().returns().size();
  if (node.outputs.size() != returns)
    fail(where + ": " + name + " returns " + std::to_string(returns) + " values, the node has " +
         std::to_string(node.outputs.size()));
  std::string node_name = node.name.value_or("");
  if (node_name.empty() && returns == 1 && value_name(node.outputs[0]) != nullptr)
    node_name = *value_name(node.outputs[0]);
  Node& made = graph_->create_node(Opcode::kCallFunction, Target::function(name), std::move(args),
                                   std::move(kwargs), node_name);
  made.meta() = node_meta(node);
  import_results(node, made, where);
}

/// Positional and keyword arguments as the file has them, checked against the schema.
void GraphImporter::split_arguments(const schema::Node& node, const Overload& overload,
                                    const std::string& where, Args& args, Kwargs& kwargs) {
  const std::string op = overload.handle.schema().name();
  std::vector<bool> given(overload.rules.size(), false);
  for (const schema::NamedArgument& input : node.inputs) {
    auto rule = std::ranges::find(overload.rules, input.name, &ArgRule::name);
    if (rule == overload.rules.end())
      fail(where + ": " + op + " has no argument " + shown(input.name));
    const auto index = static_cast<std::size_t>(rule - overload.rules.begin());
    if (given[index]) fail(where + ": argument " + shown(input.name) + " of " + op + " twice");
    given[index] = true;
    Argument value =
        import_argument(input.arg, values_, problems_, where + ", argument " + shown(input.name));
    if (problems_.empty() && !fits(value, *rule, values_))
      fail(where + ": argument " + shown(input.name) + " of " + op + " wants a " + wanted(*rule) +
           ", found " + std::string(input.arg.tag()) + " " + cut(repr(value)));
    bool positional = !rule->has_default && !rule->keyword_only;
    if (input.kind && *input.kind != schema::ArgumentKind::kUnknown)
      positional = *input.kind == schema::ArgumentKind::kPositional;
    if (positional && (rule->keyword_only || args.size() != index)) {
      if (rule->keyword_only)
        fail(where + ": argument " + shown(input.name) + " of " + op + " is keyword only");
      fail(where + ": argument " + shown(input.name) + " of " + op + " is at position " +
           std::to_string(args.size()) + ", the operator has it at " + std::to_string(index));
    }
    if (positional)
      args.push_back(std::move(value));
    else
      kwargs.emplace_back(input.name, std::move(value));
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i] && !overload.rules[i].has_default)
      fail(where + ": " + op + " lacks its argument " + shown(overload.rules[i].name));
}

void GraphImporter::import_builtin(const schema::Node& node, const std::string& name,
                                   const std::string& where) {
  Args args;
  for (const schema::NamedArgument& input : node.inputs)
    args.push_back(import_argument(input.arg, values_, problems_, where));
  if (args.empty() || args.size() > 2)
    fail(where + ": " + name + " with " + std::to_string(args.size()) + " arguments");
  if (node.outputs.size() != 1 || value_name(node.outputs[0]) == nullptr)
    fail(where + ": " + name + " needs one named output");
  Node& made = graph_->create_node(Opcode::kCallFunction, Target::function(name), std::move(args),
                                   {}, node.name.value_or(*value_name(node.outputs[0])));
  made.meta() = node_meta(node);
  define_result(node.outputs[0], made, where);
}

/// Stands in for a node that cannot be imported, so that its results exist and what else is missing
/// can be told too.
void GraphImporter::import_unsupported(const schema::Node& node, const std::string& where) {
  Node& made = graph_->create_node(Opcode::kCallFunction, Target::function("unsupported"));
  for (const schema::Argument& output : node.outputs) {
    if (const std::string* name = value_name(output))
      values_.define(*name, {&made, kind_of_value(output)}, where);
    if (const auto* list = output.get<std::vector<schema::TensorArgument>>())
      for (const schema::TensorArgument& tensor : *list)
        values_.define(tensor.name, {&made, ValueKind::kTensor}, where);
  }
}

void GraphImporter::import_results(const schema::Node& node, Node& result,
                                   const std::string& where) {
  if (node.outputs.empty()) return;
  if (node.outputs.size() > 1) return define_elements(node.outputs, result, where);
  const schema::Argument& output = node.outputs[0];
  if (const auto* list = output.get<std::vector<schema::TensorArgument>>()) {
    std::vector<schema::Argument> elements;
    for (const schema::TensorArgument& tensor : *list) elements.push_back({tensor});
    return define_elements(elements, result, where);
  }
  if (output.get<std::monostate>() != nullptr) return;
  define_result(output, result, where);
}

void GraphImporter::define_result(const schema::Argument& output, Node& node,
                                  const std::string& where) {
  const std::string* name = value_name(output);
  if (name == nullptr) fail(where + ": an output that is " + std::string(output.tag()));
  values_.define(*name, {&node, kind_of_value(output)}, where);
  set_meta(node, *name);
}

/// Results of a sequence: operator.getitem nodes, dropped later when nothing uses them.
void GraphImporter::define_elements(const std::vector<schema::Argument>& outputs, Node& sequence,
                                    const std::string& where) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const schema::Argument& output = outputs[i];
    if (output.get<std::monostate>() != nullptr) continue;
    const std::string* name = value_name(output);
    Node& element = graph_->create_node(Opcode::kCallFunction, Target::function("operator.getitem"),
                                        {sequence, static_cast<std::int64_t>(i)}, {},
                                        name != nullptr ? *name : std::string());
    element.meta() = sequence.meta();
    droppable_.push_back(&element);
    if (const auto* list = output.get<std::vector<schema::TensorArgument>>()) {
      std::vector<schema::Argument> nested;
      for (const schema::TensorArgument& tensor : *list) nested.push_back({tensor});
      define_elements(nested, element, where);
    } else {
      define_result(output, element, where);
    }
  }
}

}  // namespace fx::io
