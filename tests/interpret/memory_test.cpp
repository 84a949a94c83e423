#include "fx/interpret/interpreter.h"
#include "tests/interpret/models.h"

namespace fx {
namespace {

// Counts the values in env after each node's result is stored and before anything is released.
struct PeakCounter : Interpreter {
  using Interpreter::Interpreter;
  void store_value(Node& node, Value value) override {
    Interpreter::store_value(node, std::move(value));
    peak = std::max(peak, env().size());
  }
  std::size_t peak = 0;
};

TEST(Interpreter, F1_S0_26_peak_of_live_values_on_a_chain) {
  auto gm = chain_module(50);
  PeakCounter collecting(*gm);
  EXPECT_EQ(collecting.run({0}).toInt(), 50);
  EXPECT_EQ(collecting.peak, 2u);
  EXPECT_EQ(collecting.env().names(), (Names{"output"}));
  PeakCounter keeping(*gm, /*garbage_collect_values=*/false);
  EXPECT_EQ(keeping.run({0}).toInt(), 50);
  EXPECT_EQ(keeping.peak, 52u);
  EXPECT_EQ(keeping.env().size(), 52u);
}

// Counts tensors that exist, by watching the ones that nodes made.
struct TensorCounter : Interpreter {
  using Interpreter::Interpreter;
  void record_value(Node&, const Value& value) override {
    if (value.isTensor()) made.emplace_back(value.toTensor().getIntrusivePtr());
    std::size_t alive = 0;
    for (const auto& weak : made) alive += !weak.expired();
    peak = std::max(peak, alive);
  }
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> made;
  std::size_t peak = 0;
};

TEST(Interpreter, F1_tensors_really_go) {
  auto gm = chain_module(50);
  TensorCounter interpreter(*gm);
  Values inputs{torch::zeros({8})};
  interpreter.run(std::move(inputs));
  EXPECT_EQ(interpreter.made.size(), 52u);
  EXPECT_EQ(interpreter.peak, 2u);
}

TEST(Interpreter, F2_values_nobody_uses_die_at_once) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->placeholder("unused");
  Node& y = graph->call_function("operator.neg", {x});
  graph->call_function("aten::add_.Tensor", {y, x});  // in place: kept, its result unused
  Node& z = graph->call_function("operator.neg", {y});
  graph->output(z);
  GraphModule gm(graph);
  struct Watch : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      before.push_back(std::string(node.name()) + ":");
      for (const std::string& name : env().names()) before.back() += " " + name;
      return Interpreter::run_node(node);
    }
    std::vector<std::string> before;
  } interpreter(gm);
  interpreter.run({torch::ones({2}), torch::ones({1000})});
  EXPECT_THAT(interpreter.before,
              ::testing::ElementsAre("x:", "unused: x", "neg: x", "add__tensor: x neg",
                                     "neg_1: neg", "output: neg_1"));
}

TEST(Interpreter, S0_29_collection_is_the_default) {
  auto gm = affine_module();
  EXPECT_TRUE(Interpreter(*gm).garbage_collect_values());
  EXPECT_FALSE(Interpreter(*gm, false).garbage_collect_values());
}

TEST(Interpreter, values_read_twice_by_one_node_die_after_it) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& square = graph->call_function("operator.mul", {x, x});
  graph->output(Argument::tuple({square, square}));
  GraphModule gm(graph);
  EXPECT_EQ(to_string(Interpreter(gm).run({3})), "(9, 9)");
  EXPECT_EQ(to_string(gm(3)), "(9, 9)");
}

TEST(Interpreter, long_chains_need_no_stack) {
  auto gm = chain_module(20000);
  EXPECT_EQ(Interpreter(*gm).run({0}).toInt(), 20000);
  EXPECT_EQ((*gm)(0).toInt(), 20000);
}

}  // namespace
}  // namespace fx
