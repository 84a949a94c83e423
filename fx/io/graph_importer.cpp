#include "fx/io/graph_importer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/shown.h"
#include "fx/io/treespec.h"
#include "fx/ops/builtins.h"

namespace fx::io {
namespace {

constexpr std::string_view kOperatorPrefix = "torch.ops.";
constexpr std::string_view kHigherOrderPrefix = "torch.ops.higher_order.";

struct SymbolicRow {
  std::string_view target;
  std::string_view builtin;
};
/// Functions over symbolic numbers that torch has under names of its own.
constexpr std::array kSymbolic = {
    SymbolicRow{"torch._sym_sqrt", "math.sqrt"},  SymbolicRow{"torch.sym_float", "builtins.float"},
    SymbolicRow{"torch.sym_int", "builtins.int"}, SymbolicRow{"torch.sym_max", "builtins.max"},
    SymbolicRow{"torch.sym_min", "builtins.min"}, SymbolicRow{"torch.sym_not", "operator.not_"},
};

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

/// "operator.add" for "_operator.add", "builtins.max" for "torch.sym_max"; empty if there is none.
std::string builtin_name(std::string_view target) {
  auto row = std::ranges::find(kSymbolic, target, &SymbolicRow::target);
  if (row != kSymbolic.end()) return std::string(row->builtin);
  if (target.starts_with("_operator.")) target.remove_prefix(1);
  if (!target.starts_with("operator.") && !target.starts_with("math.")) return {};
  return find_builtin(target) != nullptr ? std::string(target) : std::string();
}

/// The single value name of an argument that is one value; null otherwise.
const std::string* value_name(const schema::Argument& argument) {
  if (const auto* tensor = argument.get<schema::TensorArgument>()) return &tensor->name;
  auto named = [](const auto* symbolic) -> const std::string* {
    return symbolic == nullptr ? nullptr : std::get_if<std::string>(&symbolic->value);
  };
  if (const auto* name = named(argument.get<schema::SymIntArgument>())) return name;
  if (const auto* name = named(argument.get<schema::SymFloatArgument>())) return name;
  if (const auto* name = named(argument.get<schema::SymBoolArgument>())) return name;
  if (const auto* object = argument.get<schema::CustomObjArgument>()) return &object->name;
  return nullptr;
}

ValueKind kind_of(const schema::Argument& argument) {
  if (argument.get<schema::SymIntArgument>() != nullptr) return ValueKind::kInt;
  if (argument.get<schema::SymFloatArgument>() != nullptr) return ValueKind::kFloat;
  if (argument.get<schema::SymBoolArgument>() != nullptr) return ValueKind::kBool;
  return ValueKind::kTensor;
}

ValueKind kind_of_constant(const Argument& value) {
  switch (value.kind()) {
    case Argument::Kind::kInt:
      return ValueKind::kInt;
    case Argument::Kind::kFloat:
      return ValueKind::kFloat;
    case Argument::Kind::kBool:
      return ValueKind::kBool;
    case Argument::Kind::kString:
      return ValueKind::kString;
    default:
      return ValueKind::kNone;
  }
}

/// Whether `path` is a dotted path of non-empty atoms.
bool is_qualified_name(std::string_view path) {
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos;
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

}  // namespace

GraphImporter::GraphImporter(const schema::ExportedProgram& program, std::string label,
                             const OperatorPolicy& policy)
    : program_(program),
      graph_spec_(program.graph_module.graph),
      label_(std::move(label)),
      policy_(policy),
      values_(label_),
      meta_reader_(label_) {}

void GraphImporter::fail(const std::string& what, ErrorCode code) const {
  throw ImportError(code, label_ + ": " + what);
}

std::shared_ptr<GraphModule> GraphImporter::build(std::vector<Weight> weights,
                                                  std::vector<Weight> constants,
                                                  const std::string& class_name) {
  module_ = std::make_shared<GraphModule>(std::make_shared<Graph>(), class_name);
  graph_ = &module_->graph();
  index_metas();
  register_tensors(std::move(weights), std::move(constants));
  import_inputs();
  import_nodes();
  import_outputs();
  if (!problems_.empty()) problems_.raise(label_);
  drop_unused();
  set_specs();
  graph_->lint({.strict = true});
  module_->recompile();
  return module_;
}

void GraphImporter::index_metas() {
  auto add = [this](const std::string& name, ValueMetaPtr meta) {
    if (!metas_.emplace(name, std::move(meta)).second)
      fail("metadata of the value " + shown(name) + " stands in two places");
  };
  for (const auto& [name, meta] : graph_spec_.tensor_values)
    add(name, meta_reader_.read(meta, name));
  for (const auto& [name, number] : graph_spec_.sym_int_values)
    add(name, meta_reader_.read(number, name));
  for (const auto& [name, number] : graph_spec_.sym_bool_values)
    add(name, meta_reader_.read(number, name));
  for (const auto& [name, number] : graph_spec_.sym_float_values)
    add(name, meta_reader_.read_float());
  for (const schema::Node& node : graph_spec_.nodes) expect_outputs(node.outputs);
}

void GraphImporter::expect_outputs(const std::vector<schema::Argument>& outputs) {
  for (const schema::Argument& output : outputs) {
    if (const std::string* name = value_name(output)) values_.expect(*name);
    if (const auto* list = output.get<std::vector<schema::TensorArgument>>())
      for (const schema::TensorArgument& tensor : *list) values_.expect(tensor.name);
  }
}

const ValueMetaPtr& GraphImporter::meta_of(const std::string& value_name) const {
  auto it = metas_.find(value_name);
  if (it == metas_.end()) fail("the value " + shown(value_name) + " has no metadata");
  return it->second;
}

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

// --- inputs and attributes
// -------------------------------------------------------------------------

void GraphImporter::register_tensors(std::vector<Weight> weights, std::vector<Weight> constants) {
  for (auto* list : {&weights, &constants})
    for (Weight& weight : *list) {
      if (!is_qualified_name(weight.name)) fail("unusable attribute name " + shown(weight.name));
      if (!tensors_.emplace(weight.name, weight.tensor).second)
        fail("the tensor " + shown(weight.name) + " stands in two places");
    }
  // All of the state, in the file's order, so that the state_dict is Python's; buffers that are not
  // in it and constants follow from the signature.
  for (Weight& weight : weights) {
    if (weight.requires_grad) weight.tensor.set_requires_grad(true);
    if (weight.is_param)
      module_->set_parameter(weight.name, weight.tensor);
    else
      module_->set_buffer(weight.name, weight.tensor);
  }
}

void GraphImporter::import_inputs() {
  const auto& specs = program_.graph_module.signature.input_specs;
  if (specs.size() != graph_spec_.inputs.size())
    fail("the graph has " + std::to_string(graph_spec_.inputs.size()) +
         " inputs and its signature " + std::to_string(specs.size()));
  // Two rounds: placeholders come first.
  using Kind = schema::InputSpec::Kind;
  for (bool user : {true, false}) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const schema::InputSpec& spec = specs[i];
      const std::string where = "graph input " + std::to_string(i);
      const std::string* name = value_name(graph_spec_.inputs[i]);
      const std::string* spec_name = value_name(spec.arg);
      if (spec.kind != Kind::kConstantInput && (spec_name == nullptr) != (name == nullptr))
        fail(where + " and its signature differ in kind");
      if (name != nullptr && spec_name != nullptr && *name != *spec_name)
        fail(where + " is called " + shown(*name) + ", in the signature " + shown(*spec_name));
      const bool is_user = spec.kind == Kind::kUserInput || spec.kind == Kind::kConstantInput;
      if (is_user != user) continue;
      if (is_user)
        import_user_input(spec, graph_spec_.inputs[i], where);
      else
        import_attribute(spec, where);
    }
  }
  check_constant_inputs();
}

void GraphImporter::import_user_input(const schema::InputSpec& spec, const schema::Argument& input,
                                      const std::string& where) {
  ++num_user_inputs_;
  if (spec.kind == schema::InputSpec::Kind::kConstantInput) {
    Argument value = import_argument(spec.arg, values_, problems_, where);
    Node& node = graph_->placeholder_with_default(spec.target, value);
    constant_inputs_.push_back({&node, value, spec.target});
    values_.define(spec.target, {&node, kind_of_constant(value)}, where);
    return;
  }
  const std::string* name = value_name(input);
  if (name == nullptr) {
    // A constant without a name of its own, in archives of older versions.
    Argument value = import_argument(input, values_, problems_, where);
    const std::string made = "arg" + std::to_string(num_user_inputs_ - 1);
    constant_inputs_.push_back({&graph_->placeholder_with_default(made, value), value, made});
    return;
  }
  Node& node = graph_->create_node(Opcode::kPlaceholder, Target::string(*name), {}, {}, *name);
  values_.define(*name, {&node, kind_of(input)}, where);
  if (const auto* object = input.get<schema::CustomObjArgument>())
    problems_.add("objects of class " + shown(object->class_fqn) + " are not supported", where);
  else
    set_meta(node, *name);
}

void GraphImporter::import_attribute(const schema::InputSpec& spec, const std::string& where) {
  using Kind = schema::InputSpec::Kind;
  const std::string* name = value_name(spec.arg);
  if (name == nullptr) fail(where + " has no name");
  if (spec.kind == Kind::kCustomObj || spec.kind == Kind::kToken) {
    problems_.add(spec.kind == Kind::kToken ? "effect tokens are not supported"
                                            : "custom objects are not supported",
                  where + " " + shown(*name));
    Node& node = graph_->placeholder(*name);
    values_.define(*name, {&node, ValueKind::kTensor}, where);
    return;
  }
  auto tensor = tensors_.find(spec.target);
  if (tensor == tensors_.end())
    fail(where + ": the tensor " + shown(spec.target) + " is not among the weights and constants");
  if (!is_qualified_name(spec.target))
    fail(where + ": unusable attribute name " + shown(spec.target));
  if (spec.kind == Kind::kBuffer)
    module_->set_buffer(spec.target, tensor->second, spec.persistent);
  else if (spec.kind == Kind::kTensorConstant)
    module_->set_constant(spec.target, tensor->second);

  auto [attribute, inserted] = attributes_.try_emplace(spec.target, nullptr);
  if (inserted) {
    attribute->second =
        &graph_->create_node(Opcode::kGetAttr, Target::string(spec.target), {}, {}, *name);
    droppable_.push_back(attribute->second);
    set_meta(*attribute->second, *name);
  }
  values_.define(*name, {attribute->second, ValueKind::kTensor}, where);
  const ValueMeta& claim = *meta_of(*name);
  bool equal = claim.dtype == tensor->second.scalar_type() &&
               claim.sizes.size() == static_cast<std::size_t>(tensor->second.dim());
  for (std::size_t i = 0; equal && i < claim.sizes.size(); ++i)
    equal = claim.sizes[i].is_known() &&
            claim.sizes[i].value == tensor->second.size(static_cast<std::int64_t>(i));
  if (!equal)
    fail(where + ": the graph has " + shown(spec.target) + " as " + claim.str() +
             ", the stored tensor is a " + describe(tensor->second),
         ErrorCode::kBadWeight);
}

/// A constant input is baked into the program: another value must not pass silently.
void GraphImporter::check_constant_inputs() {
  for (const auto& [node, value, name] : constant_inputs_) {
    if (value.is_none()) continue;
    Node& equal = graph_->call_function("operator.eq", {*node, value});
    graph_->call_function("aten::_assert_scalar",
                          {equal, "input " + name + " was fixed to " + repr(value) +
                                      " when the program was exported"});
  }
}

// --- nodes
// -----------------------------------------------------------------------------------------

void GraphImporter::import_nodes() {
  for (std::size_t i = 0; i < graph_spec_.nodes.size(); ++i) {
    const schema::Node& node = graph_spec_.nodes[i];
    std::string where = "node " + std::to_string(i);
    if (node.name)
      where += " " + shown(*node.name);
    else if (!node.outputs.empty() && value_name(node.outputs[0]) != nullptr)
      where += " " + shown(*value_name(node.outputs[0]));
    import_node(node, where);
  }
}

void GraphImporter::import_node(const schema::Node& node, const std::string& where) {
  if (node.target.starts_with(kHigherOrderPrefix)) {
    problems_.add("higher-order operator " + shown(node.target.substr(kHigherOrderPrefix.size())) +
                      " is not supported",
                  where);
    return import_unsupported(node, where);
  }
  if (std::optional<std::string> name = operator_name(node.target))
    return import_operator(node, *name, where);
  if (std::string builtin = builtin_name(node.target); !builtin.empty())
    return import_builtin(node, builtin, where);
  problems_.add(shown(node.target) + " is not the name of an operator that is known", where);
  import_unsupported(node, where);
}

void GraphImporter::import_operator(const schema::Node& node, const std::string& name,
                                    const std::string& where) {
  const std::string base = name.substr(0, name.find('.'));
  if (std::optional<std::string> reason = policy_.refusal(base)) {
    problems_.add("operator " + shown(base) + " is refused: " + *reason, where, true);
    return import_unsupported(node, where);
  }
  const OpInfo& info = OpInfo::of(*Function::get(name));
  const std::string overload_name = name.size() > base.size() ? name.substr(base.size() + 1) : "";
  const Overload* overload = nullptr;
  for (const Overload& candidate : info.overloads)
    if (candidate.handle.operator_name().overload_name == overload_name) overload = &candidate;
  if (overload == nullptr) {
    problems_.add("operator " + shown(name) + " is not in this process", where);
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
           ", found " + std::string(input.arg.tag()) + " " + repr(value));
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
      values_.define(*name, {&made, kind_of(output)}, where);
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
  values_.define(*name, {&node, kind_of(output)}, where);
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

// --- outputs
// ---------------------------------------------------------------------------------------

void GraphImporter::import_outputs() {
  using Kind = schema::OutputSpec::Kind;
  const auto& specs = program_.graph_module.signature.output_specs;
  if (specs.size() != graph_spec_.outputs.size())
    fail("the graph has " + std::to_string(graph_spec_.outputs.size()) +
         " outputs and its signature " + std::to_string(specs.size()));
  std::vector<Argument> results;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const schema::OutputSpec& spec = specs[i];
    const std::string where = "graph output " + std::to_string(i);
    const std::string* name = value_name(graph_spec_.outputs[i]);
    const std::string* spec_name = value_name(spec.arg);
    if (name != nullptr && spec_name != nullptr && *name != *spec_name)
      fail(where + " is " + shown(*name) + ", in the signature " + shown(*spec_name));
    switch (spec.kind) {
      case Kind::kUserOutput:
      case Kind::kLossOutput:
        results.push_back(import_argument(graph_spec_.outputs[i], values_, problems_, where));
        break;
      case Kind::kBufferMutation:
      case Kind::kParameterMutation:
      case Kind::kUserInputMutation:
        import_mutation(spec, where);
        break;
      case Kind::kGradientToParameter:
      case Kind::kGradientToUserInput:
        problems_.add("gradients as outputs are not supported", where);
        break;
      case Kind::kToken:
        problems_.add("effect tokens are not supported", where);
        break;
    }
  }
  num_user_outputs_ = results.size();
  graph_->output(Argument::tuple(std::move(results)));
}

void GraphImporter::import_mutation(const schema::OutputSpec& spec, const std::string& where) {
  const std::string* name = value_name(spec.arg);
  if (name == nullptr) fail(where + " has no name");
  Node* target = nullptr;
  if (spec.kind == schema::OutputSpec::Kind::kUserInputMutation) {
    target = values_.get(spec.target, where).node;
    if (!target->is_placeholder())
      fail(where + " changes " + shown(spec.target) + ", which is no input");
  } else {
    auto attribute = attributes_.find(spec.target);
    if (attribute == attributes_.end())
      fail(where + " changes the unknown tensor " + shown(spec.target));
    target = attribute->second;
  }
  Node* value = values_.get(*name, where).node;
  if (value != target) graph_->call_function("aten::copy_", {*target, *value});
}

/// Attributes and parts of results that nothing reads.
void GraphImporter::drop_unused() {
  for (auto node = droppable_.rbegin(); node != droppable_.rend(); ++node)
    if ((*node)->num_users() == 0) graph_->erase_node(**node);
}

void GraphImporter::set_specs() {
  for (const schema::ModuleCallEntry& entry : program_.graph_module.module_call_graph) {
    if (!entry.fqn.empty() || !entry.signature) continue;
    const auto& fields = program_.graph_module.treespec_namedtuple_fields;
    TreeSpec in = parse_treespec(entry.signature->in_spec, label_ + ": in_spec", fields);
    TreeSpec out = parse_treespec(entry.signature->out_spec, label_ + ": out_spec", fields);
    using Kind = TreeSpec::Kind;
    if (in.kind != Kind::kTuple || in.children.size() != 2 || in.children[0].kind != Kind::kTuple ||
        in.children[1].kind != Kind::kDict)
      fail("in_spec " + treespec_str(in) + " is no pair of arguments and keyword arguments",
           ErrorCode::kBadTreespec);
    if (in.num_leaves() != num_user_inputs_)
      fail("in_spec " + treespec_str(in) + " does not have the " +
               std::to_string(num_user_inputs_) + " inputs of the graph",
           ErrorCode::kBadTreespec);
    if (out.num_leaves() != num_user_outputs_)
      fail("out_spec " + treespec_str(out) + " does not have the " +
               std::to_string(num_user_outputs_) + " outputs of the graph",
           ErrorCode::kBadTreespec);
    module_->set_specs(std::move(in), std::move(out));
    return;
  }
}

}  // namespace fx::io
