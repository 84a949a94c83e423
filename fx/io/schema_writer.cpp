#include "fx/io/schema_writer.h"

#include <array>
#include <string_view>
#include <type_traits>

#include "fx/base/error.h"
#include "fx/io/json_writer.h"
#include "fx/io/shown.h"

namespace fx::io::schema {
namespace {

/// Writes the concepts of the schema, one overload each. A struct is an object whose keys are its
/// fields, a union an object with one key.
class SchemaWriter {
 public:
  std::string take() && { return std::move(json_).take(); }

  void write(bool value) { json_.boolean(value); }
  void write(std::int64_t value) { json_.integer(value); }
  void write(double value) { json_.number(value); }
  void write(const std::string& text) {
    if (!is_utf8(text))
      throw ImportError(ErrorCode::kNotExportable, "the text " + shown(text) + " is not UTF-8");
    json_.string(text);
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void write(Enum value) {
    json_.integer(static_cast<std::int64_t>(value));
  }

  template <typename T>
  void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      json_.null();
  }
  template <typename T>
  void write(const std::vector<T>& list) {
    json_.begin_array();
    for (const T& item : list) write(item);
    json_.end_array();
  }
  void write(const std::vector<bool>& list) {
    json_.begin_array();
    for (bool item : list) json_.boolean(item);
    json_.end_array();
  }
  template <typename T>
  void write(const Map<T>& map) {
    json_.begin_object();
    for (const auto& [key, value] : map) {
      text_key(key);
      write(value);
    }
    json_.end_object();
  }

  void write(const Device& device) { object("type", device.type, "index", device.index); }

  void write(const SymExpr& expr) {
    json_.begin_object().key("expr_str");
    write(expr.text);
    json_.key("hint");
    if (!expr.hint) {
      json_.null();
    } else {
      static constexpr std::array kTags = {"as_int", "as_bool", "as_float"};
      const char* tag = kTags[expr.hint->index()];
      std::visit([&](auto value) { tagged(tag, value); }, *expr.hint);
    }
    json_.end_object();
  }
  template <typename T>
  void write(const SymNumber<T>& number) {
    if (!number.is_known()) return tagged("as_expr", *number.expr);
    if constexpr (std::is_same_v<T, std::int64_t>)
      tagged("as_int", number.value);
    else if constexpr (std::is_same_v<T, double>)
      tagged("as_float", number.value);
    else
      tagged("as_bool", number.value);
  }
  void write(const TensorMeta& meta) {
    object("dtype", meta.dtype, "sizes", meta.sizes, "requires_grad", meta.requires_grad, "device",
           meta.device, "strides", meta.strides, "storage_offset", meta.storage_offset, "layout",
           meta.layout);
  }

  void write(const TensorArgument& a) { object("name", a.name); }
  void write(const SymIntArgument& a) { symbolic(a.value, "as_int"); }
  void write(const SymFloatArgument& a) { symbolic(a.value, "as_float"); }
  void write(const SymBoolArgument& a) { symbolic(a.value, "as_bool"); }
  void write(const OptionalTensorArgument& a) {
    if (a)
      tagged("as_tensor", *a);
    else
      tagged("as_none", true);
  }
  void write(const GraphArgument& a) { object("name", a.name, "graph", *a.graph); }
  void write(const CustomObjArgument& a) { object("name", a.name, "class_fqn", a.class_fqn); }
  void write(const OperatorArgument& a) { write(a.target); }
  void write(std::complex<double> value) { object("real", value.real(), "imag", value.imag()); }
  void write(std::monostate) { json_.boolean(true); }
  void write(const Argument& argument) {
    json_.begin_object().key(argument.tag());
    std::visit([this](const auto& value) { write(value); }, argument.value);
    json_.end_object();
  }

  void write(const NamedArgument& a) { object("name", a.name, "arg", a.arg, "kind", a.kind); }
  void write(const Node& node) {
    object("target", node.target, "inputs", node.inputs, "outputs", node.outputs, "metadata",
           node.metadata, "is_hop_single_tensor_return", node.is_hop_single_tensor_return, "name",
           node.name);
  }
  void write(const Graph& graph) {
    object("inputs", graph.inputs, "outputs", graph.outputs, "nodes", graph.nodes, "tensor_values",
           graph.tensor_values, "sym_int_values", graph.sym_int_values, "sym_bool_values",
           graph.sym_bool_values, "is_single_tensor_return", graph.is_single_tensor_return,
           "custom_obj_values", graph.custom_obj_values, "sym_float_values",
           graph.sym_float_values);
  }

  void write(const InputSpec& spec) {
    using Kind = InputSpec::Kind;
    switch (spec.kind) {
      case Kind::kUserInput:
        return spec_object("user_input", spec.arg, nullptr, {});
      case Kind::kParameter:
        return spec_object("parameter", spec.arg, "parameter_name", spec.target);
      case Kind::kBuffer:
        json_.begin_object().key("buffer").begin_object().key("arg");
        write_untagged(spec.arg);
        json_.key("buffer_name");
        write(spec.target);
        json_.key("persistent").boolean(spec.persistent).end_object().end_object();
        return;
      case Kind::kTensorConstant:
        return spec_object("tensor_constant", spec.arg, "tensor_constant_name", spec.target);
      case Kind::kCustomObj:
        return spec_object("custom_obj", spec.arg, "custom_obj_name", spec.target);
      case Kind::kToken:
        return spec_object("token", spec.arg, nullptr, {});
      case Kind::kConstantInput:
        json_.begin_object().key("constant_input").begin_object().key("name");
        write(spec.target);
        json_.key("value");
        write(spec.arg);
        json_.end_object().end_object();
        return;
    }
  }
  void write(const OutputSpec& spec) {
    using Kind = OutputSpec::Kind;
    switch (spec.kind) {
      case Kind::kUserOutput:
        return spec_object("user_output", spec.arg, nullptr, {});
      case Kind::kLossOutput:
        return spec_object("loss_output", spec.arg, nullptr, {});
      case Kind::kBufferMutation:
        return spec_object("buffer_mutation", spec.arg, "buffer_name", spec.target);
      case Kind::kGradientToParameter:
        return spec_object("gradient_to_parameter", spec.arg, "parameter_name", spec.target);
      case Kind::kGradientToUserInput:
        return spec_object("gradient_to_user_input", spec.arg, "user_input_name", spec.target);
      case Kind::kUserInputMutation:
        return spec_object("user_input_mutation", spec.arg, "user_input_name", spec.target);
      case Kind::kToken:
        return spec_object("token", spec.arg, nullptr, {});
      case Kind::kParameterMutation:
        return spec_object("parameter_mutation", spec.arg, "parameter_name", spec.target);
    }
  }
  void write(const GraphSignature& signature) {
    object("input_specs", signature.input_specs, "output_specs", signature.output_specs);
  }
  void write(const ModuleCallSignature& signature) {
    json_.begin_object();
    fields("inputs", signature.inputs, "outputs", signature.outputs, "in_spec", signature.in_spec,
           "out_spec", signature.out_spec);
    json_.key("forward_arg_names");
    if (signature.forward_arg_names.empty())
      json_.null();
    else
      write(signature.forward_arg_names);
    json_.end_object();
  }
  void write(const ModuleCallEntry& entry) {
    object("fqn", entry.fqn, "signature", entry.signature);
  }
  void write(const GraphModule& module) {
    json_.begin_object();
    fields("graph", module.graph, "signature", module.signature, "module_call_graph",
           module.module_call_graph, "metadata", module.metadata);
    json_.key("treespec_namedtuple_fields").begin_object();
    for (const auto& [name, names] : module.treespec_namedtuple_fields) {
      text_key(name);
      object("field_names", names);
    }
    json_.end_object().end_object();
  }
  void write(const RangeConstraint& range) { object("min_val", range.min, "max_val", range.max); }
  void write(const ExportedProgram& program) {
    json_.begin_object();
    fields("graph_module", program.graph_module, "opset_version", program.opset_version,
           "range_constraints", program.range_constraints);
    json_.key("schema_version");
    object("major", program.schema_major, "minor", program.schema_minor);
    fields("verifiers", program.verifiers, "torch_version", program.torch_version, "guards_code",
           program.guards_code);
    json_.end_object();
  }
  void write(const PayloadMeta& meta) {
    object("path_name", meta.path_name, "is_param", meta.is_param, "use_pickle", meta.use_pickle,
           "tensor_meta", meta.tensor_meta);
  }
  void write_config(const PayloadConfig& config) { object("config", config); }

 private:
  void text_key(const std::string& key) {
    if (!is_utf8(key))
      throw ImportError(ErrorCode::kNotExportable, "the name " + shown(key) + " is not UTF-8");
    json_.key(key);
  }
  void fields() {}
  template <typename T, typename... Rest>
  void fields(const char* key, const T& value, const Rest&... rest) {
    json_.key(key);
    write(value);
    fields(rest...);
  }
  template <typename... Fields>
  void object(const Fields&... all) {
    json_.begin_object();
    fields(all...);
    json_.end_object();
  }
  template <typename T>
  void tagged(const char* tag, const T& value) {
    json_.begin_object().key(tag);
    write(value);
    json_.end_object();
  }
  template <typename T>
  void symbolic(const std::variant<std::string, T>& value, const char* known) {
    if (const auto* name = std::get_if<std::string>(&value))
      tagged("as_name", *name);
    else
      tagged(known, std::get<T>(value));
  }
  /// The value of a union alone, where the schema has one of its types.
  void write_untagged(const Argument& argument) {
    std::visit([this](const auto& value) { write(value); }, argument.value);
  }
  /// {tag: {"arg": ..., name_key: name}}. Only user inputs and outputs may be anything.
  void spec_object(const char* tag, const Argument& arg, const char* name_key,
                   const std::string& name) {
    json_.begin_object().key(tag).begin_object().key("arg");
    if (std::string_view(tag).starts_with("user_input") && name_key == nullptr)
      write(arg);
    else if (std::string_view(tag) == "user_output")
      write(arg);
    else
      write_untagged(arg);
    if (name_key != nullptr) {
      json_.key(name_key);
      write(name);
    }
    json_.end_object().end_object();
  }

  JsonWriter json_;
};

}  // namespace

std::string to_json(const ExportedProgram& program) {
  SchemaWriter writer;
  writer.write(program);
  return std::move(writer).take();
}

std::string to_json(const PayloadConfig& config) {
  SchemaWriter writer;
  writer.write_config(config);
  return std::move(writer).take();
}

}  // namespace fx::io::schema
