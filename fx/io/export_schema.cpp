#include "fx/io/export_schema.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/io/json.h"
#include "fx/io/shown.h"

namespace fx::io::schema {
namespace {

constexpr std::size_t kMaxName = 1000;             // bytes of a node, value or attribute name
constexpr std::size_t kMaxExpression = 64 * 1024;  // bytes of a symbolic expression or guard
constexpr std::int64_t kMaxAtenOpset = 10;

/// Reads the concepts of the schema. Every read_ function takes the value that holds the concept.
class SchemaReader {
 public:
  ExportedProgram read_program(const JsonValue& value);
  PayloadConfig read_payload_config(const JsonValue& value);

 private:
  template <typename Fn>
  auto read_list(const JsonValue& value, Fn&& fn) -> std::vector<std::decay_t<decltype(fn(value))>>;
  template <typename Fn>
  auto read_map(const JsonValue& value, Fn&& fn) -> Map<std::decay_t<decltype(fn(value))>>;

  std::string read_string(const JsonValue& value) { return std::string(value.to_string()); }
  std::string read_name(const JsonValue& value);
  std::vector<std::string> read_strings(const JsonValue& value);
  template <typename Enum>
  Enum read_enum(const JsonValue& value, std::initializer_list<std::pair<int, int>> ranges);
  ScalarType read_scalar_type(const JsonValue& value);
  Layout read_layout(const JsonValue& value);
  MemoryFormat read_memory_format(const JsonValue& value);
  Device read_device(const JsonValue& value);

  std::shared_ptr<const SymExpr> read_sym_expr(const JsonValue& value);
  SymInt read_sym_int(const JsonValue& value);
  SymFloat read_sym_float(const JsonValue& value);
  SymBool read_sym_bool(const JsonValue& value);
  TensorMeta read_tensor_meta(const JsonValue& value);

  TensorArgument read_tensor_argument(const JsonValue& value);
  SymIntArgument read_sym_int_argument(const JsonValue& value);
  SymFloatArgument read_sym_float_argument(const JsonValue& value);
  SymBoolArgument read_sym_bool_argument(const JsonValue& value);
  OptionalTensorArgument read_optional_tensor(const JsonValue& value);
  CustomObjArgument read_custom_obj(const JsonValue& value);
  GraphArgument read_graph_argument(const JsonValue& value);
  std::complex<double> read_complex(const JsonValue& value);
  Argument read_argument(const JsonValue& value);
  NamedArgument read_named_argument(const JsonValue& value);
  Argument read_constant_value(const JsonValue& value);

  Node read_node(const JsonValue& value);
  Graph read_graph(const JsonValue& value);
  InputSpec read_input_spec(const JsonValue& value);
  OutputSpec read_output_spec(const JsonValue& value);
  ModuleCallSignature read_module_call_signature(const JsonValue& value);
  ModuleCallEntry read_module_call_entry(const JsonValue& value);
  GraphModule read_graph_module(const JsonValue& value);
  RangeConstraint read_range_constraint(const JsonValue& value);
  PayloadMeta read_payload_meta(const JsonValue& value);
};

template <typename Fn>
auto SchemaReader::read_list(const JsonValue& value, Fn&& fn)
    -> std::vector<std::decay_t<decltype(fn(value))>> {
  std::vector<std::decay_t<decltype(fn(value))>> items;
  value.for_each([&](const JsonValue& item) { items.push_back(fn(item)); });
  return items;
}

template <typename Fn>
auto SchemaReader::read_map(const JsonValue& value, Fn&& fn)
    -> Map<std::decay_t<decltype(fn(value))>> {
  Map<std::decay_t<decltype(fn(value))>> map;
  std::unordered_set<std::string_view> keys;
  value.for_each_member([&](std::string_view key, const JsonValue& item) {
    if (!keys.insert(key).second) value.fail("the key " + shown(key) + " occurs twice");
    if (has_control_characters(key))
      value.fail("the key " + shown(key) + " holds control characters");
    map.emplace_back(std::string(key), fn(item));
  });
  return map;
}

std::string SchemaReader::read_name(const JsonValue& value) {
  std::string_view name = value.to_string();
  if (name.empty()) value.fail("an empty name");
  if (name.size() > kMaxName)
    value.fail("a name of " + std::to_string(name.size()) + " bytes, at most " +
               std::to_string(kMaxName) + " are allowed");
  if (has_control_characters(name))
    value.fail("the name " + shown(name) + " holds control characters");
  return std::string(name);
}

std::vector<std::string> SchemaReader::read_strings(const JsonValue& value) {
  return read_list(value, [this](const JsonValue& item) { return read_string(item); });
}

/// An enum whose valid numbers are the given ranges, both ends included.
template <typename Enum>
Enum SchemaReader::read_enum(const JsonValue& value,
                             std::initializer_list<std::pair<int, int>> ranges) {
  std::int64_t number = value.to_int();
  for (auto [low, high] : ranges)
    if (number >= low && number <= high) return static_cast<Enum>(number);
  value.fail("unknown value " + std::to_string(number));
}

ScalarType SchemaReader::read_scalar_type(const JsonValue& value) {
  return read_enum<ScalarType>(value, {{1, 13}, {28, 35}});
}

Layout SchemaReader::read_layout(const JsonValue& value) {
  return read_enum<Layout>(value, {{1, 7}});
}

MemoryFormat SchemaReader::read_memory_format(const JsonValue& value) {
  return read_enum<MemoryFormat>(value, {{1, 4}});
}

Device SchemaReader::read_device(const JsonValue& value) {
  JsonObject object(value, {"type", "index"});
  Device device{read_name(object.at("type")), std::nullopt};
  if (auto index = object.find("index")) device.index = index->to_int(0, 127);
  return device;
}

std::shared_ptr<const SymExpr> SchemaReader::read_sym_expr(const JsonValue& value) {
  JsonObject object(value, {"expr_str", "hint"});
  auto expr = std::make_shared<SymExpr>();
  std::string_view text = object.at("expr_str").to_string();
  if (text.size() > kMaxExpression)
    object.at("expr_str").fail("an expression of " + std::to_string(text.size()) + " bytes");
  expr->text = text;
  if (auto hint = object.find("hint")) {
    JsonUnion tagged(*hint);
    if (tagged.tag() == "as_int") {
      expr->hint = tagged.value().to_int();
    } else if (tagged.tag() == "as_bool") {
      expr->hint = tagged.value().to_bool();
    } else if (tagged.tag() == "as_float") {
      expr->hint = tagged.value().to_double();
    } else {
      tagged.fail_tag("SymExprHint");
    }
  }
  return expr;
}

SymInt SchemaReader::read_sym_int(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_int") return {tagged.value().to_int(), nullptr};
  if (tagged.tag() == "as_expr") return {0, read_sym_expr(tagged.value())};
  tagged.fail_tag("SymInt");
}

SymFloat SchemaReader::read_sym_float(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_float") return {tagged.value().to_double(), nullptr};
  if (tagged.tag() == "as_expr") return {0, read_sym_expr(tagged.value())};
  tagged.fail_tag("SymFloat");
}

SymBool SchemaReader::read_sym_bool(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_bool") return {tagged.value().to_bool(), nullptr};
  if (tagged.tag() == "as_expr") return {false, read_sym_expr(tagged.value())};
  tagged.fail_tag("SymBool");
}

TensorMeta SchemaReader::read_tensor_meta(const JsonValue& value) {
  JsonObject object(
      value, {"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  auto sym_ints = [this](const JsonValue& list) {
    return read_list(list, [this](const JsonValue& item) { return read_sym_int(item); });
  };
  TensorMeta meta;
  meta.dtype = read_scalar_type(object.at("dtype"));
  meta.sizes = sym_ints(object.at("sizes"));
  meta.requires_grad = object.at("requires_grad").to_bool();
  meta.device = read_device(object.at("device"));
  meta.strides = sym_ints(object.at("strides"));
  meta.storage_offset = read_sym_int(object.at("storage_offset"));
  meta.layout = read_layout(object.at("layout"));
  return meta;
}

TensorArgument SchemaReader::read_tensor_argument(const JsonValue& value) {
  JsonObject object(value, {"name"});
  return {read_name(object.at("name"))};
}

SymIntArgument SchemaReader::read_sym_int_argument(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_name") return {read_name(tagged.value())};
  if (tagged.tag() == "as_int") return {tagged.value().to_int()};
  tagged.fail_tag("SymIntArgument");
}

SymFloatArgument SchemaReader::read_sym_float_argument(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_name") return {read_name(tagged.value())};
  if (tagged.tag() == "as_float") return {tagged.value().to_double()};
  tagged.fail_tag("SymFloatArgument");
}

SymBoolArgument SchemaReader::read_sym_bool_argument(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_name") return {read_name(tagged.value())};
  if (tagged.tag() == "as_bool") return {tagged.value().to_bool()};
  tagged.fail_tag("SymBoolArgument");
}

OptionalTensorArgument SchemaReader::read_optional_tensor(const JsonValue& value) {
  JsonUnion tagged(value);
  if (tagged.tag() == "as_tensor") return read_tensor_argument(tagged.value());
  if (tagged.tag() == "as_none") {
    tagged.value().to_bool();
    return std::nullopt;
  }
  tagged.fail_tag("OptionalTensorArgument");
}

CustomObjArgument SchemaReader::read_custom_obj(const JsonValue& value) {
  JsonObject object(value, {"name", "class_fqn"});
  return {read_name(object.at("name")), read_string(object.at("class_fqn"))};
}

GraphArgument SchemaReader::read_graph_argument(const JsonValue& value) {
  JsonObject object(value, {"name", "graph"});
  return {read_name(object.at("name")),
          std::make_shared<const Graph>(read_graph(object.at("graph")))};
}

std::complex<double> SchemaReader::read_complex(const JsonValue& value) {
  JsonObject object(value, {"real", "imag"});
  return {object.at("real").to_double(), object.at("imag").to_double()};
}

/// The order of Argument::Value.
constexpr std::array<std::string_view, std::variant_size_v<Argument::Value>> kTags = {
    "as_none",
    "as_tensor",
    "as_tensors",
    "as_int",
    "as_ints",
    "as_float",
    "as_floats",
    "as_string",
    "as_strings",
    "as_sym_int",
    "as_sym_ints",
    "as_scalar_type",
    "as_memory_format",
    "as_layout",
    "as_device",
    "as_bool",
    "as_bools",
    "as_sym_bool",
    "as_sym_bools",
    "as_graph",
    "as_optional_tensors",
    "as_custom_obj",
    "as_operator",
    "as_sym_float",
    "as_sym_floats",
    "as_optional_tensor",
    "as_complex",
    "as_nested_tensors",
    "as_int_lists",
    "as_string_to_argument",
    "as_float_lists"};

Argument SchemaReader::read_argument(const JsonValue& value) {
  JsonUnion tagged(value);
  const JsonValue v = tagged.value();
  auto tensors = [this](const JsonValue& list) {
    return read_list(list, [this](const JsonValue& item) { return read_tensor_argument(item); });
  };
  auto ints = [this](const JsonValue& list) {
    return read_list(list, [](const JsonValue& item) { return item.to_int(); });
  };
  auto floats = [this](const JsonValue& list) {
    return read_list(list, [](const JsonValue& item) { return item.to_double(); });
  };
  std::size_t tag =
      static_cast<std::size_t>(std::ranges::find(kTags, tagged.tag()) - kTags.begin());
  switch (tag) {
    case 0:
      v.to_bool();
      return {std::monostate{}};
    case 1:
      return {read_tensor_argument(v)};
    case 2:
      return {tensors(v)};
    case 3:
      return {v.to_int()};
    case 4:
      return {ints(v)};
    case 5:
      return {v.to_double()};
    case 6:
      return {floats(v)};
    case 7:
      return {read_string(v)};
    case 8:
      return {read_strings(v)};
    case 9:
      return {read_sym_int_argument(v)};
    case 10:
      return {read_list(v, [this](const JsonValue& item) { return read_sym_int_argument(item); })};
    case 11:
      return {read_scalar_type(v)};
    case 12:
      return {read_memory_format(v)};
    case 13:
      return {read_layout(v)};
    case 14:
      return {read_device(v)};
    case 15:
      return {v.to_bool()};
    case 16:
      return {read_list(v, [](const JsonValue& item) { return item.to_bool(); })};
    case 17:
      return {read_sym_bool_argument(v)};
    case 18:
      return {read_list(v, [this](const JsonValue& item) { return read_sym_bool_argument(item); })};
    case 19:
      return {read_graph_argument(v)};
    case 20:
      return {read_list(v, [this](const JsonValue& item) { return read_optional_tensor(item); })};
    case 21:
      return {read_custom_obj(v)};
    case 22:
      return {OperatorArgument{read_name(v)}};
    case 23:
      return {read_sym_float_argument(v)};
    case 24:
      return {
          read_list(v, [this](const JsonValue& item) { return read_sym_float_argument(item); })};
    case 25:
      return {read_optional_tensor(v)};
    case 26:
      return {read_complex(v)};
    case 27:
      return {read_list(v, tensors)};
    case 28:
      return {read_list(v, ints)};
    case 29:
      return {read_map(v, [this](const JsonValue& item) { return read_argument(item); })};
    case 30:
      return {read_list(v, floats)};
    default:
      tagged.fail_tag("Argument");
  }
}

NamedArgument SchemaReader::read_named_argument(const JsonValue& value) {
  JsonObject object(value, {"name", "arg", "kind"});
  NamedArgument argument;
  argument.name = read_string(object.at("name"));
  argument.arg = read_argument(object.at("arg"));
  if (auto kind = object.find("kind")) argument.kind = read_enum<ArgumentKind>(*kind, {{0, 2}});
  return argument;
}

Argument SchemaReader::read_constant_value(const JsonValue& value) {
  JsonUnion tagged(value);
  const JsonValue v = tagged.value();
  if (tagged.tag() == "as_none") {
    v.to_bool();
    return {std::monostate{}};
  }
  if (tagged.tag() == "as_int") return {v.to_int()};
  if (tagged.tag() == "as_float") return {v.to_double()};
  if (tagged.tag() == "as_string") return {read_string(v)};
  if (tagged.tag() == "as_bool") return {v.to_bool()};
  tagged.fail_tag("ConstantValue");
}

Node SchemaReader::read_node(const JsonValue& value) {
  JsonObject object(
      value, {"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  Node node;
  node.target = read_name(object.at("target"));
  node.inputs = read_list(object.at("inputs"),
                          [this](const JsonValue& item) { return read_named_argument(item); });
  node.outputs = read_list(object.at("outputs"),
                           [this](const JsonValue& item) { return read_argument(item); });
  node.metadata =
      read_map(object.at("metadata"), [this](const JsonValue& item) { return read_string(item); });
  if (auto single = object.find("is_hop_single_tensor_return"))
    node.is_hop_single_tensor_return = single->to_bool();
  if (auto name = object.find("name")) node.name = read_name(*name);
  return node;
}

Graph SchemaReader::read_graph(const JsonValue& value) {
  JsonObject object(
      value, {"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
              "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  auto arguments = [this](const JsonValue& list) {
    return read_list(list, [this](const JsonValue& item) { return read_argument(item); });
  };
  Graph graph;
  graph.inputs = arguments(object.at("inputs"));
  graph.outputs = arguments(object.at("outputs"));
  graph.nodes =
      read_list(object.at("nodes"), [this](const JsonValue& item) { return read_node(item); });
  graph.tensor_values = read_map(object.at("tensor_values"),
                                 [this](const JsonValue& item) { return read_tensor_meta(item); });
  graph.sym_int_values = read_map(object.at("sym_int_values"),
                                  [this](const JsonValue& item) { return read_sym_int(item); });
  graph.sym_bool_values = read_map(object.at("sym_bool_values"),
                                   [this](const JsonValue& item) { return read_sym_bool(item); });
  if (auto single = object.find("is_single_tensor_return"))
    graph.is_single_tensor_return = single->to_bool();
  if (auto objects = object.find("custom_obj_values"))
    graph.custom_obj_values =
        read_map(*objects, [this](const JsonValue& item) { return read_custom_obj(item); });
  if (auto floats = object.find("sym_float_values"))
    graph.sym_float_values =
        read_map(*floats, [this](const JsonValue& item) { return read_sym_float(item); });
  return graph;
}

InputSpec SchemaReader::read_input_spec(const JsonValue& value) {
  using Kind = InputSpec::Kind;
  JsonUnion tagged(value);
  const JsonValue v = tagged.value();
  InputSpec spec;
  if (tagged.tag() == "user_input") {
    JsonObject object(v, {"arg"});
    spec.kind = Kind::kUserInput;
    spec.arg = read_argument(object.at("arg"));
  } else if (tagged.tag() == "parameter") {
    JsonObject object(v, {"arg", "parameter_name"});
    spec.kind = Kind::kParameter;
    spec.arg = {read_tensor_argument(object.at("arg"))};
    spec.target = read_name(object.at("parameter_name"));
  } else if (tagged.tag() == "buffer") {
    JsonObject object(v, {"arg", "buffer_name", "persistent"});
    spec.kind = Kind::kBuffer;
    spec.arg = {read_tensor_argument(object.at("arg"))};
    spec.target = read_name(object.at("buffer_name"));
    spec.persistent = object.at("persistent").to_bool();
  } else if (tagged.tag() == "tensor_constant") {
    JsonObject object(v, {"arg", "tensor_constant_name"});
    spec.kind = Kind::kTensorConstant;
    spec.arg = {read_tensor_argument(object.at("arg"))};
    spec.target = read_name(object.at("tensor_constant_name"));
  } else if (tagged.tag() == "custom_obj") {
    JsonObject object(v, {"arg", "custom_obj_name"});
    spec.kind = Kind::kCustomObj;
    spec.arg = {read_custom_obj(object.at("arg"))};
    spec.target = read_name(object.at("custom_obj_name"));
  } else if (tagged.tag() == "token") {
    JsonObject object(v, {"arg"});
    spec.kind = Kind::kToken;
    spec.arg = {read_tensor_argument(object.at("arg"))};
  } else if (tagged.tag() == "constant_input") {
    JsonObject object(v, {"name", "value"});
    spec.kind = Kind::kConstantInput;
    spec.arg = read_constant_value(object.at("value"));
    spec.target = read_name(object.at("name"));
  } else {
    tagged.fail_tag("InputSpec");
  }
  return spec;
}

OutputSpec SchemaReader::read_output_spec(const JsonValue& value) {
  using Kind = OutputSpec::Kind;
  struct Row {
    std::string_view tag;
    Kind kind;
    std::string_view target_key;
  };
  static constexpr std::array kRows = {
      Row{"user_output", Kind::kUserOutput, ""},
      Row{"loss_output", Kind::kLossOutput, ""},
      Row{"buffer_mutation", Kind::kBufferMutation, "buffer_name"},
      Row{"gradient_to_parameter", Kind::kGradientToParameter, "parameter_name"},
      Row{"gradient_to_user_input", Kind::kGradientToUserInput, "user_input_name"},
      Row{"user_input_mutation", Kind::kUserInputMutation, "user_input_name"},
      Row{"token", Kind::kToken, ""},
      Row{"parameter_mutation", Kind::kParameterMutation, "parameter_name"},
  };
  JsonUnion tagged(value);
  auto row = std::ranges::find(kRows, tagged.tag(), &Row::tag);
  if (row == kRows.end()) tagged.fail_tag("OutputSpec");
  OutputSpec spec;
  spec.kind = row->kind;
  if (row->target_key.empty()) {
    JsonObject object(tagged.value(), {"arg"});
    const JsonValue arg = object.at("arg");
    spec.arg =
        row->kind == Kind::kUserOutput ? read_argument(arg) : Argument{read_tensor_argument(arg)};
  } else {
    JsonObject object(tagged.value(), {"arg", row->target_key});
    spec.arg = {read_tensor_argument(object.at("arg"))};
    spec.target = read_name(object.at(row->target_key));
  }
  return spec;
}

ModuleCallSignature SchemaReader::read_module_call_signature(const JsonValue& value) {
  JsonObject object(value, {"inputs", "outputs", "in_spec", "out_spec", "forward_arg_names"});
  auto arguments = [this](const JsonValue& list) {
    return read_list(list, [this](const JsonValue& item) { return read_argument(item); });
  };
  ModuleCallSignature signature;
  signature.inputs = arguments(object.at("inputs"));
  signature.outputs = arguments(object.at("outputs"));
  signature.in_spec = read_string(object.at("in_spec"));
  signature.out_spec = read_string(object.at("out_spec"));
  if (auto names = object.find("forward_arg_names"))
    signature.forward_arg_names = read_strings(*names);
  return signature;
}

ModuleCallEntry SchemaReader::read_module_call_entry(const JsonValue& value) {
  JsonObject object(value, {"fqn", "signature"});
  ModuleCallEntry entry;
  entry.fqn = read_string(object.at("fqn"));
  if (auto signature = object.find("signature"))
    entry.signature = read_module_call_signature(*signature);
  return entry;
}

GraphModule SchemaReader::read_graph_module(const JsonValue& value) {
  JsonObject object(
      value, {"graph", "signature", "module_call_graph", "metadata", "treespec_namedtuple_fields"});
  GraphModule module;
  module.graph = read_graph(object.at("graph"));
  JsonObject signature(object.at("signature"), {"input_specs", "output_specs"});
  module.signature.input_specs = read_list(
      signature.at("input_specs"), [this](const JsonValue& item) { return read_input_spec(item); });
  module.signature.output_specs =
      read_list(signature.at("output_specs"),
                [this](const JsonValue& item) { return read_output_spec(item); });
  module.module_call_graph =
      read_list(object.at("module_call_graph"),
                [this](const JsonValue& item) { return read_module_call_entry(item); });
  if (auto metadata = object.find("metadata"))
    module.metadata =
        read_map(*metadata, [this](const JsonValue& item) { return read_string(item); });
  if (auto fields = object.find("treespec_namedtuple_fields"))
    module.treespec_namedtuple_fields = read_map(*fields, [this](const JsonValue& item) {
      JsonObject definition(item, {"field_names"});
      return read_strings(definition.at("field_names"));
    });
  return module;
}

RangeConstraint SchemaReader::read_range_constraint(const JsonValue& value) {
  JsonObject object(value, {"min_val", "max_val"});
  RangeConstraint range;
  if (auto min = object.find("min_val")) range.min = min->to_int();
  if (auto max = object.find("max_val")) range.max = max->to_int();
  if (range.min && range.max && *range.min > *range.max)
    value.fail("an empty range, from " + std::to_string(*range.min) + " to " +
               std::to_string(*range.max));
  return range;
}

ExportedProgram SchemaReader::read_program(const JsonValue& value) {
  JsonObject object(value, {"graph_module", "opset_version", "range_constraints", "schema_version",
                            "verifiers", "torch_version", "guards_code"});
  ExportedProgram program;
  // The version first: with another major version, everything else may look different.
  JsonObject version(object.at("schema_version"), {"major", "minor"});
  program.schema_major = version.at("major").to_int();
  program.schema_minor = version.at("minor").to_int();
  if (program.schema_major != kMajorVersion)
    throw ImportError(ErrorCode::kUnsupportedVersion,
                      value.document().label() + ": schema version " +
                          std::to_string(program.schema_major) + "." +
                          std::to_string(program.schema_minor) + " found, version " +
                          std::to_string(kMajorVersion) + ".x is wanted");
  if (auto torch_version = object.find("torch_version"))
    program.torch_version = read_string(*torch_version);
  program.graph_module = read_graph_module(object.at("graph_module"));
  program.opset_version =
      read_map(object.at("opset_version"), [](const JsonValue& item) { return item.to_int(); });
  program.range_constraints =
      read_map(object.at("range_constraints"),
               [this](const JsonValue& item) { return read_range_constraint(item); });
  if (auto verifiers = object.find("verifiers")) program.verifiers = read_strings(*verifiers);
  if (auto guards = object.find("guards_code"))
    program.guards_code = read_list(*guards, [this](const JsonValue& item) {
      if (item.to_string().size() > kMaxExpression) item.fail("a guard of more than 64 kB");
      return read_string(item);
    });

  for (const auto& [name, number] : program.opset_version)
    if (name == "aten" && number > kMaxAtenOpset)
      program.warnings.push_back("operator set aten " + std::to_string(number) + " is newer than " +
                                 std::to_string(kMaxAtenOpset) + ", the newest that is known");
  for (const std::string& key : value.document().unknown_keys())
    program.warnings.push_back("the key " + key + " is unknown and was passed over (schema " +
                               std::to_string(program.schema_major) + "." +
                               std::to_string(program.schema_minor) + ")");
  return program;
}

PayloadMeta SchemaReader::read_payload_meta(const JsonValue& value) {
  JsonObject object(value, {"path_name", "is_param", "use_pickle", "tensor_meta"});
  PayloadMeta meta;
  meta.path_name = read_name(object.at("path_name"));
  if (meta.path_name.find_first_of("/\\") != std::string::npos || meta.path_name.front() == '.')
    object.at("path_name").fail(shown(meta.path_name) + " found, a bare record name is wanted");
  meta.is_param = object.at("is_param").to_bool();
  meta.use_pickle = object.at("use_pickle").to_bool();
  if (auto tensor = object.find("tensor_meta")) meta.tensor_meta = read_tensor_meta(*tensor);
  return meta;
}

PayloadConfig SchemaReader::read_payload_config(const JsonValue& value) {
  JsonObject object(value, {"config"});
  return read_map(object.at("config"),
                  [this](const JsonValue& item) { return read_payload_meta(item); });
}

}  // namespace

std::string_view Argument::tag() const { return kTags[value.index()]; }

ExportedProgram parse_exported_program(const std::string& json, const std::string& label) {
  JsonDocument document(json, label);
  return SchemaReader().read_program(document.root());
}

PayloadConfig parse_payload_config(const std::string& json, const std::string& label) {
  JsonDocument document(json, label);
  return SchemaReader().read_payload_config(document.root());
}

}  // namespace fx::io::schema
