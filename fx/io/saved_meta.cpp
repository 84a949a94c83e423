#include "fx/io/saved_meta.h"

#include <array>
#include <unordered_map>
#include <utility>

#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/graph/text_literals.h"
#include "fx/io/import_export.h"
#include "fx/io/shown.h"
#include "fx/io/treespec.h"

namespace fx::io {
namespace {

constexpr std::array kSpecKinds = {"leaf", "none", "tuple", "list", "dict", "namedtuple"};
constexpr std::array kValueKinds = {"tensor", "int", "float", "bool"};

[[noreturn]] void refuse(const std::string& what) {
  throw ImportError(ErrorCode::kNotSavable, "cannot save " + what);
}

template <typename Names>
std::size_t index_of(const JsonValue& json, const Names& names) {
  const std::string_view name = json.to_string();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return i;
  json.fail("unknown kind " + shown(name));
}

void write_spec_at(JsonWriter& json, const TreeSpec& spec, std::size_t depth) {
  if (depth > kMaxSavedDepth)
    refuse("the structured inputs or outputs: they nest more than " +
           std::to_string(kMaxSavedDepth) + " deep");
  const char* kind = kSpecKinds[static_cast<std::size_t>(spec.kind)];
  if (spec.children.empty() && spec.keys.empty() && spec.type_name.empty()) {
    json.string(kind);
    return;
  }
  json.begin_object().key("kind").string(kind);
  if (!spec.type_name.empty()) {
    json.key("type");
    write_text(json, spec.type_name, "the type of a named tuple");
  }
  if (!spec.keys.empty()) {
    json.key("keys").begin_array();
    for (const std::string& key : spec.keys) write_text(json, key, "a key of structured inputs");
    json.end_array();
  }
  json.key("children").begin_array();
  for (const TreeSpec& child : spec.children) write_spec_at(json, child, depth + 1);
  json.end_array().end_object();
}

TreeSpec read_spec_at(const JsonValue& json, std::size_t depth) {
  if (depth > kMaxSavedDepth) json.fail("nested too deep");
  TreeSpec spec;
  if (json.is_string()) {
    spec.kind = static_cast<TreeSpec::Kind>(index_of(json, kSpecKinds));
  } else {
    const JsonObject object(json, {"kind", "type", "keys", "children"});
    spec.kind = static_cast<TreeSpec::Kind>(index_of(object.at("kind"), kSpecKinds));
    if (const auto type = object.find("type")) spec.type_name = type->to_string();
    if (const auto keys = object.find("keys"))
      keys->for_each([&](const JsonValue& key) { spec.keys.emplace_back(key.to_string()); });
    object.at("children").for_each([&](const JsonValue& child) {
      spec.children.push_back(read_spec_at(child, depth + 1));
    });
  }
  using Kind = TreeSpec::Kind;
  const bool keyed = spec.kind == Kind::kDict || spec.kind == Kind::kNamedTuple;
  if (spec.keys.size() != (keyed ? spec.children.size() : 0))
    json.fail(std::to_string(spec.keys.size()) + " keys for " +
              std::to_string(spec.children.size()) + " children");
  if ((spec.kind == Kind::kLeaf || spec.kind == Kind::kNone) && !spec.children.empty())
    json.fail("a leaf with children");
  return spec;
}

void write_optional(JsonWriter& json, const char* key, const std::optional<std::int64_t>& value) {
  if (value) json.key(key).integer(*value);
}

std::optional<std::int64_t> read_optional(const JsonObject& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? std::optional(value->to_int()) : std::nullopt;
}

using Strings = std::vector<std::string>;

Argument bound(const std::optional<std::int64_t>& value) {
  return value ? Argument(*value) : Argument();
}

// Kind and value of a meta entry that an archive holds.
std::optional<std::pair<const char*, Argument>> meta_value(const std::any& value) {
  using Pair = std::pair<const char*, Argument>;
  if (const auto* v = std::any_cast<std::string>(&value)) return Pair("string", Argument(*v));
  if (const auto* v = std::any_cast<bool>(&value)) return Pair("bool", Argument(*v));
  if (const auto* v = std::any_cast<std::int64_t>(&value)) return Pair("int", Argument(*v));
  if (const auto* v = std::any_cast<double>(&value)) return Pair("float", Argument(*v));
  if (const auto* v = std::any_cast<Argument>(&value))
    return v->has_nodes() ? std::nullopt : std::optional(Pair("argument", *v));
  if (const auto* v = std::any_cast<Strings>(&value)) {
    std::vector<Argument> items(v->begin(), v->end());
    return Pair("strings", Argument::list(std::move(items)));
  }
  if (const auto* v = std::any_cast<RangeConstraints>(&value)) {
    std::vector<Argument> items;
    for (const auto& [symbol, range] : *v)
      items.push_back(Argument::tuple({symbol, bound(range.first), bound(range.second)}));
    return Pair("ranges", Argument::list(std::move(items)));
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_bound(const Argument& argument) {
  return argument.kind() == Argument::Kind::kNone ? std::nullopt : std::optional(argument.to_int());
}

std::any meta_any(const JsonValue& json, std::string_view kind, const Argument& value) {
  if (kind == "string") return value.to_string();
  if (kind == "bool") return value.to_bool();
  if (kind == "int") return value.to_int();
  if (kind == "float") return value.to_double();
  if (kind == "argument") return value;
  if (kind == "strings") {
    Strings strings;
    for (const Argument& item : value.items()) strings.push_back(item.to_string());
    return strings;
  }
  if (kind != "ranges") json.fail("unknown kind " + shown(kind));
  RangeConstraints ranges;
  for (const Argument& item : value.items()) {
    const auto parts = item.items();
    if (parts.size() != 3) json.fail("a range has three parts");
    ranges.emplace_back(parts[0].to_string(),
                        std::pair(read_bound(parts[1]), read_bound(parts[2])));
  }
  return ranges;
}

void write_dim(JsonWriter& json, const SymDim& dim) {
  if (dim.is_known()) {
    json.integer(dim.value);
    return;
  }
  json.begin_array();
  write_text(json, dim.expr->str(), "a symbolic size");
  json.integer(dim.value).end_array();
}

void write_dims(JsonWriter& json, const char* key, const std::vector<SymDim>& dims) {
  json.key(key).begin_array();
  for (const SymDim& dim : dims) write_dim(json, dim);
  json.end_array();
}

class ValueReader {
 public:
  explicit ValueReader(const std::string& label) : label_(label) {}

  ValueMetaPtr read(const JsonValue& json) {
    const JsonObject object(json, {"kind", "dtype", "sizes", "strides", "offset", "device",
                                   "requires_grad", "number", "real"});
    auto value = std::make_shared<ValueMeta>();
    value->kind = static_cast<ValueMeta::Kind>(index_of(object.at("kind"), kValueKinds));
    if (const auto number = object.find("number")) value->number = dim(*number);
    if (const auto real = object.find("real")) value->real = real->to_double();
    if (value->kind != ValueMeta::Kind::kTensor) return value;
    value->dtype = read_dtype(object.at("dtype"));
    value->sizes = dims(object.at("sizes"));
    value->strides = dims(object.at("strides"));
    if (value->sizes.size() != value->strides.size())
      json.fail("sizes and strides differ in number");
    value->storage_offset = dim(object.at("offset"));
    if (const auto device = object.find("device")) {
      const Argument parsed = parse_argument(device->to_string());
      value->device = parsed.to_device();
    }
    if (const auto flag = object.find("requires_grad")) value->requires_grad = flag->to_bool();
    return value;
  }

 private:
  std::vector<SymDim> dims(const JsonValue& json) {
    std::vector<SymDim> out;
    json.for_each([&](const JsonValue& value) { out.push_back(dim(value)); });
    return out;
  }

  SymDim dim(const JsonValue& json) {
    if (json.is_int()) return {json.to_int(), nullptr};
    SymDim dim{-1, nullptr};
    std::size_t i = 0;
    json.for_each([&](const JsonValue& part) {
      if (i++ == 0)
        dim.expr = expr(std::string(part.to_string()));
      else
        dim.value = part.to_int();
    });
    if (i != 2) json.fail("a number, or an expression and a number, is wanted");
    return dim;
  }

  std::shared_ptr<const SymbolicExpr> expr(const std::string& text) {
    auto& slot = exprs_[text];
    if (!slot) slot = std::make_shared<const SymbolicExpr>(parse_symbolic_expr(text, label_));
    return slot;
  }

  const std::string& label_;
  std::unordered_map<std::string, std::shared_ptr<const SymbolicExpr>> exprs_;
};

}  // namespace

void write_text(JsonWriter& json, std::string_view text, const std::string& what) {
  if (!is_utf8(text)) refuse(what + ": " + shown(text) + " is not UTF-8");
  json.string(text);
}

void write_spec(JsonWriter& json, const TreeSpec& spec) { write_spec_at(json, spec, 1); }
TreeSpec read_spec(const JsonValue& json) { return read_spec_at(json, 1); }

void write_guards(JsonWriter& json, const std::vector<InputGuard>& guards) {
  json.begin_array();
  for (const InputGuard& guard : guards) {
    json.begin_object().key("input");
    write_text(json, guard.input, "the guard of an input");
    json.key("dtype");
    write_dtype(json, guard.dtype);
    json.key("dims").begin_array();
    for (const InputGuard::Dim& dim : guard.dims) {
      json.begin_object();
      write_optional(json, "size", dim.size);
      if (!dim.symbol.empty()) {
        json.key("symbol");
        write_text(json, dim.symbol, "the guard of an input");
      }
      write_optional(json, "min", dim.min);
      write_optional(json, "max", dim.max);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

std::vector<InputGuard> read_guards(const JsonValue& json) {
  std::vector<InputGuard> guards;
  json.for_each([&](const JsonValue& item) {
    const JsonObject object(item, {"input", "dtype", "dims"});
    InputGuard& guard = guards.emplace_back();
    guard.input = object.at("input").to_string();
    guard.dtype = read_dtype(object.at("dtype"));
    object.at("dims").for_each([&](const JsonValue& value) {
      const JsonObject dim(value, {"size", "symbol", "min", "max"});
      const auto symbol = dim.find("symbol");
      guard.dims.push_back({.size = read_optional(dim, "size"),
                            .symbol = symbol ? std::string(symbol->to_string()) : std::string(),
                            .min = read_optional(dim, "min"),
                            .max = read_optional(dim, "max")});
    });
  });
  return guards;
}

void write_meta(JsonWriter& json, const Meta& meta) {
  json.begin_array();
  for (const auto& [key, value] : meta) {
    const auto entry = meta_value(value);
    if (!entry) continue;
    json.begin_array();
    write_text(json, key, "the module's metadata");
    json.string(entry->first).string(argument_text(entry->second)).end_array();
  }
  json.end_array();
}

void read_meta(const JsonValue& json, Meta& meta) {
  json.for_each([&](const JsonValue& item) {
    std::vector<std::string_view> parts;
    item.for_each([&](const JsonValue& part) { parts.push_back(part.to_string()); });
    if (parts.size() != 3) item.fail("key, kind and value are wanted");
    try {
      meta.set(parts[0], meta_any(item, parts[1], parse_argument(parts[2])));
    } catch (const ParseError& error) {
      item.fail(error.text());
    } catch (const GraphError& error) {
      item.fail(error.text());
    }
  });
}

namespace {

void write_strings(JsonWriter& json, const char* key, const Strings& strings) {
  json.key(key).begin_array();
  for (const std::string& text : strings) write_text(json, text, "what an exported program says");
  json.end_array();
}

Strings read_strings(const JsonValue& json) {
  Strings strings;
  json.for_each([&](const JsonValue& item) { strings.emplace_back(item.to_string()); });
  return strings;
}

}  // namespace

void write_origin(JsonWriter& json, const Pt2Origin& origin) {
  json.begin_object().key("in_spec");
  write_text(json, origin.in_spec_text, "the tree of inputs");
  json.key("out_spec");
  write_text(json, origin.out_spec_text, "the tree of outputs");
  json.key("named_tuples").begin_array();
  for (const auto& [name, fields] : origin.namedtuple_fields) {
    json.begin_object();
    write_strings(json, "type", {name});
    write_strings(json, "fields", fields);
    json.end_object();
  }
  json.end_array();
  write_strings(json, "arguments", origin.forward_arg_names);
  write_strings(json, "guards", origin.guards_code);
  write_strings(json, "modules", origin.modules);
  write_strings(json, "verifiers", origin.verifiers);
  json.key("inputs").integer(static_cast<std::int64_t>(origin.num_inputs)).end_object();
}

Pt2OriginPtr read_origin(const JsonValue& json, const std::string& label) {
  const JsonObject object(json, {"in_spec", "out_spec", "named_tuples", "arguments", "guards",
                                 "modules", "verifiers", "inputs"});
  auto origin = std::make_shared<Pt2Origin>();
  object.at("named_tuples").for_each([&](const JsonValue& item) {
    const JsonObject row(item, {"type", "fields"});
    const Strings type = read_strings(row.at("type"));
    if (type.size() != 1) item.fail("one type is wanted");
    origin->namedtuple_fields.emplace_back(type[0], read_strings(row.at("fields")));
  });
  auto spec = [&](const char* key, std::string& text, TreeSpec& tree) {
    text = object.at(key).to_string();
    if (!text.empty()) tree = parse_treespec(text, label + ": " + key, origin->namedtuple_fields);
  };
  spec("in_spec", origin->in_spec_text, origin->in_spec);
  spec("out_spec", origin->out_spec_text, origin->out_spec);
  origin->forward_arg_names = read_strings(object.at("arguments"));
  origin->guards_code = read_strings(object.at("guards"));
  origin->modules = read_strings(object.at("modules"));
  origin->verifiers = read_strings(object.at("verifiers"));
  origin->num_inputs = static_cast<std::size_t>(object.at("inputs").to_int(0, 1 << 30));
  return origin;
}

void write_values(JsonWriter& json, const Graph& graph) {
  json.begin_array();
  for (const Node& node : graph.nodes()) {
    const auto* meta = node.meta().get<ValueMetaPtr>("val");
    if (!meta || !*meta) continue;
    const ValueMeta& value = **meta;
    json.begin_array().string(node.name()).begin_object();
    json.key("kind").string(kValueKinds[static_cast<std::size_t>(value.kind)]);
    if (value.kind == ValueMeta::Kind::kTensor) {
      json.key("dtype");
      write_dtype(json, value.dtype);
      write_dims(json, "sizes", value.sizes);
      write_dims(json, "strides", value.strides);
      json.key("offset");
      write_dim(json, value.storage_offset);
      if (value.device != at::kCPU)
        json.key("device").string(argument_text(Argument(value.device)));
      if (value.requires_grad) json.key("requires_grad").boolean(true);
    } else if (value.kind != ValueMeta::Kind::kFloat || value.number.expr) {
      json.key("number");
      write_dim(json, value.number);
    }
    if (value.kind == ValueMeta::Kind::kFloat) json.key("real").number(value.real);
    json.end_object().end_array();
  }
  json.end_array();
}

void read_values(const JsonValue& json, Graph& graph, const std::string& label) {
  ValueReader reader(label);
  json.for_each([&](const JsonValue& item) {
    Node* node = nullptr;
    std::size_t i = 0;
    item.for_each([&](const JsonValue& part) {
      if (i++ == 0) {
        node = graph.find_node(part.to_string());
        if (!node) part.fail("the graph has no node " + shown(part.to_string()));
      } else {
        try {
          node->meta().set("val", reader.read(part));
        } catch (const ImportError&) {
          throw;
        } catch (const Error& error) {
          part.fail(error.text());
        }
      }
    });
    if (i != 2) item.fail("a node and its value are wanted");
  });
}

void write_dtype(JsonWriter& json, at::ScalarType dtype) {
  json.string(dtype_repr(dtype).substr(std::string_view("torch.").size()));
}

at::ScalarType read_dtype(const JsonValue& json) {
  const std::string_view name = json.to_string();
  const Argument* constant = text::find_torch_constant("torch." + std::string(name));
  if (!constant || constant->kind() != Argument::Kind::kDtype)
    json.fail(shown(name) + " is no dtype");
  return constant->to_dtype();
}

}  // namespace fx::io
