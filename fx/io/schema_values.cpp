// The small concepts of the schema: names, enums, symbolic numbers, tensor metadata, arguments.

#include <algorithm>
#include <array>

#include "fx/io/schema_reader.h"

namespace fx::io::schema {
namespace {

constexpr std::size_t kMaxName = 1000;  // bytes of a node, value or attribute name

}  // namespace

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

std::string_view Argument::tag() const { return kTags[value.index()]; }

}  // namespace fx::io::schema
