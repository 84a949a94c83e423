#include "fx/io/treespec.h"

#include <gtest/gtest.h>

#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;

const std::string kLeaf = R"({"type": null, "context": null, "children_spec": []})";

/// A container of `count` leaves; `context` is the JSON text inside the string.
std::string container(const std::string& type, const std::string& context, std::size_t count) {
  std::string escaped;
  for (char c : context) escaped += c == '"' ? "\\\"" : std::string(1, c);
  std::string text =
      R"({"type": ")" + type + R"(", "context": ")" + escaped + R"(", "children_spec": [)";
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + kLeaf;
  return text + "]}";
}

TreeSpec parse(const std::string& tree, const NamedTupleFields& fields = {}) {
  return parse_treespec("[1, " + tree + "]", "here", fields);
}

TEST(Treespec, Containers) {
  EXPECT_EQ(treespec_str(parse(kLeaf)), "*");
  EXPECT_EQ(treespec_str(parse(container("builtins.tuple", "null", 1))), "(*,)");
  EXPECT_EQ(treespec_str(parse(container("builtins.tuple", "null", 0))), "()");
  EXPECT_EQ(treespec_str(parse(container("builtins.list", "null", 2))), "[*, *]");
  EXPECT_EQ(treespec_str(parse(container("collections.deque", "null", 2))), "[*, *]");
  EXPECT_EQ(treespec_str(parse(container("builtins.dict", R"(["b", "a"])", 2))),
            "{'b': *, 'a': *}");
  EXPECT_EQ(treespec_str(parse(container("builtins.dict", "[3]", 1))), "{'3': *}");
  EXPECT_EQ(treespec_str(parse(container("collections.OrderedDict", R"(["z", "a"])", 2))),
            "{'z': *, 'a': *}");
  EXPECT_EQ(
      treespec_str(parse(container(
          "collections.defaultdict",
          R"({"default_factory_module": "x", "default_factory_name": "y", "dict_context": ["k"]})",
          1))),
      "{'k': *}");
  const NamedTupleFields fields = {{"zoo.Point", {"x", "y"}}};
  const TreeSpec point = parse(container("collections.namedtuple", "zoo.Point", 2), fields);
  EXPECT_EQ(treespec_str(point), "Point(x=*, y=*)");
  EXPECT_EQ(point.type_name, "zoo.Point");
  EXPECT_EQ(point.kind, TreeSpec::Kind::kNamedTuple);
  // A registered dataclass: names of its fields, and of those that are None.
  EXPECT_EQ(treespec_str(parse(container("lib.Output", R"([["loss", "logits"], ["states"]])", 2))),
            "Output(loss=*, logits=*)");
  EXPECT_EQ(treespec_str(parse(container("lib.Output", R"(["loss", "logits"])", 2))),
            "Output(loss=*, logits=*)");
}

TEST(Treespec, NestsUpToItsLimit) {
  auto nested = [](std::size_t depth) {
    std::string text = kLeaf;
    for (std::size_t i = 0; i < depth; ++i)
      text = R"({"type": "builtins.list", "context": "null", "children_spec": [)" + text + "]}";
    return text;
  };
  EXPECT_EQ(parse(nested(99)).num_leaves(), 1u);
  EXPECT_EQ(parse(nested(100)).num_leaves(), 1u);
  expect_import_error(ErrorCode::kBadTreespec, {"nested more than 100 deep"},
                      [&] { parse(nested(101)); });
  expect_import_error(ErrorCode::kBadTreespec, {"deep"}, [&] { parse(nested(10'000)); });
}

TEST(TreespecErrors, Texts) {
  struct Case {
    std::string text, part;
  };
  const std::vector<Case> cases = {
      {"", "empty"},
      {"[1, ", "not valid JSON"},
      {"{}", "a pair of the protocol and the tree"},
      {"[1]", "a pair of the protocol and the tree"},
      {"[7, " + kLeaf + "]", "[0]: protocol 1 is wanted"},
      {"[1, 2]", "[1]: 2 found, an object is wanted"},
      {"[1, " + container("os.system", "null", 0) + "]", "unknown container type 'os.system'"},
      {"[1, " + container("builtins.dict", "", 1) + "]", "without its keys"},
      {"[1, " + container("builtins.dict", R"(["a"])", 2) + "]", "1 keys and 2 children"},
      {"[1, " + container("builtins.dict", R"(["a", "a"])", 2) + "]", "the key 'a' occurs twice"},
      {"[1, " + container("builtins.dict", "[[1]]", 1) + "]", "neither a string nor an integer"},
      {"[1, " + container("builtins.dict", "[1.5]", 1) + "]", "neither a string nor an integer"},
      {"[1, " + container("builtins.dict", "[", 1) + "]", "not valid JSON"},
      {"[1, " + container("collections.namedtuple", "no.Such", 1) + "]",
       "the fields of the named tuple 'no.Such' are not in the file"},
      {"[1, " + container("builtins.NoneType", "null", 1) + "]", "None with children"},
      {R"([1, {"type": null, "context": null, "children_spec": [)" + kLeaf + "]}]",
       "a leaf with contents"},
      {R"([1, {"type": "builtins.list", "context": null}])", "'children_spec' is missing"},
      {R"([1, {"type": 5, "context": null, "children_spec": []}])", "a string is wanted"},
  };
  for (const Case& c : cases)
    expect_import_error(ErrorCode::kBadTreespec, {"here", c.part},
                        [&] { parse_treespec(c.text, "here"); });
}

}  // namespace
}  // namespace fx::io
