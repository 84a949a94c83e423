#include "fx/io/graph_exporter.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/subgraphs.h"
#include "fx/graph/tensor_meta.h"
#include "fx/io/python_text.h"
#include "fx/io/shown.h"
#include "fx/io/treespec.h"
#include "fx/io/weights.h"
#include "fx/ops/version.h"

namespace fx::io {
namespace {

constexpr std::int64_t kAtenOpset = 10;  // of torch 2.15
constexpr const char* kTraining = "TRAINING";

bool writes(const Node& node) {
  if (node.op() != Opcode::kCallFunction) return false;
  if (higher_order_of(node) != nullptr) return subgraphs_are_impure(node, false);
  const OpInfo& info = OpInfo::of(*node.target().function());
  return std::ranges::any_of(info.overloads,
                             [](const Overload& overload) { return overload.mutates; });
}

/// The attribute path or input name that stands for the memory of a value; empty for others.
bool is_state(const Node& node) { return node.op() == Opcode::kGetAttr || node.is_placeholder(); }

std::string flat_name(const std::string& path) {
  std::string name = path;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

schema::SymInt sym_int(const SymDim& dim) {
  if (dim.is_known()) return {dim.value, nullptr};
  auto expr = std::make_shared<schema::SymExpr>();
  expr->text = expression_for_python(*dim.expr);
  if (dim.value >= 0) expr->hint = dim.value;
  return {0, expr};
}

std::vector<schema::SymInt> sym_ints(const std::vector<SymDim>& dims) {
  std::vector<schema::SymInt> out;
  for (const SymDim& dim : dims) out.push_back(sym_int(dim));
  return out;
}

schema::TensorMeta tensor_meta_of(const ValueMeta& meta) {
  schema::TensorMeta out;
  out.dtype = *from_scalar_type(meta.dtype);
  out.sizes = sym_ints(meta.sizes);
  out.requires_grad = meta.requires_grad;
  out.device = from_device(meta.device);
  out.strides = sym_ints(meta.strides);
  out.storage_offset = sym_int(meta.storage_offset);
  out.layout = schema::Layout::kStrided;
  return out;
}

}  // namespace

GraphExporter::GraphExporter(const GraphModule& module, const ValueTypes& types, Problems& problems,
                             bool node_meta)
    : module_(module),
      graph_(module.graph()),
      types_(types),
      problems_(problems),
      node_meta_(node_meta) {
  if (const auto* origin = module.meta().get<Pt2OriginPtr>(kPt2OriginKey)) origin_ = *origin;
}

schema::ExportedProgram GraphExporter::build() {
  out_ = &program_.graph_module.graph;
  find_constant_inputs();
  find_mutations();
  name_values();
  add_attributes();
  add_user_inputs();
  add_nodes();
  add_mutations();
  add_outputs();
  add_module_calls();
  add_ranges();
  program_.opset_version.emplace_back("aten", kAtenOpset);
  program_.schema_major = schema::kMajorVersion;
  program_.schema_minor = schema::kMinorVersion;
  program_.torch_version = compiled_torch_version();
  // The dialect of programs whose operators may write; a program without such operators that
  // changes state by its signature is of the functional one.
  const bool was_functional =
      origin_ && std::ranges::find(origin_->verifiers, kTraining) == origin_->verifiers.end();
  program_.verifiers = {functional_ && (was_functional || !mutations_.empty()) ? "ATEN"
                                                                               : kTraining};
  return std::move(program_);
}

std::string GraphExporter::where(const Node& node) const { return shown(node.name()); }

std::string GraphExporter::fresh_name(const std::string& candidate) {
  std::string name = candidate;
  for (std::size_t i = 1; !taken_.insert(name).second; ++i)
    name = candidate + "_" + std::to_string(i);
  return name;
}

const ValueType& GraphExporter::type_of(const Node& node) const {
  static const ValueType kUnknown;
  auto it = types_.of.find(&node);
  return it == types_.of.end() ? kUnknown : it->second;
}

void GraphExporter::declare(const std::string& name, const ValueMetaPtr& meta) {
  if (!declared_.insert(name).second) return;
  switch (meta->kind) {
    case ValueMeta::Kind::kTensor:
      if (!from_scalar_type(meta->dtype))
        problems_.add(std::string("tensors of type ") + at::toString(meta->dtype) +
                          " have no form in an exported program",
                      shown(name));
      else
        out_->tensor_values.emplace_back(name, tensor_meta_of(*meta));
      return;
    case ValueMeta::Kind::kInt:
      out_->sym_int_values.emplace_back(name, sym_int(meta->number));
      return;
    case ValueMeta::Kind::kBool: {
      schema::SymBool value{meta->number.value != 0, nullptr};
      if (meta->number.expr)
        value.expr = std::make_shared<schema::SymExpr>(
            schema::SymExpr{expression_for_python(*meta->number.expr), std::nullopt});
      out_->sym_bool_values.emplace_back(name, value);
      return;
    }
    case ValueMeta::Kind::kFloat: {
      schema::SymFloat value{meta->real, nullptr};
      if (meta->number.expr)
        value.expr = std::make_shared<schema::SymExpr>(
            schema::SymExpr{expression_for_python(*meta->number.expr), std::nullopt});
      out_->sym_float_values.emplace_back(name, value);
      return;
    }
  }
}

schema::Argument GraphExporter::name_argument(const std::string& name,
                                              const ValueMeta& meta) const {
  switch (meta.kind) {
    case ValueMeta::Kind::kInt:
      return {schema::SymIntArgument{name}};
    case ValueMeta::Kind::kFloat:
      return {schema::SymFloatArgument{name}};
    case ValueMeta::Kind::kBool:
      return {schema::SymBoolArgument{name}};
    case ValueMeta::Kind::kTensor:
      break;
  }
  return {schema::TensorArgument{name}};
}

// --- inputs

/// Inputs whose value is fixed: nothing reads them but the check that GraphImporter adds.
void GraphExporter::find_constant_inputs() {
  for (const Node* input : graph_.placeholders()) {
    if (input->num_args() == 0) continue;
    std::vector<const Node*> checks;
    bool only_checked = true;
    for (const Node* user : input->users()) {
      const Node* assertion = user->num_users() == 1 ? *user->users().begin() : nullptr;
      only_checked = only_checked && user->calls("operator.eq") && user->num_args() == 2 &&
                     user->arg(1) == input->arg(0) && assertion != nullptr &&
                     assertion->calls("aten::_assert_scalar");
      checks.insert(checks.end(), {user, assertion});
    }
    if (!only_checked) {
      problems_.add(
          "inputs with a default value that the graph computes with have no form: "
          "exported programs fix the value",
          "input " + shown(input->target().str()));
      continue;
    }
    constant_inputs_.insert(input);
    skipped_.insert(checks.begin(), checks.end());
  }
}

/// The copies right before the output that a signature can say.
void GraphExporter::find_mutations() {
  std::vector<const Node*> copies;
  const Node* node = graph_.output_node().prev();
  std::unordered_set<const Node*> targets, sources;
  for (; node != nullptr && node->calls("aten::copy_"); node = node->prev()) {
    if (node->num_users() > 0 || node->num_args() != 2 || !node->kwargs().empty()) break;
    const Node* target = node->arg(0).node_or_null();
    const Node* source = node->arg(1).node_or_null();
    if (target == nullptr || source == nullptr || !is_state(*target)) break;
    const ValueMetaPtr &to = type_of(*target).meta, &from = type_of(*source).meta;
    // All copies of a signature happen at once: nothing may be copied that is changed too.
    if (!to || !from || to->str() != from->str() || !targets.insert(target).second) break;
    if (target->op() == Opcode::kGetAttr && module_.constants().contains(target->target().str()))
      break;
    sources.insert(source);
    copies.push_back(node);
  }
  const bool independent =
      std::ranges::none_of(sources, [&](const Node* source) { return is_state(*source); });
  functional_ = true;
  for (const Node& other : graph_.nodes())
    if (std::ranges::find(copies, &other) == copies.end() && writes(other)) functional_ = false;
  if (!copies.empty() && !independent) functional_ = false;
  if (!functional_) return;
  mutations_.assign(copies.rbegin(), copies.rend());
  skipped_.insert(copies.begin(), copies.end());
}

void GraphExporter::name_values() {
  for (const Node& node : graph_.nodes()) taken_.insert(std::string(node.name()));
  for (const Node& node : graph_.nodes()) {
    std::string name(node.name());
    // The name that the caller gave an input, if Python's rules for names changed it.
    if (node.is_placeholder() && node.target().str() != name &&
        taken_.insert(node.target().str()).second)
      name = node.target().str();
    names_.emplace(&node, std::move(name));
  }
}

void GraphExporter::add_attributes() {
  using Kind = schema::InputSpec::Kind;
  struct Attribute {
    Kind kind;
    std::string path;
    at::Tensor tensor;
    bool persistent = true;
  };
  std::vector<Attribute> all;
  std::set<std::string> state;
  for (const auto& [name, tensor] : module_.state_dict()) state.insert(name);
  for (const auto& item : module_.named_parameters())
    if (item.value().defined()) all.push_back({Kind::kParameter, item.key(), item.value()});
  for (const auto& item : module_.named_buffers())
    if (item.value().defined())
      all.push_back({Kind::kBuffer, item.key(), item.value(), state.contains(item.key())});
  for (const auto& [name, tensor] : module_.constants())
    if (tensor.defined()) all.push_back({Kind::kTensorConstant, name, tensor});

  std::map<std::string, std::size_t> order;  // of their first get_attr nodes
  for (const Node& node : graph_.nodes()) {
    if (node.op() != Opcode::kGetAttr) continue;
    const std::string& path = node.target().str();
    skipped_.insert(&node);
    if (module_.nested_graph(path) != nullptr) continue;  // written where it is called
    if (std::ranges::find(all, path, &Attribute::path) == all.end()) {
      problems_.add("get_attr of something that is no tensor has no form", where(node));
      continue;
    }
    order.emplace(path, order.size());
    attributes_.emplace(path, names_.at(&node));
    names_[&node] = attributes_.at(path);
  }
  // The state in its own order, so that the state dict is what it was.
  for (const auto& [name, tensor] : module_.state_dict()) {
    auto found = std::ranges::find(all, name, &Attribute::path);
    if (found != all.end())
      weights_.push_back({name, found->tensor, found->kind == Kind::kParameter});
  }
  auto rank = [&](const Attribute& attribute) {
    auto it = order.find(attribute.path);
    return std::pair(attribute.kind, it == order.end() ? order.size() : it->second);
  };
  std::ranges::stable_sort(all, {}, rank);
  for (const Attribute& attribute : all) {
    if (attribute.kind == Kind::kTensorConstant || !attribute.persistent)
      constants_.push_back({attribute.path, attribute.tensor, false});
    add_attribute(attribute.kind, attribute.path, attribute.tensor, attribute.persistent);
  }
}

void GraphExporter::add_attribute(schema::InputSpec::Kind kind, const std::string& path,
                                  at::Tensor tensor, bool persistent) {
  auto [name, unused] = attributes_.try_emplace(path);
  if (unused) {
    const char* prefix = kind == schema::InputSpec::Kind::kParameter ? "p_"
                         : kind == schema::InputSpec::Kind::kBuffer  ? "b_"
                                                                     : "c_";
    name->second = fresh_name(prefix + flat_name(path));
  }
  if (!from_scalar_type(tensor.scalar_type())) {
    problems_.add(std::string("tensors of type ") + at::toString(tensor.scalar_type()) +
                      " have no form in an exported program",
                  shown(path));
    return;
  }
  ValueMeta meta;
  meta.dtype = tensor.scalar_type();
  meta.requires_grad = tensor.requires_grad();
  for (std::int64_t size : tensor.sizes()) meta.sizes.push_back({size, nullptr});
  for (std::int64_t stride : tensor.strides()) meta.strides.push_back({stride, nullptr});
  declare(name->second, std::make_shared<ValueMeta>(meta));
  const schema::Argument argument{schema::TensorArgument{name->second}};
  out_->inputs.push_back(argument);
  program_.graph_module.signature.input_specs.push_back({kind, argument, path, persistent});
}

void GraphExporter::add_user_inputs() {
  using Kind = schema::InputSpec::Kind;
  auto& specs = program_.graph_module.signature.input_specs;
  for (const Node* input : graph_.placeholders()) {
    const std::string place = "input " + shown(input->target().str());
    skipped_.insert(input);
    if (constant_inputs_.contains(input)) {
      schema::Argument value = constant_value(input->arg(0), place);
      out_->inputs.push_back(value);
      specs.push_back({Kind::kConstantInput, value, names_.at(input), true});
      continue;
    }
    const ValueType& type = type_of(*input);
    if (type.kind != ValueType::Kind::kValue) continue;  // told already
    if (type.meta->kind == ValueMeta::Kind::kFloat || type.meta->kind == ValueMeta::Kind::kBool) {
      problems_.add("inputs that are floats or bools have no form: exported programs fix them",
                    place);
      continue;
    }
    declare(names_.at(input), type.meta);
    const schema::Argument argument = name_argument(names_.at(input), *type.meta);
    out_->inputs.push_back(argument);
    specs.push_back({Kind::kUserInput, argument, {}, true});
  }
}

schema::Argument GraphExporter::constant_value(const Argument& value, const std::string& where) {
  switch (value.kind()) {
    case Argument::Kind::kNone:
      return {std::monostate()};
    case Argument::Kind::kBool:
      return {value.to_bool()};
    case Argument::Kind::kInt:
      return {value.to_int()};
    case Argument::Kind::kFloat:
      return {value.to_double()};
    case Argument::Kind::kString:
      return {value.to_string()};
    default:
      problems_.add("default values that are neither numbers nor strings have no form", where);
      return {std::monostate()};
  }
}

// --- outputs

void GraphExporter::add_mutations() {
  using Kind = schema::OutputSpec::Kind;
  for (const Node* copy : mutations_) {
    const Node& target = copy->arg(0).node();
    const schema::Argument value = export_node(copy->arg(1).node(), where(*copy));
    schema::OutputSpec spec{Kind::kUserInputMutation, value, names_.at(&target)};
    if (target.op() == Opcode::kGetAttr) {
      const std::string& path = target.target().str();
      spec.target = path;
      spec.kind = module_.named_parameters().contains(path) ? Kind::kParameterMutation
                                                            : Kind::kBufferMutation;
    }
    out_->outputs.push_back(value);
    program_.graph_module.signature.output_specs.push_back(std::move(spec));
  }
}

/// The structure of a result, and its leaves: everything but tuples, lists and dicts.
TreeSpec GraphExporter::flatten_output(const Argument& value, std::vector<Argument>& leaves) const {
  TreeSpec tree;
  if (value.kind() == Argument::Kind::kTuple || value.kind() == Argument::Kind::kList) {
    tree.kind =
        value.kind() == Argument::Kind::kTuple ? TreeSpec::Kind::kTuple : TreeSpec::Kind::kList;
    for (const Argument& item : value.items())
      tree.children.push_back(flatten_output(item, leaves));
  } else if (value.kind() == Argument::Kind::kDict) {
    tree.kind = TreeSpec::Kind::kDict;
    for (const auto& [key, item] : value.dict_items()) {
      tree.keys.push_back(key.kind() == Argument::Kind::kString ? key.to_string() : repr(key));
      tree.children.push_back(flatten_output(item, leaves));
    }
  } else {
    leaves.push_back(value);
  }
  return tree;
}

void GraphExporter::add_outputs() {
  const Node& output = graph_.output_node();
  std::vector<Argument> leaves;
  TreeSpec tree = flatten_output(output.num_args() > 0 ? output.arg(0) : Argument(), leaves);
  if (!module_.out_spec()) {
    // A sequence that an operator gives is one more level.
    std::vector<Argument> flat;
    std::size_t position = 0;
    auto expand = [&](auto&& self, TreeSpec& spec) -> void {
      if (spec.kind != TreeSpec::Kind::kLeaf) {
        for (TreeSpec& child : spec.children) self(self, child);
        return;
      }
      const Argument leaf = leaves[position++];
      const Node* node = leaf.node_or_null();
      if (node == nullptr || type_of(*node).kind != ValueType::Kind::kSequence) {
        flat.push_back(leaf);
        return;
      }
      const auto& names = elements_[node];
      spec.kind = TreeSpec::Kind::kTuple;
      spec.children.assign(names.size(), TreeSpec());
      flat.push_back(leaf);
    };
    expand(expand, tree);
    leaves = std::move(flat);
  }
  auto& specs = program_.graph_module.signature.output_specs;
  std::size_t count = 0;
  for (const Argument& leaf : leaves) {
    schema::Argument value = export_argument(leaf, nullptr, "the output");
    std::vector<schema::Argument> values{value};
    if (const auto* list = value.get<std::vector<schema::TensorArgument>>()) {
      values.clear();
      for (const schema::TensorArgument& tensor : *list) values.push_back({tensor});
    }
    for (schema::Argument& item : values) {
      ++count;
      out_->outputs.push_back(item);
      specs.push_back({schema::OutputSpec::Kind::kUserOutput, std::move(item), {}});
    }
  }
  program_.graph_module.module_call_graph.push_back({"", schema::ModuleCallSignature{}});
  schema::ModuleCallSignature& root = *program_.graph_module.module_call_graph[0].signature;
  auto& fields = program_.graph_module.treespec_namedtuple_fields;
  if (origin_ && module_.out_spec() && *module_.out_spec() == origin_->out_spec) {
    root.out_spec = origin_->out_spec_text;
    fields = origin_->namedtuple_fields;
  } else {
    root.out_spec = treespec_json(module_.out_spec().value_or(tree), fields);
  }
  if (module_.out_spec() && module_.out_spec()->num_leaves() != count)
    problems_.add("out_spec " + treespec_str(*module_.out_spec()) + " does not have the " +
                      std::to_string(count) + " outputs of the graph",
                  "the output");
}

void GraphExporter::add_module_calls() {
  schema::ModuleCallSignature& root = *program_.graph_module.module_call_graph[0].signature;
  auto& fields = program_.graph_module.treespec_namedtuple_fields;
  const std::vector<Node*> inputs = graph_.placeholders();
  TreeSpec in_spec;
  if (module_.in_spec()) {
    in_spec = *module_.in_spec();
  } else {
    TreeSpec args, kwargs;
    args.kind = TreeSpec::Kind::kTuple;
    args.children.resize(inputs.size());
    kwargs.kind = TreeSpec::Kind::kDict;
    in_spec.kind = TreeSpec::Kind::kTuple;
    in_spec.children = {std::move(args), std::move(kwargs)};
  }
  if (in_spec.num_leaves() != inputs.size())
    problems_.add("in_spec " + treespec_str(in_spec) + " does not have the " +
                      std::to_string(inputs.size()) + " inputs of the graph",
                  "the inputs");
  if (in_spec.children.size() == 2)
    for (const std::string& key : in_spec.children[1].keys)
      if (!is_identifier(key))
        problems_.add(
            "a keyword input " + shown(key) + ", wanted an identifier: Python makes code of it",
            "the inputs");
  const bool same_inputs = origin_ && module_.in_spec() && in_spec == origin_->in_spec &&
                           inputs.size() == origin_->num_inputs;
  if (same_inputs) {
    root.in_spec = origin_->in_spec_text;
    // Python makes code of names and guards.
    if (std::ranges::all_of(origin_->forward_arg_names, is_identifier))
      root.forward_arg_names = origin_->forward_arg_names;
    for (const std::string& guard : origin_->guards_code)
      if (std::optional<std::string> text = rewritten_guard(guard))
        program_.guards_code.push_back(std::move(*text));
    for (const auto& field : origin_->namedtuple_fields)
      if (std::ranges::find(fields, field.first, &NamedTupleFields::value_type::first) ==
          fields.end())
        fields.push_back(field);
  } else {
    root.in_spec = treespec_json(in_spec, fields);
    if (!module_.in_spec())
      for (const Node* input : inputs) root.forward_arg_names.push_back(names_.at(input));
  }
  if (origin_)
    for (const std::string& module : origin_->modules)
      program_.graph_module.module_call_graph.push_back({module, std::nullopt});
}

void GraphExporter::add_ranges() {
  auto add = [&](const RangeConstraints& ranges) {
    for (const auto& [symbol, range] : ranges)
      program_.range_constraints.emplace_back(symbol,
                                              schema::RangeConstraint{range.first, range.second});
  };
  if (const auto* ranges = module_.meta().get<RangeConstraints>("range_constraints")) add(*ranges);
  add(types_.new_symbols);
}

}  // namespace fx::io
