#include "fx/io/export_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/schema_reader.h"

// The large concepts of the schema: nodes, graphs, signatures, programs.

namespace fx::io::schema {
namespace {

constexpr std::int64_t kMaxAtenOpset = 10;

}  // namespace

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

ExportedProgram parse_exported_program(std::string json, const std::string& label) {
  JsonDocument document(std::move(json), label);
  return SchemaReader().read_program(document.root());
}

PayloadConfig parse_payload_config(std::string json, const std::string& label) {
  JsonDocument document(std::move(json), label);
  return SchemaReader().read_payload_config(document.root());
}

}  // namespace fx::io::schema
