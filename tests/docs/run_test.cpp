// The snippets of docs/guide/interpreting.md, values.md and call_module.md.

#include <fx/fx.h>
#include <fx/interpret/compare.h>
#include <fx/interpret/debug.h>
#include <fx/interpret/profiler.h>
#include <fx/interpret/value_map.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <iostream>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

namespace nn = fx::nn;

std::shared_ptr<fx::GraphModule> plus_one_times_two() {
  return fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
}

TEST(InterpretingPage, S0_51_a_table_from_goals_to_functions) {
  Page page("guide/interpreting.md");
  for (const char* goal : {"change the arguments of every call of a function",
                           "give one node other inputs", "skip a node", "only watch"})
    EXPECT_TRUE(page.says(goal)) << goal;
  EXPECT_TRUE(page.says("`fetch_args_kwargs_from_env` is public and may be overridden"));
  // It may: an override sees each node's arguments and can change them.
  struct Hundred : fx::Interpreter {
    using fx::Interpreter::Interpreter;
    fx::ArgsKwargs fetch_args_kwargs_from_env(fx::Node& node) override {
      auto fetched = fx::Interpreter::fetch_args_kwargs_from_env(node);
      if (node.calls("operator.add")) fetched.args.at(1) = 100;
      return fetched;
    }
  };
  auto gm = plus_one_times_two();
  EXPECT_EQ(Hundred(*gm).run({torch::tensor(5)}).toTensor().item<int>(), 210);
}

TEST(InterpretingPage, S0_84_S4_98_a_table_of_routes_with_tested_examples) {
  Page page("guide/interpreting.md");
  for (const char* example : {"example node_inputs: debug run", "example node_inputs: edited graph",
                              "example call_module: direct call"})
    EXPECT_FALSE(page.output(example).empty()) << example;
  for (const char* route : {"[call the GraphModule](#call-the-graphmodule)",
                            "[override the interpreter](#override-the-interpreter)",
                            "[edit the graph](#edit-the-graph)"})
    EXPECT_TRUE(page.says(route)) << route;
}

// [skip]
/// Gives the node `mul` a value of our choice instead of running it.
struct SkipMul : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    if (node.name() == "mul") return torch::tensor(42);
    return fx::Interpreter::run_node(node);
  }
};
// [end]

TEST(InterpretingPage, S0_56_the_contract_of_env_and_the_trade_offs) {
  Page page("guide/interpreting.md");
  EXPECT_TRUE(page.says("`run()` stores what `run_node` returned"));
  EXPECT_TRUE(page.says("is destroyed right after the last node that reads it"));
  EXPECT_TRUE(page.says("more code for each node"));
  Capture captured;
  // [use_skip]
  auto gm = plus_one_times_two();
  std::cout << fx::to_string(SkipMul(*gm).run({torch::tensor(5)})) << "\n";
  // [end]
  page.expect_output("use_skip", captured.text());

  // The contract: before a node runs env lacks it, run() stores what was returned, and a value goes
  // when its last reader is done.
  struct Watch : fx::Interpreter {
    using fx::Interpreter::Interpreter;
    fx::Value run_node(fx::Node& node) override {
      EXPECT_FALSE(env().contains(node)) << node;
      if (node.name() == "mul") {
        EXPECT_EQ(env().names(), std::vector<std::string>{"add"});
      }
      return fx::Interpreter::run_node(node);
    }
  };
  Watch watch(*gm);
  watch.run({torch::tensor(5)});
  EXPECT_EQ(watch.env().names(), std::vector<std::string>{"output"});
}

TEST(InterpretingPage, starting_from_values) {
  Page page("guide/interpreting.md");
  Capture captured;
  // [initial_env]
  auto gm = plus_one_times_two();
  fx::Node& x = *gm->graph().find_node("x");
  fx::Node& add = *gm->graph().find_node("add");
  fx::Value result = fx::Interpreter(*gm).run({}, {.initial_env = {{&x, 0}, {&add, 100}}});
  std::cout << fx::to_string(result) << "\n";
  // [end]
  page.expect_output("initial_env", captured.text());
}

TEST(InterpretingPage, profiles) {
  // [profile]
  auto gm = plus_one_times_two();
  fx::ProfilingInterpreter profiler(*gm);
  for (int i = 0; i < 10; ++i) profiler.run({torch::randn({100, 100})});
  std::string table = profiler.table(/*slowest_first=*/true);
  // [end]
  EXPECT_NE(table.find("[100, 100]"), std::string::npos) << table;
}

TEST(InterpretingPage, a_log_of_each_node) {
  Page page("guide/interpreting.md");
  Capture captured;
  // [log]
  auto gm = plus_one_times_two();
  fx::Interpreter interpreter(*gm);
  fx::NodeLog log(interpreter, std::cout);
  interpreter.run({torch::tensor({1.0, 2.0})});
  // [end]
  page.expect_output("log", captured.text());
}

TEST(ValuesPage, S2_01_S2_10_S2_27_what_map_nodes_to_values_is) {
  Page page("guide/values.md");
  EXPECT_TRUE(page.says("`map_nodes_to_values(argument, node)`"));
  EXPECT_TRUE(page.says("It stores nothing"));
  for (const char* example :
       {"example watch_values: random input", "example watch_values: processed values"})
    EXPECT_FALSE(page.output(example).empty()) << example;
  EXPECT_TRUE(page.says("1. `ValueTracker` derives from `fx::Interpreter`"));
  Capture captured;
  // [lookup]
  auto gm = plus_one_times_two();
  fx::Node& mul = *gm->graph().find_node("mul");
  fx::Interpreter interpreter(*gm);
  interpreter.env().set(*gm->graph().find_node("add"), 7);
  std::cout << fx::to_string(interpreter.map_nodes_to_values(mul.arg(0), mul)) << " "
            << fx::to_string(interpreter.map_nodes_to_values(mul.arg(1), mul)) << "\n";
  try {
    interpreter.map_nodes_to_values(gm->graph().find_node("add")->arg(0), mul);
  } catch (const fx::RunError& error) {
    std::cout << error.what() << "\n";
  }
  // [end]
  page.expect_output("lookup", captured.text());
}

TEST(ValuesPage, S2_46_S2_47_S2_48_which_way_to_keep_values) {
  Page page("guide/values.md");
  EXPECT_TRUE(page.says("`record_value` or a hook to store, `map_nodes_to_values` to look up"));
  EXPECT_TRUE(page.says("most freedom"));
  EXPECT_TRUE(page.says("may change with versions"));
  for (const char* example : {"example watch_values: recorder", "example watch_values: own store",
                              "example watch_values: env", "example watch_values: hooks"})
    EXPECT_FALSE(page.output(example).empty()) << example;
}

TEST(CallModulePage, S4_01_S4_109_sections_on_the_role_the_errors_examples_and_alternatives) {
  Page page("guide/call_module.md");
  for (const char* section :
       {"## What it does", "## When it fails", "### The module is not there",
        "### The arguments do not fit", "### The graph is not what you expected",
        "### Devices differ", "## Watching and changing calls", "## Other ways"})
    EXPECT_TRUE(page.says(section)) << section;
}

TEST(CallModulePage, S4_54_S4_63_what_happens_step_by_step) {
  Page page("guide/call_module.md");
  EXPECT_TRUE(page.says("Tracing runs `forward` once, with proxies"));
  EXPECT_TRUE(page.says("`run()` goes through the nodes in their order"));
  EXPECT_FALSE(page.output("example call_module: nested modules").empty());
  EXPECT_FALSE(page.output("example call_module: logged calls").empty());
}

TEST(CallModulePage, S4_86_S4_88_leaving_a_module_out_is_no_fusion) {
  Page page("guide/call_module.md");
  EXPECT_FALSE(page.output("example call_module: without a module").empty());
  EXPECT_TRUE(page.says("This is no fusion"));
  Capture captured;
  // [fuse]
  torch::manual_seed(0);
  nn::Sequential net(nn::Conv2d(3, 16, 3), nn::BatchNorm2d(16), nn::ReLU());
  net->eval();
  auto gm = fx::symbolic_trace(net);
  at::Tensor x = torch::randn({1, 3, 8, 8});
  fx::Value before = (*gm)(x);
  fx::run_passes(*gm, "fuse_conv_bn");
  for (fx::Node& node : gm->graph().nodes()) std::cout << node.name() << " ";
  std::cout << (fx::compare_values(before, (*gm)(x), {.rtol = 1e-4, .atol = 1e-5}).empty()
                    ? "with the same result\n"
                    : "with another result\n");
  // [end]
  page.expect_output("fuse", captured.text());
}

struct OneLinear : torch::nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(10, 5));
  auto forward(auto x) { return linear(x); }
};

TEST(CallModulePage, calls_that_fail_say_why) {
  Page page("guide/call_module.md");
  auto report = [](auto run) {
    try {
      run();
    } catch (const fx::Error& error) {
      std::cout << error.what() << "\n";
    }
  };
  {
    Capture captured;
    // [missing]
    auto gm = fx::symbolic_trace(std::make_shared<OneLinear>());
    gm->graph().find_node("linear")->set_target("liner");
    report([&] { gm->graph().lint(); });
    // [end]
    page.expect_output("missing", captured.text());
  }
  {
    Capture captured;
    // [arity]
    auto gm = fx::symbolic_trace(std::make_shared<OneLinear>());
    fx::Node& linear = *gm->graph().find_node("linear");
    linear.set_args({linear.arg(0), linear.arg(0)});
    report([&] { fx::Interpreter(*gm).run({torch::randn({1, 10})}); });
    // [end]
    page.expect_output("arity", captured.text());
  }
  {
    Capture captured;
    // [devices]
    auto gm = fx::symbolic_trace([](auto x, auto y) { return x + y; });
    auto on_meta = torch::TensorOptions().device(torch::kMeta);
    report([&] { fx::Interpreter(*gm).run({torch::ones({2}), torch::ones({2}, on_meta)}); });
    // [end]
    page.expect_output("devices", captured.text());
  }
}

}  // namespace
}  // namespace fx::docs_test
