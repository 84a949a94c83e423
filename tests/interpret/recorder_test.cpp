#include "fx/interpret/value_map.h"
#include "tests/interpret/models.h"

/// Watching and storing what nodes return.
namespace fx {
namespace {

using ::testing::ElementsAre;
using Log = std::vector<std::string>;
// -------------------------------------------------------------------------------------

struct Recorder : Interpreter {
  using Interpreter::Interpreter;
  void record_value(Node& node, const Value& value) override {
    records.emplace_back(std::string(node.name()), to_string(value));
  }
  std::vector<std::pair<std::string, std::string>> records;
};

TEST(Interpreter, S2_03_overriding_map_nodes_to_values_changes_inputs) {
  struct ZeroMul : Interpreter {
    using Interpreter::Interpreter;
    Value map_nodes_to_values(const Argument& argument, Node& node) override {
      Value value = Interpreter::map_nodes_to_values(argument, node);
      if (node.name() != "mul") return value;
      return map_tensors(value, [](const at::Tensor& t) { return torch::zeros_like(t); });
    }
  };
  auto gm = affine_module();
  EXPECT_TRUE(same(ZeroMul(*gm).run({row({1, 2})}), row({0, 0})));
  Recorder recorder(*gm);
  EXPECT_TRUE(same(recorder.run({row({1, 2})}), row({4, 6})));
  EXPECT_EQ(recorder.records.size(), 4u);
}

TEST(Interpreter, S2_04_intermediates_are_readable_by_node_and_by_name) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, false);
  interpreter.run({row({1, 2})});
  EXPECT_TRUE(same(interpreter.env().at(node_of(*gm, "add")), row({2, 3})));
  EXPECT_TRUE(same(interpreter.env().at("mul"), row({4, 6})));
}

TEST(Interpreter, S2_07_the_recorder_gets_each_node_exactly_once) {
  auto gm = affine_module();
  Recorder recorder(*gm);
  recorder.run({row({1, 2})});
  EXPECT_THAT(
      recorder.records,
      ElementsAre(std::pair("x", "tensor([1., 2.])"), std::pair("add", "tensor([2., 3.])"),
                  std::pair("mul", "tensor([4., 6.])"), std::pair("output", "tensor([4., 6.])")));
}

TEST(Interpreter, S2_25_listing_in_execution_order) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, false);
  interpreter.run({row({1, 2})});
  Log listing;
  for (auto [node, value] : interpreter.env())
    listing.push_back(std::string(node.name()) + " " + to_string(value));
  EXPECT_EQ(listing, (Log{"x tensor([1., 2.])", "add tensor([2., 3.])", "mul tensor([4., 6.])",
                          "output tensor([4., 6.])"}));
}

TEST(Interpreter, S2_29_recorded_values_of_another_type_do_not_flow) {
  struct Processing : Interpreter {
    using Interpreter::Interpreter;
    void record_value(Node& node, const Value& value) override {
      texts.set(node, "Processed: " + to_string(value));
    }
    Env texts;
  };
  auto gm = affine_module();
  Processing interpreter(*gm);
  EXPECT_TRUE(same(interpreter.run({row({3, 4})}), row({8, 10})));
  EXPECT_EQ(interpreter.texts.at("x").toStringRef(), "Processed: tensor([3., 4.])");
  EXPECT_EQ(interpreter.texts.at("output").toStringRef(), "Processed: tensor([ 8., 10.])");
}

TEST(Interpreter, S2_32_S2_30_recorder_computes_on_tensors) {
  struct Conditional : Interpreter {
    using Interpreter::Interpreter;
    void record_value(Node& node, const Value& value) override {
      if (node.calls("torch.relu"))
        relu.set(node, value.toTensor().abs());
      else
        others.set(node, value);
    }
    Env relu, others;
  };
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& relu = graph->call_function("torch.relu", {x});
  graph->output(graph->call_function("operator.add", {relu, 1}));
  GraphModule gm(graph);
  Conditional interpreter(gm);
  EXPECT_TRUE(same(interpreter.run({row({-1, 2})}), row({1, 3})));
  EXPECT_EQ(interpreter.relu.names(), (Names{"relu"}));
  EXPECT_TRUE(same(interpreter.relu.at("relu"), row({0, 2})));
  EXPECT_EQ(interpreter.others.names(), (Names{"x", "add", "output"}));
  EXPECT_TRUE(same(interpreter.others.at("x"), row({-1, 2})));
  EXPECT_TRUE(same(interpreter.others.at("add"), row({1, 3})));
}

TEST(Interpreter, S2_37_an_own_store_keeps_values_alive) {
  struct Store : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      Value value = Interpreter::run_node(node);
      outputs.emplace_back(&node, value);
      return value;
    }
    std::vector<std::pair<Node*, Value>> outputs;
  };
  auto gm = affine_module();
  Store interpreter(*gm);  // with collection
  interpreter.run({row({1, 2})});
  ASSERT_EQ(interpreter.outputs.size(), 4u);
  EXPECT_TRUE(same(interpreter.outputs[1].second, row({2, 3})));
  EXPECT_TRUE(same(interpreter.outputs[2].second, row({4, 6})));
}

TEST(Interpreter, S2_39_stores_kind_shape_and_time_with_each_value) {
  struct Info {
    Opcode op;
    std::vector<std::int64_t> shape;
    double seconds;
  };
  struct Store : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      const auto start = std::chrono::steady_clock::now();
      Value value = Interpreter::run_node(node);
      infos[std::string(node.name())] = {
          node.op(), value.toTensor().sizes().vec(),
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
      return value;
    }
    std::map<std::string, Info> infos;
  };
  ParamModel model;
  auto gm = param_module(model);
  Store interpreter(*gm);
  interpreter.run({torch::ones({10, 20}), torch::ones({10, 1})});
  EXPECT_EQ(interpreter.infos.size(), 7u);
  EXPECT_EQ(interpreter.infos["linear"].op, Opcode::kCallModule);
  EXPECT_EQ(interpreter.infos["linear"].shape, (std::vector<std::int64_t>{10, 5}));
  EXPECT_GT(interpreter.infos["linear"].seconds, 0);
}

}  // namespace
}  // namespace fx
