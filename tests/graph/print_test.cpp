// Texts that people know from torch.fx; expected values are what Python prints.
#include <sstream>

#include "fx/graph/graph.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// Golden vector A.5.
TEST(Print, N_029_N_048_Q_001_F_050_F_063_A_5_G_072_N_046_S3_25_str_of_a_graph_with_every_opcode) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.placeholder_with_default("y", 2);
  Node& w = graph.get_attr("w");
  Node& add = graph.call_function("operator.add", {x, w});
  Node& lin = graph.call_module("lin", {add});
  Node& clamp = graph.call_method("clamp", {lin}, {{"min", 0.0}});
  graph.output(clamp);
  EXPECT_EQ(
      graph.str(),
      "graph():\n"
      "    %x : [num_users=1] = placeholder[target=x]\n"
      "    %y : [num_users=0] = placeholder[target=y](default=2)\n"
      "    %w : [num_users=1] = get_attr[target=w]\n"
      "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %w), kwargs = "
      "{})\n"
      "    %lin : [num_users=1] = call_module[target=lin](args = (%add,), kwargs = {})\n"
      "    %clamp : [num_users=1] = call_method[target=clamp](args = (%lin,), kwargs = {min: "
      "0.0})\n"
      "    return clamp");
  std::ostringstream out;
  out << graph << "|" << add;
  EXPECT_EQ(out.str(), graph.str() + "|add");
}

// Probed on torch 2.15: nodes as %name, everything else through str(), inside slices through
// repr().
TEST(Print, N_050_arguments_of_every_kind) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder_with_default("y", "hello");
  Node& shape = graph.call_function("builtins.getattr", {x, "shape"});
  Node& to = graph.call_method("to", {x, c10::Device(c10::kCUDA, 0)},
                               {{"dtype", c10::ScalarType::Half},
                                {"s", "a b"},
                                {"d", Argument::dict({{"k", 1}, {2, x}})},
                                {"sl", Argument::slice({}, x, 2)},
                                {"e", Argument::ellipsis()},
                                {"c", std::complex<double>(1, -0.0)},
                                {"l", Argument::list({x, Argument::tuple({y})})},
                                {"mf", c10::MemoryFormat::ChannelsLast},
                                {"lay", c10::kStrided},
                                {"n", Argument()},
                                {"t", true},
                                {"f", 1e16}});
  Node& out = graph.output(Argument::tuple({shape, Argument::dict({{"r", to}})}));
  EXPECT_EQ(y.format_node(), "%y : [num_users=1] = placeholder[target=y](default=hello)");
  EXPECT_EQ(shape.format_node(),
            "%getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%x, "
            "shape), kwargs = {})");
  EXPECT_EQ(
      to.format_node(),
      "%to : [num_users=1] = call_method[target=to](args = (%x, cuda:0), kwargs = {dtype: "
      "torch.float16, s: a b, d: {k: 1, 2: %x}, sl: slice(None, x, 2), e: Ellipsis, c: (1-0j), "
      "l: [%x, (%y,)], mf: torch.channels_last, lay: torch.strided, n: None, t: True, f: "
      "1e+16})");
  EXPECT_EQ(out.format_node(), "return (getattr_1, {'r': to})");
}

TEST(Print, F_049_N_049_targets_print_with_the_module_they_are_from) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& shape = graph.call_function("builtins.getattr", {x, "foo"});
  Node& add = graph.call_function("operator.add", {shape, 3});
  graph.output(graph.call_function("torch.add", {add, x}));
  for (const char* target :
       {"target=builtins.getattr]", "target=operator.add]", "target=torch.add]"})
    EXPECT_THAT(graph.str(), ::testing::HasSubstr(target));
  EXPECT_EQ(graph.call_function("aten::add.Tensor", {x, x}).format_node(),
            "%add_tensor : [num_users=0] = call_function[target=aten::add.Tensor](args = (%x, %x), "
            "kwargs = {})");
}

// Probed on torch 2.15, which puts types that are no names in quotes.
TEST(Print, F_109_types_are_shown_as_they_were_given) {
  Graph graph;
  Node& x = graph.placeholder("x", "list[float]");
  graph.output(graph.call_function("torch.neg", {x}, {}, {}, "torch.Tensor"));
  EXPECT_THAT(graph.str(), ::testing::HasSubstr("%x : list[float] [num_users=1]"));
  EXPECT_THAT(graph.str(), ::testing::HasSubstr("%neg : torch.Tensor [num_users=1]"));
}

TEST(Print, types_and_odd_text) {
  Graph graph;
  Node& x = graph.placeholder("x", "Tensor");
  EXPECT_EQ(x.format_node(), "%x : Tensor [num_users=0] = placeholder[target=x]");
  Node& f = graph.call_function("f", {"two\nlines", "\x01"});
  EXPECT_EQ(
      f.format_node(),
      "%f : [num_users=0] = call_function[target=f](args = ('two\\nlines', '\\x01'), kwargs = "
      "{})")
      << "a node stays on one line";
  Node& out = graph.output(x);
  out.set_args({});
  EXPECT_EQ(out.format_node(), "return");
}

TEST(Print, G_001_S3_45_empty_graph) {
  Graph graph;
  EXPECT_EQ(graph.size(), 0u);
  EXPECT_TRUE(graph.empty());
  EXPECT_EQ(graph.owner(), nullptr);
  EXPECT_EQ(graph.nodes().begin(), graph.nodes().end());
  EXPECT_EQ(graph.str(), "graph():");
  EXPECT_EQ(graph.tabular(),
            "opcode  name  target  args  kwargs\n"
            "------  ----  ------  ----  ------\n");
}

// torch.fx's table of (x + 1).clamp(min=0.0), made by tabulate.
TEST(Print, G_073_W_19_print_tabular) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& add = graph.call_function("operator.add", {x, 1});
  Node& clamp = graph.call_method("clamp", {add}, {{"min", 0.0}, {"s", "text"}});
  graph.output(clamp);
  std::ostringstream out;
  graph.print_tabular(out);
  EXPECT_EQ(out.str(),
            "opcode         name    target        args      kwargs\n"
            "-------------  ------  ------------  --------  -------------------------\n"
            "placeholder    x       x             ()        {}\n"
            "call_function  add     operator.add  (x, 1)    {}\n"
            "call_method    clamp   clamp         (add,)    {'min': 0.0, 's': 'text'}\n"
            "output         output  output        (clamp,)  {}\n");
}

TEST(Print, tables_count_characters_not_bytes) {
  Graph graph;
  graph.placeholder("größe");
  graph.placeholder("abcdefg");
  EXPECT_EQ(graph.tabular(),
            "opcode       name     target   args  kwargs\n"
            "-----------  -------  -------  ----  ------\n"
            "placeholder  gr_e     größe    ()    {}\n"
            "placeholder  abcdefg  abcdefg  ()    {}\n");
}

TEST(Print, S3_46_S3_47_S3_48_S3_49_S3_50_W_39_direct_building) {
  Graph graph;
  Node& input = graph.placeholder("input");
  EXPECT_EQ(input.name(), "input_1");
  EXPECT_EQ(input.target().str(), "input");
  Node& tensor = graph.create_node("call_function", "torch.tensor", {Argument::list({2.0})});
  Node& add = graph.create_node("call_function", "torch.add", {input, tensor});
  Node& out = graph.output(add);
  EXPECT_THAT(
      tensor.format_node(),
      ::testing::HasSubstr("call_function[target=torch.tensor](args = ([2.0],), kwargs = {})"));
  EXPECT_THAT(add.format_node(),
              ::testing::HasSubstr("call_function[target=torch.add](args = (%input_1, %tensor),"));
  EXPECT_EQ(out.format_node(), "return add");
  EXPECT_EQ(graph.str(),
            "graph():\n"
            "    %input_1 : [num_users=1] = placeholder[target=input]\n"
            "    %tensor : [num_users=1] = call_function[target=torch.tensor](args = ([2.0],), "
            "kwargs = {})\n"
            "    %add : [num_users=1] = call_function[target=torch.add](args = (%input_1, "
            "%tensor), kwargs = {})\n"
            "    return add");
  graph.lint({.strict = true});
}

TEST(Structure, equal_up_to_names_and_meta) {
  auto build = [](std::string_view name, double value) {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& add = graph->call_function("aten::add.Tensor", {x, value}, {{"alpha", 2}}, name);
    add.meta().set("m", std::string(name));
    graph->output(Argument::list({add, Argument::dict({{"k", add}}), Argument::slice({}, x)}));
    return graph;
  };
  auto a = build("a", 1.0), b = build("b", 1.0), c = build("a", 2.0);
  EXPECT_TRUE(a->same_structure(*b));
  EXPECT_EQ(a->structural_hash(), b->structural_hash());
  EXPECT_FALSE(a->same_structure(*c));
  EXPECT_NE(a->structural_hash(), c->structural_hash());
}

TEST(Structure, every_part_counts) {
  auto base = [] {
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& y = graph->placeholder("y");
    graph->output(graph->call_function("torch.sub", {x, y}, {{"alpha", 2}}));
    return graph;
  };
  auto differs = [&](auto&& change) {
    auto a = base(), b = base();
    change(*b, *b->find_node("sub"));
    EXPECT_FALSE(a->same_structure(*b));
    EXPECT_FALSE(b->same_structure(*a));
    EXPECT_NE(a->structural_hash(), b->structural_hash());
  };
  differs([](Graph&, Node& n) { n.set_target("torch.add"); });
  differs([](Graph& g, Node& n) { n.set_args({*g.find_node("y"), *g.find_node("x")}); });
  differs([](Graph& g, Node& n) { n.set_args({*g.find_node("x")}); });
  differs([](Graph&, Node& n) { n.update_kwarg("alpha", 2.0); });
  differs([](Graph&, Node& n) { n.update_kwarg("beta", 2); });
  differs([](Graph&, Node& n) { n.set_kwargs({{"beta", 2}}); });
  differs([](Graph&, Node& n) { n.set_type("Tensor"); });
  differs([](Graph& g, Node&) { g.call_method("relu", {*g.find_node("x")}); });
  differs([](Graph& g, Node&) { g.find_node("x")->prepend(*g.find_node("y")); });
  differs([](Graph& g, Node& n) { n.update_arg(1, Argument::list({*g.find_node("y")})); });
}

TEST(Structure, S2_06_version_counts_edits) {
  Graph graph;
  std::uint64_t last = graph.version();
  auto edited = [&] { return std::exchange(last, graph.version()) < graph.version(); };
  Node& x = graph.placeholder("x");
  EXPECT_TRUE(edited());
  Node& relu = graph.call_function("torch.relu", {x});
  EXPECT_TRUE(edited());
  relu.update_arg(0, 1);
  EXPECT_TRUE(edited());
  relu.set_kwargs({{"a", x}});
  EXPECT_TRUE(edited());
  x.prepend(relu);
  EXPECT_TRUE(edited());
  relu.set_target("torch.neg");
  EXPECT_TRUE(edited());
  graph.erase_node(relu);
  EXPECT_TRUE(edited());
  graph.lint();
  (void)graph.str();
  EXPECT_FALSE(edited());
}

}  // namespace
}  // namespace fx
