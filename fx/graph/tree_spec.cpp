#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/graph_module.h"

namespace fx {
namespace {

std::string wanted(const TreeSpec& spec) {
  switch (spec.kind) {
    case TreeSpec::Kind::kLeaf:
      return "a value";
    case TreeSpec::Kind::kNone:
      return "None";
    case TreeSpec::Kind::kTuple:
      return "a tuple of " + std::to_string(spec.children.size());
    case TreeSpec::Kind::kList:
      return "a list of " + std::to_string(spec.children.size());
    case TreeSpec::Kind::kNamedTuple:
    case TreeSpec::Kind::kDict: {
      std::string keys;
      for (const std::string& key : spec.keys) keys += (keys.empty() ? "" : ", ") + key;
      return (spec.kind == TreeSpec::Kind::kDict ? "a dict with the keys {"
                                                 : "a named tuple of {") +
             keys + "}";
    }
  }
  return "?";
}

void flatten_at(const TreeSpec& spec, const Value& value, Values& leaves, const std::string& path) {
  auto fail = [&]() {
    throw RunError(ErrorCode::kWrongType, "structured input" + path + ": wanted " + wanted(spec) +
                                              ", found " + describe(value));
  };
  switch (spec.kind) {
    case TreeSpec::Kind::kLeaf:
      leaves.push_back(value);
      return;
    case TreeSpec::Kind::kNone:
      if (!value.isNone()) fail();
      return;
    case TreeSpec::Kind::kTuple:
    case TreeSpec::Kind::kList:
    case TreeSpec::Kind::kNamedTuple: {
      if (!is_sequence(value)) fail();
      const Values items = elements(value);
      if (items.size() != spec.children.size()) fail();
      for (std::size_t i = 0; i < items.size(); ++i)
        flatten_at(spec.children[i], items[i], leaves, path + "[" + std::to_string(i) + "]");
      return;
    }
    case TreeSpec::Kind::kDict: {
      if (!value.isGenericDict()) fail();
      const auto dict = value.toGenericDict();
      if (dict.size() != spec.keys.size()) fail();
      for (std::size_t i = 0; i < spec.keys.size(); ++i) {
        auto found = dict.find(spec.keys[i]);
        if (found == dict.end()) fail();
        flatten_at(spec.children[i], found->value(), leaves,
                   path + "[" + str_repr(spec.keys[i]) + "]");
      }
      return;
    }
  }
}

}  // namespace

std::size_t TreeSpec::num_leaves() const {
  if (kind == Kind::kLeaf) return 1;
  std::size_t count = 0;
  for (const TreeSpec& child : children) count += child.num_leaves();
  return count;
}

void flatten(const TreeSpec& spec, const Value& value, Values& leaves) {
  flatten_at(spec, value, leaves, "");
}

Value unflatten(const TreeSpec& spec, const Values& leaves, std::size_t& position) {
  switch (spec.kind) {
    case TreeSpec::Kind::kLeaf:
      if (position >= leaves.size())
        throw RunError(ErrorCode::kWrongType,
                       "the graph returned fewer values than its out_spec has");
      return leaves[position++];
    case TreeSpec::Kind::kNone:
      return {};
    case TreeSpec::Kind::kTuple:
    case TreeSpec::Kind::kNamedTuple: {
      Values items;
      for (const TreeSpec& child : spec.children)
        items.push_back(unflatten(child, leaves, position));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    case TreeSpec::Kind::kList: {
      c10::List<Value> list(c10::AnyType::get());
      for (const TreeSpec& child : spec.children)
        list.push_back(unflatten(child, leaves, position));
      return list;
    }
    case TreeSpec::Kind::kDict: {
      c10::Dict<Value, Value> dict(c10::StringType::get(), c10::AnyType::get());
      for (std::size_t i = 0; i < spec.children.size(); ++i)
        dict.insert(spec.keys[i], unflatten(spec.children[i], leaves, position));
      return dict;
    }
  }
  return {};
}

}  // namespace fx
