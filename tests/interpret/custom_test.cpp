#include <sstream>

#include "fx/interpret/compare.h"
#include "fx/interpret/debug.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
#include "fx/ops/call.h"
#include "tests/interpret/models.h"

/// What users do by overriding: every customisation that the articles show.
namespace fx {
namespace {

using ::testing::ElementsAre;
using Log = std::vector<std::string>;

/// Calls a lambda instead of run_node; `base` runs the original.
struct WithRunNode : Interpreter {
  using Fn = std::function<Value(WithRunNode&, Node&)>;
  WithRunNode(GraphModule& gm, Fn f, bool collect = true)
      : Interpreter(gm, collect), fn(std::move(f)) {}
  Value run_node(Node& node) override { return fn(*this, node); }
  Value base(Node& node) { return Interpreter::run_node(node); }
  Fn fn;
};

TEST(Interpreter, S0_13_env_lacks_the_node_before_and_has_it_after) {
  auto gm = affine_module();
  Log log;
  WithRunNode interpreter(
      *gm,
      [&](WithRunNode& self, Node& node) {
        EXPECT_FALSE(self.env().contains(node));
        Value value = self.base(node);
        EXPECT_FALSE(self.env().contains(node));
        if (node.prev()) {
          EXPECT_TRUE(self.env().contains(*node.prev()));
        }
        log.emplace_back(node.name());
        return value;
      },
      /*collect=*/false);
  EXPECT_EQ(interpreter.run({1}).toInt(), 4);
  for (Node& node : gm->graph().nodes()) EXPECT_TRUE(interpreter.env().contains(node));
  EXPECT_EQ(log, (Log{"x", "add", "mul", "output"}));
}

TEST(Interpreter, S0_43_delegating_to_the_base_changes_nothing) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::randn({10, 20}), torch::randn({10, 1})};
  WithRunNode interpreter(*gm, [](WithRunNode& self, Node& node) { return self.base(node); });
  EXPECT_TRUE(same(interpreter.run(inputs), Interpreter(*gm).run(inputs).toTensor()));
  // W-05: a bare run_node stores nothing.
  Interpreter bare(*gm);
  bare.env().set(node_of(*gm, "x"), inputs[0]);
  bare.env().set(node_of(*gm, "param"), model->param);
  bare.run_node(node_of(*gm, "add"));
  EXPECT_FALSE(bare.env().contains("add"));
}

TEST(Interpreter, S0_46_injects_values_into_one_node) {
  auto gm = affine_module();
  // Through run_node.
  WithRunNode by_run_node(*gm, [&](WithRunNode& self, Node& node) {
    if (node.name() != "mul") return self.base(node);
    return self.call_function(node.target(), {1000, 2}, {});
  });
  EXPECT_EQ(by_run_node.run({1}).toInt(), 2000);
  // Through map_nodes_to_values.
  struct Injecting : Interpreter {
    using Interpreter::Interpreter;
    Value map_nodes_to_values(const Argument& argument, Node& node) override {
      if (node.name() == "mul" && argument.is_node()) return 1000;
      return Interpreter::map_nodes_to_values(argument, node);
    }
  };
  EXPECT_EQ(Injecting(*gm).run({1}).toInt(), 2000);
  EXPECT_EQ(Interpreter(*gm).run({1}).toInt(), 4);
}

TEST(Interpreter, S0_48_base_handlers_run_any_target_with_any_arguments) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  EXPECT_EQ(interpreter.call_function(Target::function("operator.add"), {0, 0}, {}).toInt(), 0);
  EXPECT_TRUE(same(interpreter.call_function(Target::function("aten::add.Tensor"),
                                             {row({1}), row({2})}, {{Symbol("alpha"), 10}}),
                   row({21})));
  EXPECT_TRUE(same(interpreter.call_method("relu", {row({-1, 1})}, {}), row({0, 1})));
}

TEST(Interpreter, S0_49_maps_tensors_only) {
  Values args{row({1, 2}), 1.0, "text", c10::List<at::Tensor>({row({3})}),
              c10::ivalue::Tuple::create(Values{row({4}), 5})};
  KwValues kwargs{{Symbol("other"), row({6})}, {Symbol("alpha"), 2}};
  map_tensors(args, kwargs, [](const at::Tensor& t) { return torch::zeros_like(t); });
  EXPECT_TRUE(same(args[0], row({0, 0})));
  EXPECT_EQ(args[1].toDouble(), 1.0);
  EXPECT_EQ(args[2].toStringRef(), "text");
  EXPECT_TRUE(same(elements(args[3])[0], row({0})));
  EXPECT_TRUE(same(elements(args[4])[0], row({0})));
  EXPECT_EQ(elements(args[4])[1].toInt(), 5);
  EXPECT_TRUE(same(kwargs[0].value, row({0})));
  EXPECT_EQ(kwargs[1].value.toInt(), 2);
}

TEST(Interpreter, S0_47_zero_inputs_of_one_function) {
  struct ZeroInputs : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      if (target == "operator.add")
        map_tensors(args, kwargs, [](const at::Tensor& t) { return torch::zeros_like(t); });
      return Interpreter::call_function(target, std::move(args), std::move(kwargs));
    }
  };
  ParamModel model;
  auto gm = param_module(model);
  const at::Tensor result =
      ZeroInputs(*gm).run({torch::randn({10, 20}), torch::randn({10, 1})}).toTensor();
  EXPECT_EQ(result.sizes(), (at::IntArrayRef{10, 5}));
  EXPECT_TRUE(torch::allclose(result, model->linear->bias.expand({10, 5})));
}

TEST(Interpreter, S0_52_change_edit_or_skip_the_fetching) {
  auto gm = affine_module();
  // Change: values of one's own instead of fetched ones.
  WithRunNode change(*gm, [](WithRunNode& self, Node& node) {
    if (node.name() != "add") return self.base(node);
    return self.call_function(node.target(), {10, 20}, {});
  });
  EXPECT_EQ(change.run({1}).toInt(), 60);
  // Edit: fetch, then alter.
  WithRunNode edit(*gm, [](WithRunNode& self, Node& node) {
    if (node.name() != "add") return self.base(node);
    auto [args, kwargs] = self.fetch_args_kwargs_from_env(node);
    args[1] = 100;
    return self.call_function(node.target(), std::move(args), std::move(kwargs));
  });
  EXPECT_EQ(edit.run({1}).toInt(), 202);
  // Skip: no fetching, no execution.
  WithRunNode skip(*gm, [](WithRunNode& self, Node& node) {
    return node.name() == "add" ? Value(7) : self.base(node);
  });
  EXPECT_EQ(skip.run({1}).toInt(), 14);
}

TEST(Interpreter, S0_53_skip_a_node_and_supply_its_value) {
  auto gm = affine_module();
  for (bool write_env : {false, true}) {
    WithRunNode interpreter(*gm, [&](WithRunNode& self, Node& node) {
      if (node.name() != "mul") return self.base(node);
      if (write_env) self.env().set(node, 42);
      return Value(42);
    });
    EXPECT_EQ(interpreter.run({1}).toInt(), 42);
    EXPECT_EQ(interpreter.env().names(), (Names{"output"}));
  }
}

TEST(Interpreter, S0_54_unneeded_inputs_are_freed_without_a_fetch) {
  auto gm = affine_module();
  WithRunNode interpreter(
      *gm, [](WithRunNode&, Node& node) -> Value { return std::string(node.name()); });
  EXPECT_EQ(interpreter.run({row({1, 2})}).toStringRef(), "output");
  EXPECT_EQ(interpreter.env().names(), (Names{"output"}));
}

TEST(Interpreter, S0_57_S0_58_call_module_with_changed_arguments) {
  ParamModel model;
  auto gm = param_module(model);
  WithRunNode interpreter(*gm, [](WithRunNode& self, Node& node) {
    if (node.op() != Opcode::kCallModule || !(node.target() == "linear")) return self.base(node);
    return self.call_module("linear", {torch::ones({5, 20})}, {});
  });
  const at::Tensor result =
      interpreter.run({torch::randn({10, 20}), torch::randn({10, 1})}).toTensor();
  EXPECT_TRUE(same(result, model->linear->forward(torch::ones({5, 20}))));
}

TEST(Interpreter, S0_59_S2_33_S2_35_writing_env_from_an_override) {
  auto gm = affine_module();
  Log live;
  WithRunNode interpreter(*gm, [&](WithRunNode& self, Node& node) {
    Value value = self.base(node);
    self.env()[node] = value;
    live.push_back(std::string(node.name()) + " " + to_string(self.env().at(node)));
    return value;
  });
  const at::Tensor x = row({1, 2});
  const auto uses = x.use_count();
  EXPECT_TRUE(same(interpreter.run({x}), row({4, 6})));
  EXPECT_EQ(live, (Log{"x tensor([1., 2.])", "add tensor([2., 3.])", "mul tensor([4., 6.])",
                       "output tensor([4., 6.])"}));
  EXPECT_EQ(interpreter.env().names(), (Names{"output"}));  // collection still worked
  EXPECT_EQ(x.use_count(), uses);
  // W-05: run() overwrites what the override wrote by what it returned.
  WithRunNode forgetful(*gm, [](WithRunNode& self, Node& node) {
    Value value = self.base(node);
    self.env()[node] = value;
    return node.name() == "add" ? Value() : value;
  });
  EXPECT_FX_ERROR(forgetful.run({x}), RunError, kNodeFailed, "While executing %mul : ");
}

TEST(Interpreter, S0_21_store_value_changes_how_values_enter_env) {
  struct Rounding : Interpreter {
    using Interpreter::Interpreter;
    void store_value(Node& node, Value value) override {
      if (value.isDouble()) value = std::round(value.toDouble());
      Interpreter::store_value(node, std::move(value));
    }
  };
  auto gm = affine_module();
  EXPECT_EQ(Rounding(*gm).run({1.4}).toDouble(), 4.0);  // x -> 1, add 2, mul 4
}

// --- state
// -----------------------------------------------------------------------------------------

TEST(Interpreter, S2_19_ready_when_all_inputs_are_in_env) {
  auto gm = affine_module();
  Node& add = node_of(*gm, "add");
  Node& mul = node_of(*gm, "mul");
  Interpreter interpreter(*gm);
  interpreter.start({1});
  EXPECT_TRUE(interpreter.ready(node_of(*gm, "x")));
  EXPECT_FALSE(interpreter.ready(add));
  interpreter.step();
  EXPECT_TRUE(interpreter.ready(add));
  EXPECT_FALSE(interpreter.ready(mul));
  interpreter.step();
  EXPECT_TRUE(interpreter.ready(mul));
}

TEST(Interpreter, S2_20_get_attr_reads_the_live_parameter) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::ones({10, 20}), torch::ones({10, 1})};
  Interpreter interpreter(*gm);
  torch::NoGradGuard no_grad;
  EXPECT_TRUE(
      same(interpreter.run(inputs), model->forward(inputs[0].toTensor(), inputs[1].toTensor())));
  model->param.fill_(3);  // updated in place, as an optimiser does
  EXPECT_TRUE(same(interpreter.run(inputs), model->linear->forward(torch::full({10, 20}, 4.0f))));
  EXPECT_TRUE(same(gm->forward(inputs), model->linear->forward(torch::full({10, 20}, 4.0f))));
  gm->set_parameter("param", torch::full({10, 20}, 9.0f));  // replaced
  EXPECT_TRUE(same(interpreter.run(inputs), model->linear->forward(torch::full({10, 20}, 10.0f))));
  EXPECT_TRUE(same(gm->forward(inputs), model->linear->forward(torch::full({10, 20}, 10.0f))));
}

TEST(Interpreter, S2_21_runs_are_independent) {
  auto gm = affine_module();
  Interpreter interpreter(*gm, false);
  EXPECT_TRUE(interpreter.env().empty());
  EXPECT_EQ(interpreter.run({1}).toInt(), 4);
  EXPECT_EQ(interpreter.run({10}).toInt(), 22);
  EXPECT_EQ(interpreter.env().size(), 4u);
  EXPECT_THROW(interpreter.run({"text"}), RunError);
  EXPECT_EQ(interpreter.run({1}).toInt(), 4);
}

// --- call_module
// -----------------------------------------------------------------------------------

struct ModuleCalls : Interpreter {
  using Interpreter::Interpreter;
  Value call_module(std::string_view target, Values args, KwValues kwargs) override {
    log.push_back("call_module: " + std::string(target));
    if (target == "sub_module_a")
      log.push_back("special: " + describe(args[0]));
    else if (target == "another_linear")
      log.push_back("another_linear");
    ++count[std::string(target)];
    return Interpreter::call_module(target, std::move(args), std::move(kwargs));
  }
  Log log;
  std::map<std::string, int> count;
};

TEST(Interpreter, S4_55_S4_57_S4_58_S4_60_counts_and_logs_module_calls) {
  MyModel model;
  auto gm = my_model_module(model, /*leaf=*/false);
  ModuleCalls interpreter(*gm);
  const at::Tensor x = torch::randn({1, 10});
  EXPECT_TRUE(same(interpreter.run({x}), model->forward(x)));
  EXPECT_EQ(interpreter.log,
            (Log{"call_module: sub_module_a.linear", "call_module: sub_module_b.linear",
                 "call_module: another_linear", "another_linear"}));
  EXPECT_EQ(interpreter.count["another_linear"], 1);
  interpreter.run({x});
  EXPECT_EQ(interpreter.count["another_linear"], 2);
}

TEST(Interpreter, S4_59_the_special_branch_fires_once_under_the_leaf_policy) {
  MyModel model;
  auto gm = my_model_module(model, /*leaf=*/true);
  ModuleCalls interpreter(*gm);
  interpreter.run({torch::randn({1, 10})});
  EXPECT_EQ(interpreter.log,
            (Log{"call_module: sub_module_a", "special: Tensor f32[1, 10]",
                 "call_module: sub_module_b", "call_module: another_linear", "another_linear"}));
}

TEST(Interpreter, S4_08_call_module_overrides_profile_change_and_debug) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::randn({10, 20}), torch::randn({10, 1})};
  struct Timing : Interpreter {
    using Interpreter::Interpreter;
    Value call_module(std::string_view target, Values args, KwValues kwargs) override {
      const auto start = std::chrono::steady_clock::now();
      Value value = Interpreter::call_module(target, std::move(args), std::move(kwargs));
      times[std::string(target)] += std::chrono::steady_clock::now() - start;
      return value;
    }
    std::map<std::string, std::chrono::nanoseconds> times;
  } timing(*gm);
  timing.run(inputs);
  EXPECT_GT(timing.times.at("linear").count(), 0);
  struct Doubling : Interpreter {
    using Interpreter::Interpreter;
    Value call_module(std::string_view target, Values args, KwValues kwargs) override {
      return Interpreter::call_module(target, std::move(args), std::move(kwargs)).toTensor() * 2;
    }
  };
  const at::Tensor plain = Interpreter(*gm).run(inputs).toTensor();
  EXPECT_TRUE(same(Doubling(*gm).run(inputs), plain * 2));
  ModuleCalls debugging(*gm);
  debugging.run(inputs);
  EXPECT_EQ(debugging.log, (Log{"call_module: linear"}));
}

// torch.fx's test_interpreter_run_node_override and test_interpreter_onthefly_swap.
TEST(Interpreter, F_092_run_node_sees_every_node_F_093_handlers_swap_on_the_fly) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sigmoid = graph->call_function("torch.sigmoid", {x});
  graph->output(graph->call_method("neg", {sigmoid}));
  GraphModule gm(graph);
  struct RunNode : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      seen.emplace_back(node.name());
      return Interpreter::run_node(node);
    }
    Names seen;
  } run_node(gm);
  const at::Tensor input = torch::randn({3, 4});
  EXPECT_TRUE(same(run_node.run({input}), torch::sigmoid(input).neg()));
  EXPECT_EQ(run_node.seen, (Names{"x", "sigmoid", "neg", "output"}));
  struct Swap : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      return Interpreter::call_function(
          target == "torch.sigmoid" ? Target::function("torch.neg") : target, std::move(args),
          std::move(kwargs));
    }
    Value call_method(std::string_view target, Values args, KwValues kwargs) override {
      return Interpreter::call_method(target == "neg" ? "sigmoid" : target, std::move(args),
                                      std::move(kwargs));
    }
  } swap(gm);
  EXPECT_TRUE(same(swap.run({input}), torch::neg(input).sigmoid()));
  EXPECT_TRUE(same(gm(input), torch::sigmoid(input).neg())) << "the graph is what it was";
}

}  // namespace
}  // namespace fx
