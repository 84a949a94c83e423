#include "fx/graph/dot.h"

#include <cstdio>
#include <fstream>

#include "tests/graph/graphs.h"
#include "tests/graph/random_graph.h"

namespace fx {
namespace {

// What `dot` says about the text: its exit status and messages; also checks that an SVG comes out.
std::pair<int, std::string> run_dot(const std::string& text) {
  const std::string base = ::testing::TempDir() + "fx_dot_" + std::to_string(::getpid());
  std::ofstream(base + ".dot", std::ios::binary) << text;
  const int status =
      std::system(("dot -Tsvg " + base + ".dot >" + base + ".svg 2>" + base + ".log").c_str());
  std::ifstream log(base + ".log"), svg(base + ".svg");
  const std::string messages{std::istreambuf_iterator<char>(log), {}};
  const std::string drawn{std::istreambuf_iterator<char>(svg), {}};
  for (const char* end : {".dot", ".svg", ".log"}) std::remove((base + end).c_str());
  EXPECT_EQ(status != 0, drawn.find("</svg>") == std::string::npos) << messages;
  return {status, messages};
}

TEST(Dot, R_077_boxes_and_arrows) {
  Graph graph;
  Node& x = graph.placeholder("x", "Tensor");
  Node& add = graph.call_function("operator.add", {x, x}, {{"alpha", 2}});
  graph.output(add);
  EXPECT_EQ(to_dot(graph, {.title = "net"}),
            "digraph \"net\" {\n"
            "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\"];\n"
            "  n0 [fillcolor=\"#d5e8d4\", label=\"x\\nplaceholder x\\n: Tensor\\n\"];\n"
            "  n1 [fillcolor=\"#f5f5f5\", label=\"add\\ncall_function operator.add\\n(%x, %x) "
            "{'alpha': 2}\\n\"];\n"
            "  n2 [fillcolor=\"#f8cecc\", label=\"output\\noutput output\\n(%add,)\\n\"];\n"
            "  n0 -> n1;\n"
            "  n1 -> n2;\n"
            "}\n");
}

// F54: arrows, braces, quotes, backslashes, line feeds, bytes that are no UTF-8, and long text.
TEST(Dot, F54_any_text_is_a_label) {
  Graph graph;
  Node& x = graph.placeholder("a -> b {c|d} \"q\" \\N \\l\n\r\t<b>&amp;</b>\x01\xff");
  graph.call_function("f{}\"->", {x, std::string(100000, 'w'), "größe\\"}, {{"\"}{\\", "\\\""}}, {},
                      "Dict[\"->\", {\\}]");
  const std::string text = to_dot(graph, {.title = "\"t\\\n"});
  EXPECT_LT(text.size(), 1000u) << "long text is cut";
  const auto [status, messages] = run_dot(text);
  EXPECT_EQ(status, 0) << messages << text;
  EXPECT_EQ(messages, "");
}

TEST(Dot, cuts_between_characters) {
  Graph graph;
  graph.get_attr("ääääääääää");
  const std::string text = to_dot(graph, {.max_line = 16});
  EXPECT_THAT(text, ::testing::HasSubstr("get_attr ää...\\n"));
}

TEST(Dot, broken_graphs_are_drawn_too) {
  Graph graph, other;
  Node& y = other.placeholder("y");
  Node& f = graph.call_function("f", {y});
  f.set_args({f, y});
  EXPECT_THAT(to_dot(graph), ::testing::HasSubstr("  n0 -> n0;\n  n1 -> n0;\n"));
  EXPECT_EQ(run_dot(to_dot(graph)).first, 0);
  EXPECT_EQ(run_dot(to_dot(Graph())).first, 0);
}

TEST(Dot, random_graphs_are_drawn) {
  std::string all;
  for (std::uint64_t seed = 0; seed < 150; ++seed) all += to_dot(*random_graph(seed));
  const auto [status, messages] = run_dot(all);  // one file of many graphs
  EXPECT_EQ(status, 0);
  EXPECT_EQ(messages, "");
}

}  // namespace
}  // namespace fx
