// Pictures of modules, and what passes did to them.
#include "fx/passes/graph_drawer.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fx/base/error.h"
#include "fx/graph/node_source.h"
#include "fx/passes/graph_transform_observer.h"
#include "fx/passes/shape_prop.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using testing::HasSubstr;
using testing::Not;
using Names = std::set<std::string>;

std::shared_ptr<GraphModule> network() {
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::ReLU());
  auto gm = symbolic_trace(*model);
  Graph& graph = gm->graph();
  Node& output = graph.output_node();
  const auto guard = graph.inserting_before(output);
  Node& sum = graph.call_function("torch.sum", {output.arg(0), 1}, {{"keepdim", true}});
  Node& twice = graph.call_function("torch.sum", {sum, 0});
  output.set_args({twice});
  gm->recompile();
  return gm;
}

// The line of the box of that name.
std::string box(const std::string& dot, const std::string& name) {
  std::istringstream in(dot);
  for (std::string line; std::getline(in, line);)
    if (line.find("name=%" + name + "\\n") != std::string::npos) return line;
  return {};
}

std::string color(const std::string& line) {
  const auto begin = line.find("fillcolor=\"") + 11;
  return line.substr(begin, line.find('"', begin) - begin);
}

TEST(FxGraphDrawer, P_005_boxes_colours_and_shapes) {
  auto gm = network();
  const std::string before = FxGraphDrawer(*gm, "net").get_dot_graph();
  EXPECT_THAT(before, HasSubstr("digraph \"net\""));
  EXPECT_THAT(before, Not(HasSubstr("dtype=")));
  ShapeProp(*gm).propagate({Value(torch::rand({2, 3}))});
  const std::string dot = FxGraphDrawer(*gm, "net").get_main_dot_graph();
  const std::string sum = box(dot, "sum_1");
  for (const char* part :
       {"op_code=call_function", "target=torch.sum", "args=(1,)", "kwargs={'keepdim': True}",
        "num_users=1", "dtype=torch.float32", "shape=(2, 1)", "stride=(1, 1)"})
    EXPECT_THAT(sum, HasSubstr(part));
  // Equal targets, equal colours; all others by opcode.
  EXPECT_EQ(color(sum), color(box(dot, "sum_2")));
  EXPECT_EQ(color(box(dot, "input_1")), "AliceBlue");
  EXPECT_EQ(color(box(dot, "_0")), "LemonChiffon1");
  EXPECT_THAT(box(dot, "_0"), HasSubstr("torch.nn.Linear"));
}

TEST(FxGraphDrawer, P_005_options) {
  auto gm = network();
  auto draw = [&](const GraphDrawerOptions& options) {
    return FxGraphDrawer(*gm, "net", options).get_dot_graph();
  };
  EXPECT_THAT(draw({}), HasSubstr("_0.weight\\nop_code=get_parameter\\ntorch.float32(4, 3)"));
  EXPECT_THAT(draw({.ignore_parameters_and_buffers = true}), Not(HasSubstr("weight")));
  EXPECT_THAT(draw({.skip_node_names_in_args = false}), HasSubstr("args=(%_1, 1)"));
  EXPECT_THAT(draw({.dot_graph_shape = "record"}), HasSubstr("node [shape=record"));
  EXPECT_THAT(box(draw({.normalize_args = true}), "sum_1"),
              HasSubstr("kwargs={'dim': 1, 'keepdim': True, 'dtype': None}"));
  Node& sum = *gm->graph().find_node("sum_1");
  sum.set_stack_trace("  File \"/home/me/net.py\", line 7, in forward\n    z = x.sum(1)\n");
  EXPECT_THAT(draw({}), Not(HasSubstr("net.py")));
  EXPECT_THAT(box(draw({.parse_stack_trace = true}), "sum_1"), HasSubstr("net.py:7"));
  // Attributes as nodes.
  gm->set_parameter("bias", torch::rand({1}));
  {
    const auto guard = gm->graph().inserting_before(sum);
    Node& bias = gm->graph().get_attr("bias");
    sum.update_arg(1, bias);
  }
  EXPECT_THAT(draw({}), HasSubstr("name=%bias"));
  const std::string without = draw({.ignore_getattr = true});
  EXPECT_THAT(without, Not(HasSubstr("name=%bias")));
}

TEST(FxGraphDrawer, P_005_nested_modules) {
  auto inner = parse_module(
      "%a = placeholder[target=a]\n%b = call_function[target=torch.relu](args "
      "= (%a,))\nreturn %b\n");
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->create_node(Opcode::kCallModule, Target::string("part.one"), {x}));
  GraphModule gm(graph);
  gm.set_submodule("part.one", inner);
  const FxGraphDrawer drawer(gm, "net");
  const auto all = drawer.get_all_dot_graphs();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at("net"), drawer.get_dot_graph());
  EXPECT_EQ(all.at("net_part_one"), drawer.get_submod_dot_graph("net_part_one"));
  EXPECT_THAT(all.at("net_part_one"), HasSubstr("target=torch.relu"));
  EXPECT_THROW(drawer.get_dot_graph("net_part"), GraphError);
}

// --- the observer --------------------------------------------------------------------------------

std::shared_ptr<GraphModule> neg_of_x() {
  return parse_module(R"(
%x = placeholder[target=x]
%neg = call_function[target=torch.neg](args = (%x,))
%add = call_function[target=torch.add](args = (%neg, 1))
return %add
)");
}

void replace_call(GraphModule& gm, const char* old_target, const char* new_target) {
  Graph& graph = gm.graph();
  for (Node* node : graph.find_calls(old_target)) {
    const auto guard = graph.inserting_before(*node);
    Node& made = graph.call_function(new_target, Args(node->args().begin(), node->args().end()));
    node->replace_all_uses_with(made);
    graph.erase_node(*node);
  }
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fxcpp_observer_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

TEST(GraphTransformObserver, P_006_R_076_created_and_erased_nodes) {
  const Folder folder;
  auto gm = neg_of_x();
  const int count = GraphTransformObserver::get_current_pass_count();
  GraphTransformObserver observer(*gm, "relu_for_neg", {.log_folder = folder.path});
  EXPECT_EQ(GraphTransformObserver::get_current_pass_count(), count + 1);
  EXPECT_TRUE(observer.apply_gm_pass(
      [](GraphModule& module) { replace_call(module, "torch.neg", "torch.relu"); }));
  EXPECT_EQ(observer.created_nodes(), Names{"relu"});
  EXPECT_EQ(observer.erased_nodes(), Names{"neg"});
  const std::string prefix = "pass_" + std::to_string(count + 1) + "_relu_for_neg_";
  const std::string input = read(folder.path / (prefix + "input_graph.dot"));
  const std::string output = read(folder.path / (prefix + "output_graph.dot"));
  EXPECT_THAT(input, HasSubstr("[fillcolor=\"yellow\", label=\"neg\\n"));
  EXPECT_THAT(input, HasSubstr("[fillcolor=\"grey\", label=\"add\\n"));
  EXPECT_THAT(output, HasSubstr("[fillcolor=\"yellow\", label=\"relu\\n"));
  EXPECT_THAT(output, HasSubstr("[fillcolor=\"grey\", label=\"add\\n"));
  // It no longer watches.
  replace_call(*gm, "torch.relu", "torch.sin");
  EXPECT_EQ(observer.created_nodes(), Names{"relu"});
  // A pass that changes nothing leaves no pictures.
  GraphTransformObserver idle(*gm, "idle", {.log_folder = folder.path});
  EXPECT_EQ(idle.apply_graph_pass([](Graph& graph) { return graph.size(); }), 4u);
  EXPECT_FALSE(std::filesystem::exists(
      folder.path / ("pass_" + std::to_string(count + 2) + "_idle_input_graph.dot")));
}

TEST(GraphTransformObserver, P_006_R_076_where_nodes_come_from) {
  auto gm = neg_of_x();
  GraphTransformObserver(*gm, "first").apply_gm_pass([](GraphModule& module) {
    replace_call(module, "torch.neg", "torch.relu");
  });
  GraphTransformObserver(*gm, "second").apply_gm_pass([](GraphModule& module) {
    replace_call(module, "torch.relu", "torch.cos");
  });
  const auto sources = from_node(*gm->graph().find_node("cos"));
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].name, "relu");
  EXPECT_EQ(sources[0].target, "torch.relu");
  EXPECT_EQ(sources[0].pass_name, "second");
  EXPECT_EQ(sources[0].actions,
            (std::vector{NodeSourceAction::kReplace, NodeSourceAction::kCreate}));
  ASSERT_EQ(sources[0].from_node.size(), 1u);
  EXPECT_EQ(sources[0].from_node[0].name, "neg");
  EXPECT_EQ(sources[0].from_node[0].pass_name, "first");
}

TEST(GraphTransformObserver, P_006_R_076_copies_and_disabled_passes) {
  auto gm = neg_of_x();
  std::shared_ptr<GraphModule> copy;
  GraphTransformObserver observer(*gm, "copying");
  observer.apply_gm_pass([&](GraphModule& module) { copy = module.deep_copy(); });
  const Names seen = observer.created_nodes();
  replace_call(*copy, "torch.neg", "torch.relu");  // the copy is not watched any more
  EXPECT_EQ(observer.created_nodes(), seen);
  EXPECT_TRUE(from_node(*copy->graph().find_node("relu")).empty());
  bool ran = false;
  GraphTransformObserver off(*gm, "off", {.disabled_passes = {"off"}});
  EXPECT_FALSE(off.apply_gm_pass([&](GraphModule&) { ran = true; }));
  EXPECT_FALSE(ran);
  GraphTransformObserver value(*gm, "off", {.disabled_passes = {"off"}});
  EXPECT_EQ(value.apply_gm_pass([](GraphModule&) { return 3; }), std::nullopt);
  // A pass that throws ends the watching as well.
  {
    GraphTransformObserver failing(*gm, "failing");
    EXPECT_THROW(failing.apply_gm_pass([](GraphModule&) { throw std::runtime_error("no"); }),
                 std::runtime_error);
  }
  EXPECT_NO_THROW(replace_call(*gm, "torch.neg", "torch.relu"));
  EXPECT_TRUE(from_node(*gm->graph().find_node("relu")).empty());
}

}  // namespace
}  // namespace fx
