#include "fx/io/graph_importer.h"

#include <algorithm>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/shown.h"
#include "fx/io/treespec.h"

namespace fx::io {
namespace {

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
  index_metas(graph_spec_);
  register_tensors(std::move(weights), std::move(constants));
  import_inputs();
  import_nodes(graph_spec_, "");
  import_outputs();
  if (!problems_.empty()) problems_.raise(label_);
  drop_unused();
  set_specs();
  lint("");
  module_->set_mutations(std::move(mutations_));
  module_->recompile();
  return module_;
}

/// What lint finds is a fault of the file; `where` names a nested graph.
void GraphImporter::lint(const std::string& where) const {
  try {
    graph_->lint({.strict = true});
  } catch (const LintError& error) {
    fail((where.empty() ? "" : where + ": ") + error.text());
  }
}

void GraphImporter::index_metas(const schema::Graph& graph) {
  auto add = [this](const std::string& name, ValueMetaPtr meta) {
    if (!metas_.emplace(name, std::move(meta)).second)
      fail("metadata of the value " + shown(name) + " stands in two places");
  };
  for (const auto& [name, meta] : graph.tensor_values) add(name, meta_reader_.read(meta, name));
  for (const auto& [name, number] : graph.sym_int_values)
    add(name, meta_reader_.read(number, name));
  for (const auto& [name, number] : graph.sym_bool_values)
    add(name, meta_reader_.read(number, name));
  for (const auto& [name, number] : graph.sym_float_values)
    add(name, meta_reader_.read(number, name));
  for (const schema::Node& node : graph.nodes) expect_outputs(node.outputs);
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

// --- inputs and attributes

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
  values_.define(*name, {&node, kind_of_value(input)}, where);
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

// --- outputs

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
  if (value == target) return;
  graph_->call_function("aten::copy_", {*target, *value});
  mutations_.push_back(target->target().str());
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
