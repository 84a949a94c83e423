#include "fx/plan/plan.h"

#include "fx/graph/graph_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using Kind = Step::Kind;
using ::testing::HasSubstr;

TEST(Plan, a_chain_needs_one_slot) {
  Graph graph;
  Node* last = &graph.placeholder("x");
  for (int i = 0; i < 50; ++i) last = &graph.call_function("aten::neg", {*last});
  graph.output(*last);
  const Plan plan(graph);
  EXPECT_EQ(plan.steps().size(), 50u);
  EXPECT_EQ(plan.num_slots(), 1u);
  for (const Step& step : plan.steps()) {
    EXPECT_EQ(step.kind, Kind::kOperator);
    ASSERT_EQ(step.calls.size(), 1u);
    EXPECT_TRUE(step.calls[0].direct);
    EXPECT_TRUE(step.calls[0].patches[0].operand.last_use);
    EXPECT_EQ(step.releases, (std::vector<Slot>{0}));
  }
}

TEST(Plan, prints_slots_and_last_uses) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  graph.placeholder("unused");
  Node& weight = graph.get_attr("layer.weight");
  Node& add = graph.call_function("aten::add.Tensor", {x, y}, {{"alpha", 2}});
  Node& mul = graph.call_function("operator.mul", {add, weight});
  Node& view = graph.call_method("view", {mul, 2, 3});
  Node& block = graph.call_module("block", {view}, {{"mask", x}});
  Node& item = graph.call_function("operator.getitem", {block, 0});
  graph.call_function("wrapped", {item, Argument::dict({{"k", y}})});
  graph.output(Argument::tuple({item, item}));
  EXPECT_EQ(Plan(graph).str(),
            "plan: 7 steps, 4 slots\n"
            "  s0 = input x\n"
            "  s1 = input y\n"
            "  _ = input unused\n"
            "  s2 = attr layer.weight\n"
            "  s3 = aten::add.Tensor(self=s0, other=s1, alpha=2)\n"
            "  s2 = aten::mul.Tensor(self=s3!, other=s2!)\n"
            "  s2 = aten::view(self=s2!, size=[2, 3])\n"
            "  s0 = module block(s2!, mask=s0!)\n"
            "  s0 = operator.getitem(s0!, 0)\n"
            "  _ = wrapped(s0, {'k': s1!})\n"
            "  return (s0, s0!)\n");
}

TEST(Plan, a_value_read_twice_by_a_step_is_moved_at_its_last_place) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(graph.call_function("aten::mul.Tensor", {x, x}));
  const Plan plan(graph);
  const auto& patches = plan.steps()[0].calls[0].patches;
  EXPECT_FALSE(patches[0].operand.last_use);
  EXPECT_TRUE(patches[1].operand.last_use);
}

TEST(Plan, stack_order_decides_the_last_use_also_with_keywords) {
  Graph graph;
  Node& x = graph.placeholder("x");
  // Keywords in the order of the call, the stack in that of the schema.
  graph.output(graph.call_function("aten::addmm", {}, {{"mat2", x}, {"mat1", x}, {"self", x}}));
  const Plan plan(graph);
  const auto& patches = plan.steps()[0].calls[0].patches;
  ASSERT_EQ(patches.size(), 3u);
  EXPECT_FALSE(patches[0].operand.last_use);
  EXPECT_FALSE(patches[1].operand.last_use);
  EXPECT_TRUE(patches[2].operand.last_use);
}

TEST(Plan, constants_and_defaults_are_converted_once) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(
      graph.call_function("aten::max_pool2d", {x, 2}, {{"padding", Argument::list({1, 1})}}));
  const Plan plan(graph);
  const OperatorCall& call = plan.steps()[0].calls.at(0);
  // kernel_size: one int for a list of two; stride, dilation and ceil_mode by default.
  EXPECT_TRUE(call.stack[1].isIntList());
  EXPECT_TRUE(call.stack[3].isIntList());
  EXPECT_EQ(call.stack[4].toIntVector(), (std::vector<std::int64_t>{1, 1}));
  EXPECT_FALSE(call.stack[5].toBool());
}

TEST(Plan, overloads_that_cannot_fit_are_ruled_out) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& y = graph.placeholder("y");
  auto overloads = [&](std::string_view target, Args args) {
    Graph copy;
    ValueMap map;
    copy.graph_copy(graph, map);
    for (Argument& arg : args) arg = arg.map_nodes([&](Node& n) { return map.at(&n); });
    copy.output(copy.call_function(target, args));
    const Plan plan(copy);
    std::vector<std::string> out;
    for (const OperatorCall& call : plan.steps()[0].calls)
      out.push_back(toString(call.overload->handle.operator_name()));
    return out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(overloads("torch.neg", {x}), (Names{"aten::neg"}));
  // Numbers are tensors first in arithmetic, as in Python.
  EXPECT_EQ(overloads("operator.add", {x, 1.5}), (Names{"aten::add.Tensor", "aten::add.Scalar"}));
  EXPECT_EQ(overloads("torch.lt", {x, 1.5}), (Names{"aten::lt.Scalar"}));
  EXPECT_EQ(overloads("operator.add", {x, y}), (Names{"aten::add.Tensor"}));
  EXPECT_EQ(overloads("aten::sum", {x}), (Names{"aten::sum"}));
  EXPECT_EQ(overloads("torch.sum", {x, Argument::list({0})}), (Names{"aten::sum.dim_IntList"}));
  EXPECT_EQ(overloads("operator.sub", {1, x}), (Names{"aten::sub.Tensor"}));
  // What two numbers make is the built-in's own matter.
  EXPECT_EQ(overloads("operator.add", {1, 2}), Names{});
}

TEST(Plan, broken_graphs_plan_and_say_why) {
  Graph graph, other;
  Node& x = graph.placeholder("x");
  Node& erased = graph.call_function("aten::neg", {x});
  graph.erase_node(erased);
  graph.call_function("aten::neg", {erased});
  graph.call_function("aten::relu", {other.placeholder("foreign")});
  Node& late_user = graph.call_function("aten::abs", {x});
  Node& late = graph.call_function("aten::exp", {x});
  late_user.set_args({late});
  graph.call_function("mylib::unknown", {x});
  graph.output(late);
  const Plan plan(graph);
  ASSERT_EQ(plan.steps().size(), 5u);
  const std::vector<Step>& steps = plan.steps();
  EXPECT_EQ(steps[0].kind, Kind::kError);
  EXPECT_THAT(steps[0].error, HasSubstr("Node neg_1 referenced nonexistent value neg!"));
  EXPECT_EQ(steps[1].kind, Kind::kError);
  EXPECT_THAT(steps[1].error, HasSubstr("nonexistent value foreign!"));
  EXPECT_EQ(steps[2].kind, Kind::kError);
  EXPECT_EQ(steps[2].error_code, ErrorCode::kMissingValue);
  EXPECT_EQ(steps[3].kind, Kind::kOperator);
  EXPECT_EQ(steps[4].kind, Kind::kFunction);  // asked again when it runs
  EXPECT_THAT(plan.str(), HasSubstr("error: Node abs"));
}

TEST(Plan, nothing_after_the_output_is_planned) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(x);
  graph.call_function("aten::neg", {x});
  const Plan plan(graph);
  EXPECT_TRUE(plan.steps().empty());
  EXPECT_EQ(plan.output_node()->name(), "output");
  EXPECT_EQ(Plan(Graph()).output_node(), nullptr);
}

TEST(Plan, slots_are_as_many_as_values_live_at_once) {
  Graph graph;
  Node& x = graph.placeholder("x");
  // A ladder: every rung is kept until the end.
  Args rungs;
  for (int i = 0; i < 10; ++i) rungs.emplace_back(graph.call_function("aten::neg", {x}));
  // And a chain beside it, which needs one more.
  Node* chain = &x;
  for (int i = 0; i < 10; ++i) chain = &graph.call_function("aten::abs", {*chain});
  rungs.emplace_back(*chain);
  graph.output(Argument::list(rungs));
  EXPECT_EQ(Plan(graph).num_slots(), 11u);
}

}  // namespace
}  // namespace fx
