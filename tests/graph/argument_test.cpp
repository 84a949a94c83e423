#include "fx/graph/argument.h"

#include <complex>
#include <limits>

#include "tests/graph/graphs.h"

namespace fx {
namespace {

using Kind = Argument::Kind;

TEST(Argument, N_008_every_kind_is_stored_and_read_back) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_TRUE(Argument().is_none());
  EXPECT_TRUE(Argument(nullptr).is_none());
  EXPECT_EQ(Argument(true).to_bool(), true);
  EXPECT_EQ(Argument(-3).to_int(), -3);
  EXPECT_EQ(Argument(std::int64_t{1} << 62).to_int(), std::int64_t{1} << 62);
  EXPECT_EQ(Argument(2.5).to_double(), 2.5);
  EXPECT_EQ(Argument(2.5f).to_double(), 2.5);
  EXPECT_EQ(Argument(7).to_double(), 7.0) << "an int is accepted as a float";
  EXPECT_EQ(Argument("text").to_string(), "text");
  EXPECT_EQ(Argument(std::string("a\0b", 3)).to_string(), std::string("a\0b", 3));
  EXPECT_EQ(Argument(std::complex<double>(1, -2)).to_complex(), std::complex<double>(1, -2));
  EXPECT_EQ(Argument(c10::ScalarType::Half).to_dtype(), c10::ScalarType::Half);
  EXPECT_EQ(Argument(c10::kStrided).to_layout(), c10::kStrided);
  EXPECT_EQ(Argument(c10::MemoryFormat::ChannelsLast).to_memory_format(),
            c10::MemoryFormat::ChannelsLast);
  EXPECT_EQ(Argument(c10::Device(c10::kCPU)).to_device(), c10::Device(c10::kCPU));
  EXPECT_EQ(Argument(c10::Device(c10::kCUDA, 3)).to_device(), c10::Device(c10::kCUDA, 3));
  EXPECT_EQ(Argument::ellipsis().kind(), Kind::kEllipsis);
  EXPECT_EQ(&Argument(x).node(), &x);
  EXPECT_EQ(Argument(&x).node_or_null(), &x);
  EXPECT_TRUE(Argument(static_cast<Node*>(nullptr)).is_none());
}

TEST(Argument, a_pointer_never_becomes_true) {
  static_assert(!std::is_constructible_v<Argument, const Node*>);
  static_assert(!std::is_constructible_v<Argument, const int*>);
  static_assert(!std::is_constructible_v<Argument, void*>);
  EXPECT_EQ(Argument("x").kind(), Kind::kString);
}

TEST(Argument, aggregates_nest) {
  const Argument list = Argument::list({1, Argument::tuple({2.0, "b"}), {}});
  ASSERT_EQ(list.items().size(), 3u);
  EXPECT_EQ(list.items()[1].items()[1].to_string(), "b");
  EXPECT_EQ(list.depth(), 2);
  const Argument dict = Argument::dict({{"a", list}, {7, true}});
  EXPECT_EQ(dict.dict_items().size(), 2u);
  EXPECT_EQ(*dict.find("a"), list);
  EXPECT_EQ(dict.find("b"), nullptr);
  EXPECT_EQ(dict.depth(), 3);
  const Argument slice = Argument::slice({}, 5);
  EXPECT_EQ(slice.items().size(), 3u);
  EXPECT_TRUE(slice.items()[0].is_none());
  EXPECT_EQ(slice.items()[1].to_int(), 5);
  EXPECT_EQ(Argument(std::vector<std::int64_t>{1, 2}), Argument::list({1, 2}));
  EXPECT_EQ(Argument(std::vector<double>{}), Argument::list({}));
}

TEST(Argument, wrong_access_names_both_kinds) {
  EXPECT_FX_ERROR(Argument("a").to_int(), GraphError, kWrongArgumentKind,
                  "argument 'a' is a string, wanted a int");
  EXPECT_FX_ERROR(Argument(1).node(), GraphError, kWrongArgumentKind, "is a int, wanted a node");
  EXPECT_FX_ERROR(Argument(1.0).to_int(), GraphError, kWrongArgumentKind, "1.0 is a float");
  EXPECT_FX_ERROR(Argument(true).to_int(), GraphError, kWrongArgumentKind, "True is a bool");
  EXPECT_FX_ERROR(Argument().items(), GraphError, kWrongArgumentKind, "None is a none");
  EXPECT_FX_ERROR(Argument::list({}).dict_items(), GraphError, kWrongArgumentKind, "[] is a list");
  EXPECT_FX_ERROR(Argument(1).to_dtype(), GraphError, kWrongArgumentKind, "wanted a dtype");
  EXPECT_FX_ERROR(Argument(1).to_device(), GraphError, kWrongArgumentKind, "wanted a device");
  EXPECT_FX_ERROR(Argument(1).to_layout(), GraphError, kWrongArgumentKind, "wanted a layout");
  EXPECT_FX_ERROR(Argument(1).to_memory_format(), GraphError, kWrongArgumentKind,
                  "wanted a memory format");
  EXPECT_FX_ERROR(Argument(1).to_complex(), GraphError, kWrongArgumentKind, "wanted a complex");
  EXPECT_FX_ERROR(Argument(1).to_bool(), GraphError, kWrongArgumentKind, "wanted a bool");
  EXPECT_FX_ERROR(Argument(1).to_string(), GraphError, kWrongArgumentKind, "wanted a string");
}

TEST(Argument, equality_is_structural_and_exact) {
  EXPECT_EQ(Argument::list({1, "a"}), Argument::list({1, "a"}));
  EXPECT_FALSE(Argument::list({1}) == Argument::tuple({1}));
  EXPECT_FALSE(Argument(1) == Argument(1.0));
  EXPECT_FALSE(Argument(1) == Argument(true));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Argument(nan), Argument(nan));
  EXPECT_FALSE(Argument(0.0) == Argument(-0.0));
  EXPECT_EQ(Argument(std::complex<double>(1, 2)), Argument(std::complex<double>(1, 2)));
  EXPECT_FALSE(Argument(std::complex<double>(0, 0)) == Argument(std::complex<double>(0, -0.0)));
  EXPECT_FALSE(Argument(c10::kCPU) == Argument(c10::kCUDA));
  EXPECT_FALSE(Argument::dict({{"a", 1}, {"b", 2}}) == Argument::dict({{"b", 2}, {"a", 1}}));
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  EXPECT_EQ(Argument::list({x}), Argument::list({x}));
  EXPECT_FALSE(Argument(x) == Argument(y));
}

TEST(Argument, N_013_copies_share_and_never_change) {
  Argument a = Argument::list({1, 2});
  const Argument b = a;
  EXPECT_EQ(a.items().data(), b.items().data());
  a = Argument::list({3});
  EXPECT_EQ(b, Argument::list({1, 2}));
  static_assert(std::is_const_v<std::remove_reference_t<decltype(b.items()[0])>>);
  static_assert(std::is_const_v<std::remove_reference_t<decltype(a.items()[0])>>);
  Argument& self = a;
  a = self;
  EXPECT_EQ(a, Argument::list({3}));
}

TEST(Argument, N_009_dict_keys_hold_no_nodes) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_FX_ERROR(Argument::dict({{x, 1}}), GraphError, kWrongArgumentKind,
                  "Keys for dictionaries used as an argument cannot contain a Node");
  EXPECT_FX_ERROR(Argument::dict({{Argument::tuple({1, x}), 1}}), GraphError, kWrongArgumentKind,
                  "Got key: (1, x)");
}

TEST(Argument, N_015_map_nodes_rebuilds_only_what_holds_nodes) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  const Argument plain = Argument::list({1, 2});
  const Argument before = Argument::list(
      {x, Argument::dict({{"k", Argument::tuple({x, 1})}}), Argument::slice(x, {}, y), plain});
  std::vector<Node*> met;
  const Argument after = before.map_nodes([&](Node& node) -> Argument {
    met.push_back(&node);
    return &node == &x ? Argument(y) : Argument("was y");
  });
  EXPECT_EQ(names(met), (Names{"x", "x", "x", "y"}));
  EXPECT_EQ(after, Argument::list({y, Argument::dict({{"k", Argument::tuple({y, 1})}}),
                                   Argument::slice(y, {}, "was y"), plain}));
  EXPECT_EQ(after.items()[3].items().data(), plain.items().data()) << "shared, not copied";
  EXPECT_FALSE(plain.has_nodes());
  EXPECT_TRUE(before.has_nodes());
}

TEST(Argument, N_016_N_017_map_leaves_meets_every_leaf) {
  const Argument before = Argument::tuple(
      {1, Argument::slice({}, 2, {}), Argument::dict({{"k", "v"}}), Argument::list({true})});
  int leaves = 0;
  const Argument after = before.map_leaves([&](const Argument& leaf) -> Argument {
    ++leaves;
    return leaf.is_none() ? Argument("none") : leaf;
  });
  EXPECT_EQ(leaves, 6) << "the ends of a slice count, the keys of a dict do not";
  EXPECT_EQ(after, Argument::tuple({1, Argument::slice("none", 2, "none"),
                                    Argument::dict({{"k", "v"}}), Argument::list({true})}));
}

TEST(Argument, N_014_repr_is_pythons) {
  Graph graph;
  Node& x = graph.placeholder("x");
  EXPECT_EQ(repr(Argument()), "None");
  EXPECT_EQ(repr(Argument(false)), "False");
  EXPECT_EQ(repr(Argument::tuple({})), "()");
  EXPECT_EQ(repr(Argument::tuple({1})), "(1,)");
  EXPECT_EQ(repr(Argument::list({x, 2.0}), "%"), "[%x, 2.0]");
  EXPECT_EQ(repr(Argument::dict({{"a", x}, {1, "b"}})), "{'a': x, 1: 'b'}");
  EXPECT_EQ(repr(Argument::slice({}, x, 2)), "slice(None, x, 2)");
  EXPECT_EQ(repr(Argument::ellipsis()), "Ellipsis");
  EXPECT_EQ(repr(Argument(c10::Device(c10::kCUDA, 1))), "device(type='cuda', index=1)");
  EXPECT_EQ(repr(Argument(c10::Device(c10::kCPU))), "device(type='cpu')");
  EXPECT_EQ(repr(Argument(c10::kSparse)), "torch.sparse_coo");
  EXPECT_EQ(repr(Argument(c10::MemoryFormat::ChannelsLast3d)), "torch.channels_last_3d");
  EXPECT_EQ(repr(Argument(c10::ScalarType::ComplexDouble)), "torch.complex128");
  EXPECT_EQ(repr(Argument(c10::ScalarType::Float8_e4m3fn)), "torch.float8_e4m3fn");
  EXPECT_EQ(repr(Argument(c10::ScalarType::UInt16)), "torch.uint16");
  EXPECT_EQ(repr(Argument(c10::ScalarType::QUInt8)), "torch.quint8");
  const Args args{x, 1};
  const Kwargs kwargs{{"dim", -1}, {"a b", "c"}};
  EXPECT_EQ(repr(std::span<const Argument>(args)), "(x, 1)");
  EXPECT_EQ(repr(std::span<const KwArg>(kwargs)), "{'dim': -1, 'a b': 'c'}");
}

TEST(Argument, nesting_is_bounded) {
  Argument deep;
  for (int i = 0; i < Argument::kMaxDepth; ++i) deep = Argument::list({deep});
  EXPECT_EQ(deep.depth(), Argument::kMaxDepth);
  EXPECT_FX_ERROR(Argument::list({deep}), GraphError, kTooDeep, "nests 201 levels");
  EXPECT_FX_ERROR(Argument::tuple({1, deep}), GraphError, kTooDeep, "the limit is 200");
  EXPECT_FX_ERROR(Argument::dict({{"k", deep}}), GraphError, kTooDeep, "nests 201 levels");
  EXPECT_FX_ERROR(Argument::slice(deep, {}), GraphError, kTooDeep, "nests 201 levels");
  // A node with such an argument still prints.
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& cat = graph.call_function("aten::cat", {deep, x});
  EXPECT_EQ(cat.num_args(), 2u);
  EXPECT_THAT(cat.format_node(), ::testing::HasSubstr("[[[[None]]]]"));
}

}  // namespace
}  // namespace fx
