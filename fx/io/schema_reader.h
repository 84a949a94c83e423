#pragma once

// Internal: from JSON to the structs of export_schema.h.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fx/io/export_schema.h"
#include "fx/io/json.h"
#include "fx/io/shown.h"

namespace fx::io::schema {

/// Bytes of a symbolic expression or guard that are read.
inline constexpr std::size_t kMaxExpression = 64 * 1024;

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

}  // namespace fx::io::schema
