#include "fx/io/treespec.h"

#include <algorithm>

#include "fx/base/text.h"
#include "fx/io/json.h"
#include "fx/io/json_writer.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

constexpr std::int64_t kProtocol = 1;
/// Two levels of JSON a container, plus the pair with the protocol.
constexpr std::size_t kMaxJsonDepthOfTree = 2 * (kMaxTreeDepth + 2) + 2;
constexpr std::size_t kMaxContext = 64 * 1024;

class TreeReader {
 public:
  TreeReader(const std::string& label, const NamedTupleFields& named_tuples)
      : label_(label), named_tuples_(named_tuples) {}

  TreeSpec read(const JsonValue& value, std::size_t depth) {
    if (depth > kMaxTreeDepth)
      value.fail("containers are nested more than " + std::to_string(kMaxTreeDepth) + " deep");
    JsonObject object(value, {"type", "context", "children_spec"});
    TreeSpec tree;
    object.at("children_spec").for_each([&](const JsonValue& child) {
      tree.children.push_back(read(child, depth + 1));
    });
    auto type = object.find("type");
    if (!type) {
      if (object.find("context") || !tree.children.empty()) value.fail("a leaf with contents");
      return tree;
    }
    const std::string type_name(type->to_string());
    if (type_name.size() > 1000 || has_control_characters(type_name))
      type->fail("an unusable type name " + shown(type_name));
    std::string context;
    if (auto text = object.find("context")) context = text->to_string();
    if (context.size() > kMaxContext) value.fail("a context of more than 64 kB");
    classify(value, type_name, context, tree);
    const bool has_keys =
        tree.kind == TreeSpec::Kind::kDict || tree.kind == TreeSpec::Kind::kNamedTuple;
    if (has_keys && tree.keys.size() != tree.children.size())
      value.fail(shown(type_name) + " has " + std::to_string(tree.keys.size()) + " keys and " +
                 std::to_string(tree.children.size()) + " children");
    return tree;
  }

 private:
  void classify(const JsonValue& value, const std::string& name, const std::string& context,
                TreeSpec& tree) {
    using Kind = TreeSpec::Kind;
    if (name != "builtins.tuple" && name != "builtins.list" && name != "builtins.dict" &&
        name != "builtins.NoneType")
      tree.type_name = name;
    if (name == "builtins.tuple" || name == "torch.Size" ||
        name.starts_with("torch.return_types.")) {
      tree.kind = Kind::kTuple;
    } else if (name == "builtins.list" || name == "collections.deque") {
      tree.kind = Kind::kList;
    } else if (name == "builtins.NoneType") {
      tree.kind = Kind::kNone;
      if (!tree.children.empty()) value.fail("None with children");
    } else if (name == "builtins.dict" || name == "collections.OrderedDict") {
      tree.kind = Kind::kDict;
      read_keys(value, context, tree);
    } else if (name == "collections.defaultdict") {
      tree.kind = Kind::kDict;
      read_default_dict(value, context, tree);
    } else if (name == "collections.namedtuple") {
      tree.kind = Kind::kNamedTuple;
      read_named_tuple(value, context, tree);
    } else if (!context.empty() && context.front() == '[') {
      tree.kind = Kind::kNamedTuple;
      read_keys(value, context, tree);
    } else {
      value.fail("unknown container type " + shown(name));
    }
  }

  JsonDocument parse_context(const std::string& context) const {
    return JsonDocument(context, label_ + ": context", ErrorCode::kBadTreespec,
                        ErrorCode::kBadTreespec);
  }

  /// A key as text: strings as they are, ints as digits, what else JSON has as Python shows it.
  static std::string key_text(const JsonValue& key) {
    if (key.is_string()) return std::string(key.to_string());
    if (key.is_int()) return std::to_string(key.to_int());
    key.fail("a dict key that is neither a string nor an integer");
  }

  static void read_key_list(const JsonValue& list, TreeSpec& tree) {
    list.for_each([&](const JsonValue& key) { tree.keys.push_back(key_text(key)); });
    std::vector<std::string> sorted = tree.keys;
    std::ranges::sort(sorted);
    auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) list.fail("the key " + shown(*twice) + " occurs twice");
  }

  void read_keys(const JsonValue& value, const std::string& context, TreeSpec& tree) const {
    if (context.empty()) value.fail("a container without its keys");
    const JsonDocument document = parse_context(context);
    // A dataclass writes [names of its fields, names of those that are None and have no child].
    const JsonValue root = document.root();
    if (tree.kind != TreeSpec::Kind::kNamedTuple || !holds_only_lists(root))
      return read_key_list(root, tree);
    std::size_t index = 0;
    root.for_each([&](const JsonValue& list) {
      if (index++ == 0) read_key_list(list, tree);
    });
  }

  static bool holds_only_lists(const JsonValue& value) {
    bool any = false, all = true;
    value.for_each([&](const JsonValue& item) {
      any = true;
      all = all && item.is_array();
    });
    return any && all;
  }

  void read_default_dict(const JsonValue& value, const std::string& context, TreeSpec& tree) const {
    if (context.empty()) value.fail("a defaultdict without its keys");
    const JsonDocument document = parse_context(context);
    JsonObject object(document.root(),
                      {"default_factory_module", "default_factory_name", "dict_context"});
    read_key_list(object.at("dict_context"), tree);
  }

  void read_named_tuple(const JsonValue& value, const std::string& context, TreeSpec& tree) const {
    // The context is the name itself, or, from some versions, its JSON string.
    std::string name = context;
    if (!context.empty() && context.front() == '"')
      name = parse_context(context).root().to_string();
    auto fields = std::ranges::find(named_tuples_, name, &NamedTupleFields::value_type::first);
    if (fields == named_tuples_.end())
      value.fail("the fields of the named tuple " + shown(name) + " are not in the file");
    tree.type_name = name;
    tree.keys = fields->second;
  }

  const std::string& label_;
  const NamedTupleFields& named_tuples_;
};

std::string json_list(const std::vector<std::string>& items) {
  JsonWriter json;
  json.begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
  return std::move(json).take();
}

class TreeWriter {
 public:
  explicit TreeWriter(NamedTupleFields& named_tuples) : named_tuples_(named_tuples) {}

  std::string write(const TreeSpec& tree) {
    json_.begin_array().integer(kProtocol);
    write_tree(tree, 0);
    json_.end_array();
    return std::move(json_).take();
  }

 private:
  void write_tree(const TreeSpec& tree, std::size_t depth) {
    if (depth > kMaxTreeDepth)
      throw ImportError(ErrorCode::kNotExportable,
                        "structured inputs or outputs are nested more than " +
                            std::to_string(kMaxTreeDepth) + " deep");
    json_.begin_object();
    if (tree.kind == TreeSpec::Kind::kLeaf) {
      json_.key("type").null().key("context").null();
    } else {
      const auto [type, context] = type_and_context(tree);
      json_.key("type").string(type).key("context").string(context);
    }
    json_.key("children_spec").begin_array();
    for (const TreeSpec& child : tree.children) write_tree(child, depth + 1);
    json_.end_array().end_object();
  }

  std::pair<std::string, std::string> type_and_context(const TreeSpec& tree) {
    using Kind = TreeSpec::Kind;
    const auto name = [&](const char* otherwise) {
      return tree.type_name.empty() ? std::string(otherwise) : tree.type_name;
    };
    switch (tree.kind) {
      case Kind::kTuple:
        return {name("builtins.tuple"), "null"};
      case Kind::kList:
        return {name("builtins.list"), "null"};
      case Kind::kDict:
        // What a defaultdict makes of missing keys is not known; as a plain dict it has none.
        return {tree.type_name == "collections.OrderedDict" ? tree.type_name : "builtins.dict",
                json_list(tree.keys)};
      case Kind::kNamedTuple: {
        const std::string type = name("fx.Tuple");
        if (std::ranges::find(named_tuples_, type, &NamedTupleFields::value_type::first) ==
            named_tuples_.end())
          named_tuples_.emplace_back(type, tree.keys);
        return {"collections.namedtuple", type};
      }
      case Kind::kNone:
      case Kind::kLeaf:
        break;
    }
    throw ImportError(ErrorCode::kNotExportable,
                      "None as a container of structured inputs or outputs has no form in Python");
  }

  NamedTupleFields& named_tuples_;
  JsonWriter json_;
};

void append(std::string& out, const TreeSpec& tree) {
  using Kind = TreeSpec::Kind;
  auto items = [&](bool with_keys, std::string_view separator, bool quote) {
    for (std::size_t i = 0; i < tree.children.size(); ++i) {
      if (i > 0) out += ", ";
      if (with_keys)
        out += (quote ? str_repr(tree.keys[i]) : tree.keys[i]) + std::string(separator);
      append(out, tree.children[i]);
    }
  };
  switch (tree.kind) {
    case Kind::kLeaf:
      out += '*';
      break;
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kTuple:
      out += '(';
      items(false, "", false);
      out += tree.children.size() == 1 ? ",)" : ")";
      break;
    case Kind::kList:
      out += '[';
      items(false, "", false);
      out += ']';
      break;
    case Kind::kDict:
      out += '{';
      items(true, ": ", true);
      out += '}';
      break;
    case Kind::kNamedTuple:
      out += tree.type_name.substr(tree.type_name.rfind('.') + 1) + "(";
      items(true, "=", false);
      out += ')';
      break;
  }
}

}  // namespace

std::string treespec_str(const TreeSpec& tree) {
  std::string out;
  append(out, tree);
  return out;
}

std::string treespec_json(const TreeSpec& tree, NamedTupleFields& named_tuples) {
  return TreeWriter(named_tuples).write(tree);
}

TreeSpec parse_treespec(std::string_view json, const std::string& label,
                        const NamedTupleFields& named_tuples) {
  JsonDocument document(std::string(json), label, ErrorCode::kBadTreespec, ErrorCode::kBadTreespec,
                        kMaxJsonDepthOfTree);
  const JsonValue root = document.root();
  if (!root.is_array() || root.size() != 2)
    root.fail("a pair of the protocol and the tree is wanted");
  TreeSpec tree;
  std::size_t index = 0;
  root.for_each([&](const JsonValue& item) {
    if (index++ == 0) {
      if (!item.is_int() || item.to_int() != kProtocol) item.fail("protocol 1 is wanted");
    } else {
      tree = TreeReader(label, named_tuples).read(item, 0);
    }
  });
  return tree;
}

}  // namespace fx::io
