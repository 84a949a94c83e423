// Code for people: shapes, origins, nested modules.
#include "fx/graph/readable.h"

#include <torch/torch.h>

#include <sstream>

#include "fx/graph/tensor_meta.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::HasSubstr;

// lin(x) + w times y, with what an exporter would know of x and add.
std::shared_ptr<GraphModule> net() {
  struct Net : torch::nn::Module {
    Net() {
      register_module("lin", torch::nn::Linear(3, 2));
      register_parameter("w", torch::ones({2}));
    }
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder_with_default("y", 2);
  Node& lin = graph->call_module("lin", {x});
  Node& w = graph->get_attr("w");
  Node& add = graph->call_function("operator.add", {lin, w});
  graph->output(graph->call_function("operator.mul", {add, y}));
  x.meta().set("val", torch::empty({4, 3}));
  add.meta().set("tensor_meta", TensorMeta(torch::empty({4, 2})));
  add.meta().set("note", "hi");
  add.set_stack_trace("  File \"net.py\", line 3, in forward\n    z = x + w\n");
  return std::make_shared<GraphModule>(Net(), graph, "M");
}

// What torch 2.15 prints for this module.
TEST(Readable, M_009_G_084_as_torch_fx_prints_it) {
  EXPECT_EQ(readable_code(*net()),
            R"py(class M(torch.nn.Module):
    def forward(self, x: "f32[4, 3]", y = 2):
        # No stacktrace found for following nodes
        lin = self.lin(x);  x = None
        w = self.w

        # File: net.py:3 in forward, code: z = x + w
        add: "f32[4, 2]" = lin + w;  lin = w = None

        # No stacktrace found for following nodes
        mul = add * y;  add = y = None
        return mul
)py");
  std::ostringstream out;
  print_readable(*net(), out);
  EXPECT_EQ(out.str(), readable_code(*net()));
  ::testing::internal::CaptureStdout();
  print_readable(*net());
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), out.str());
}

TEST(Readable, CommentsStayOneLine) {
  auto module = net();
  module->graph().find_node("add")->meta().set(
      "stack_trace",
      std::string("File \"net.py\", line 3, in forward\n  z = x\rimport os\x0c\x1b["));
  EXPECT_THAT(
      readable_code(*module),
      HasSubstr("        # File: net.py:3 in forward, code: z = x\\rimport os\\x0c\\x1b[\n"));
}

TEST(Readable, G_085_R_090_strides_devices_and_more_keys_on_demand) {
  auto module = net();
  PythonCodeOptions options;
  options.include_stride = options.include_device = true;
  options.additional_meta = {"note", "rank", "ratio", "frozen", "absent"};
  Meta& meta = module->graph().find_node("add")->meta();
  meta.set("rank", 3);
  meta.set("ratio", 0.5);
  meta.set("frozen", true);
  const std::string text = readable_code(*module, options);
  EXPECT_THAT(text, HasSubstr("def forward(self, x: \"f32[4, 3][3, 1]cpu\", y = 2):\n"));
  EXPECT_THAT(text, HasSubstr("        # File: net.py:3 in forward, code: z = x + w\n"
                              "        # note: 'hi'\n"
                              "        # rank: 3\n"
                              "        # ratio: 0.5\n"
                              "        # frozen: True\n"
                              "        add: \"f32[4, 2][2, 1]cpu\" = lin + w;"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("absent")));
  options.include_stride = false;
  EXPECT_THAT(readable_code(*module, options), HasSubstr("add: \"f32[4, 2]cpu\" = "));
}

TEST(Readable, F_052_no_line_ends_in_blanks_also_of_inner_graphs) {
  auto module = net();
  auto inner = net();
  inner->set_class_name("Inner");
  inner->set_submodule("deep", net());
  module->set_submodule("inner", inner);
  std::istringstream lines(readable_code(*module));
  int classes = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.ends_with(' ')) << line;
    classes += line.find("class ") != std::string::npos;
  }
  EXPECT_EQ(classes, 3);
  EXPECT_THAT(readable_code(*module), HasSubstr("\n    class Inner(torch.nn.Module):\n"
                                                "        def forward(self, x: \"f32[4, 3]\""));
  EXPECT_THAT(readable_code(*module), HasSubstr("\n        class M(torch.nn.Module):\n"));
}

TEST(Readable, M_008_F_062_a_module_as_text_shows_class_parts_and_code) {
  const std::string text = to_string(*net());
  EXPECT_THAT(text, ::testing::StartsWith("M(\n"));
  EXPECT_THAT(text, HasSubstr("(lin): torch::nn::Linear(in_features=3, out_features=2"));
  EXPECT_THAT(text, HasSubstr("    def forward(self, x, y = 2):\n"));
  EXPECT_THAT(text, HasSubstr("lin = self.lin(x);  x = None"));
  EXPECT_THAT(text, HasSubstr("print_readable"));
}

TEST(Readable, N_047_nodes_with_what_is_known_of_their_tensor) {
  auto module = net();
  auto shown = [&](const char* name) {
    return format_node_with_tensor_meta(*module->graph().find_node(name));
  };
  EXPECT_EQ(
      shown("add"),
      "%add : Tensor \"f32[4, 2][2, 1]cpu\" [num_users=1] = call_function[target=operator.add]"
      "(args = (%lin, %w), kwargs = {})");
  EXPECT_EQ(shown("x"), "%x : Tensor \"f32[4, 3][3, 1]cpu\" [num_users=1] = placeholder[target=x]");
  EXPECT_EQ(shown("mul"), module->graph().find_node("mul")->format_node());
  EXPECT_EQ(shown("output"), "return mul");
  module->graph().find_node("mul")->meta().set("example_value", torch::ones({2}, torch::kInt));
  EXPECT_THAT(shown("mul"), HasSubstr("Tensor \"i32[2][1]cpu\""));
}

TEST(Readable, G_118_context_and_title_for_logs) {
  auto module = net();
  const Node& add = *module->graph().find_node("add");
  EXPECT_EQ(get_node_context(add), "%w : [num_users=1] = get_attr[target=w]\n" + add.format_node());
  EXPECT_EQ(get_node_context(add, 1), add.format_node());
  EXPECT_EQ(get_node_context(*module->graph().find_node("x"), 5),
            "%x : [num_users=1] = placeholder[target=x]");
  EXPECT_EQ(format_graph_code("after fusing", *module),
            "TRACED GRAPH\n===== after fusing =====\n" + readable_code(*module));
}

TEST(Readable, stack_traces_of_both_languages) {
  EXPECT_EQ(stack_trace_summary("Traceback:\n  File \"a.py\", line 1, in outer\n    f()\n"
                                "  File \"b.py\", line 22, in inner\n    x = 1  \n"),
            "File: b.py:22 in inner, code: x = 1");
  EXPECT_EQ(stack_trace_summary("  File \"b.py\", line 22, in inner"), "File: b.py:22 in inner");
  EXPECT_EQ(stack_trace_summary("frame #0: f() (0x1 in a.so)\nframe #1: g()\n"),
            "frame #0: f() (0x1 in a.so)");
  EXPECT_EQ(stack_trace_summary("File \"broken"), "");
  EXPECT_EQ(stack_trace_summary(""), "");
}

}  // namespace
}  // namespace fx
