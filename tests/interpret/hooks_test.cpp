#include <ATen/record_function.h>
#include <sstream>

#include "fx/interpret/compare.h"
#include "fx/interpret/debug.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/profiler.h"
#include "fx/ops/call.h"
#include "tests/interpret/models.h"

namespace fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Log = std::vector<std::string>;

TEST(NodeHooks, S2_40_pre_and_post_fire_once_for_each_node_in_order) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  Log log;
  interpreter.register_node_pre_hook([&](Node& node, const Values& args, const KwValues& kwargs) {
    std::string line = "pre " + std::string(node.name());
    for (const Value& arg : args) line += " " + to_string(arg);
    log.push_back(line + (kwargs.empty() ? "" : " kwargs"));
  });
  interpreter.register_node_post_hook([&](Node& node, const Value& output) {
    log.push_back("post " + std::string(node.name()) + " " + to_string(output));
  });
  EXPECT_EQ(interpreter.run({3}).toInt(), 8);
  EXPECT_EQ(log, (Log{"pre x", "post x 3", "pre add 3 1", "post add 4", "pre mul 4 2", "post mul 8",
                      "pre output 8", "post output 8"}));
}

TEST(NodeHooks, S2_41_hooks_run_in_registration_order_and_can_be_removed) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  std::string log;
  auto hook = [&log](char c) {
    return [&log, c](Node& node, const Values&, const KwValues&) {
      if (node.name() == "add") log += c;
    };
  };
  HookHandle a = interpreter.register_node_pre_hook(hook('a'));
  HookHandle b = interpreter.register_node_pre_hook(hook('b'));
  HookHandle c = interpreter.register_node_pre_hook(hook('c'));
  interpreter.run({1});
  EXPECT_EQ(log, "abc");
  b.remove();
  EXPECT_FALSE(b.active());
  EXPECT_TRUE(a.active());
  log.clear();
  interpreter.run({1});
  EXPECT_EQ(log, "ac");
  a.remove();
  a.remove();
  c.remove();
  log.clear();
  interpreter.run({1});
  EXPECT_EQ(log, "");
}

TEST(NodeHooks, S2_41_pre_hook_sees_resolved_inputs_before_execution) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  interpreter.register_node_pre_hook([&](Node& node, const Values& args, const KwValues&) {
    EXPECT_FALSE(interpreter.env().contains(node));
    EXPECT_EQ(interpreter.current_node(), &node);
    if (node.name() == "mul") {
      EXPECT_TRUE(same(args[0], row({2, 3})));
    }
  });
  interpreter.run({row({1, 2})});
  EXPECT_EQ(interpreter.current_node(), nullptr);
}

TEST(NodeHooks, S2_42_S2_43_registered_from_the_constructor_with_a_method) {
  struct HookBased : Interpreter {
    explicit HookBased(GraphModule& gm) : Interpreter(gm) {
      register_node_post_hook([this](Node& node, const Value& output) { post_hook(node, output); });
      register_node_post_hook(std::bind_front(&HookBased::second_hook, this));
    }
    void post_hook(Node& node, const Value& output) {
      lines.push_back(std::string(node.name()) + " " + to_string(output));
      values.set(node, output);
    }
    void second_hook(Node&, const Value&) { ++calls; }
    Log lines;
    Env values;
    int calls = 0;
  };
  auto gm = affine_module();
  HookBased interpreter(*gm);
  EXPECT_TRUE(same(interpreter.run({row({1, 2})}), row({4, 6})));
  EXPECT_EQ(interpreter.lines, (Log{"x tensor([1., 2.])", "add tensor([2., 3.])",
                                    "mul tensor([4., 6.])", "output tensor([4., 6.])"}));
  EXPECT_EQ(interpreter.values.names(), (Names{"x", "add", "mul", "output"}));
  EXPECT_EQ(interpreter.calls, 4);
}

TEST(NodeHooks, S2_44_post_hook_gets_the_node_and_its_output) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  const Interpreter::PostHook hook = [&](Node& node, const Value& output) {
    if (node.name() != "add") return;
    EXPECT_EQ(&node, &node_of(*gm, "add"));
    EXPECT_EQ(output.toInt(), 2);
  };
  interpreter.register_node_post_hook(hook);
  interpreter.run({1});
}

TEST(NodeHooks, S2_45_hooks_do_not_alter_the_flow) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::randn({10, 20}), torch::randn({10, 1})};
  const at::Tensor plain = Interpreter(*gm).run(inputs).toTensor();
  Interpreter hooked(*gm);
  hooked.register_node_pre_hook([](Node&, Values args, KwValues) { args.clear(); });
  hooked.register_node_post_hook([](Node&, Value output) { output = 5; });
  EXPECT_TRUE(same(hooked.run(inputs), plain));
}

TEST(NodeHooks, S2_36_post_hooks_run_whoever_stores_the_value) {
  struct Own : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override { return env()[node] = Interpreter::run_node(node); }
    void store_value(Node& node, Value value) override { env().set(node, std::move(value)); }
  };
  auto gm = affine_module();
  Own interpreter(*gm);
  Log log;
  interpreter.register_node_post_hook(
      [&](Node& node, const Value&) { log.emplace_back(node.name()); });
  interpreter.run({1});
  EXPECT_EQ(log, (Log{"x", "add", "mul", "output"}));
}

TEST(NodeHooks, a_hook_may_remove_itself_and_add_others) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  std::string log;
  HookHandle once;
  once = interpreter.register_node_post_hook([&](Node&, const Value&) {
    log += '1';
    once.remove();
    interpreter.register_node_post_hook([&](Node&, const Value&) { log += '2'; });
  });
  interpreter.run({1});
  EXPECT_EQ(log, "1222");
}

TEST(NodeHooks, a_handle_may_outlive_its_interpreter) {
  auto gm = affine_module();
  HookHandle handle;
  {
    Interpreter interpreter(*gm);
    handle = interpreter.register_node_post_hook([](Node&, const Value&) {});
  }
  handle.remove();
  EXPECT_FALSE(handle.active());
  EXPECT_FALSE(HookHandle().active());
}

TEST(NodeHooks, an_exception_from_a_hook_carries_the_node) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  HookHandle handle =
      interpreter.register_node_pre_hook([](Node& node, const Values&, const KwValues&) {
        if (node.name() == "mul") throw std::runtime_error("from the hook");
      });
  EXPECT_FX_ERROR(interpreter.run({1}), RunError, kNodeFailed,
                  "from the hook\n\nWhile executing %mul");
  handle.remove();
  EXPECT_EQ(interpreter.run({1}).toInt(), 4);
}

// --- ready-made helpers
// ----------------------------------------------------------------------------

TEST(NodeLog, S0_31_prints_each_node_with_arguments_and_result) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& sum = graph->call_function("torch.sum", {x, Argument::list({0})}, {{"keepdim", true}});
  graph->output(Argument::tuple({sum, x}));
  GraphModule gm(graph);
  Interpreter interpreter(gm);
  std::ostringstream out;
  {
    NodeLog log(interpreter, out);
    interpreter.run({torch::ones({2, 3})});
  }
  EXPECT_EQ(out.str(),
            "x: placeholder x\n"
            "  args: ()\n"
            "  -> Tensor f32[2, 3]\n"
            "sum_1: call_function torch.sum\n"
            "  args: (Tensor f32[2, 3], [0])\n"
            "  kwargs: {keepdim: True}\n"
            "  -> Tensor f32[1, 3]\n"
            "output: output output\n"
            "  args: ((Tensor f32[1, 3], Tensor f32[2, 3]),)\n"
            "  -> (Tensor f32[1, 3], Tensor f32[2, 3])\n");
  out.str("");
  interpreter.run({torch::ones({2, 3})});
  EXPECT_EQ(out.str(), "");  // switched off again
}

TEST(Debug, S4_44_breakpoints_on_chosen_nodes) {
  auto gm = affine_module();
  Interpreter interpreter(*gm);
  Log log;
  break_at(interpreter, {"output", "add"},
           [&](Interpreter& at, Node& node, const Values& args, const KwValues&) {
             log.push_back(std::string(node.name()) + " " + to_string(args[0]) + " env " +
                           std::to_string(at.env().size()));
           });
  interpreter.run({3});
  EXPECT_EQ(log, (Log{"add 3 env 1", "output 8 env 1"}));
}

TEST(Debug, S1_11_an_observer_at_a_spot_leaves_the_output_alone) {
  static Log* seen = nullptr;
  Log log;
  seen = &log;
  register_wrapped_function("hooks_test_observe", [](Values args, KwValues) -> Value {
    seen->push_back(to_string(args[0]));
    return {};
  });
  auto gm = affine_module();
  Node& observer = insert_observer(node_of(*gm, "add"), "hooks_test_observe");
  EXPECT_EQ(observer.prev()->name(), "add");
  insert_observer(node_of(*gm, "x"), "hooks_test_observe");
  insert_observer(node_of(*gm, "output"), "hooks_test_observe");
  gm->graph().lint({.strict = true});
  EXPECT_FALSE(gm->graph().eliminate_dead_code());
  gm->recompile();
  EXPECT_EQ(Interpreter(*gm).run({3}).toInt(), 8);
  EXPECT_EQ(log, (Log{"3", "4", "8"}));
  EXPECT_EQ((*gm)(3).toInt(), 8);
  EXPECT_EQ(log, (Log{"3", "4", "8", "3", "4", "8"}));
}

TEST(Debug, S1_11_a_print_node_prints) {
  auto gm = affine_module();
  insert_print(node_of(*gm, "add"));
  insert_print(node_of(*gm, "mul"), "after");
  gm->recompile();
  testing::internal::CaptureStdout();
  const std::int64_t result = (*gm)(3).toInt();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "add: 4\nafter: 8\n");
  EXPECT_EQ(result, 8);
}

TEST(Debug, S2_16_first_difference_between_two_interpreters) {
  struct OffByOne : Interpreter {
    using Interpreter::Interpreter;
    Value call_function(const Target& target, Values args, KwValues kwargs) override {
      Value value = Interpreter::call_function(target, std::move(args), std::move(kwargs));
      return target == "operator.mul" ? Value(value.toTensor() + 1) : value;
    }
  };
  auto gm = affine_module();
  Interpreter base(*gm), twin(*gm);
  OffByOne custom(*gm);
  EXPECT_FALSE(first_difference(base, twin, {row({1, 2})}));
  const auto difference = first_difference(base, custom, {row({1, 2})});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->node, "mul");
  EXPECT_TRUE(same(difference->expected, row({4, 6})));
  EXPECT_TRUE(same(difference->actual, row({5, 7})));
  EXPECT_THAT(difference->reason, HasSubstr("largest absolute difference is 1.0"));
}

TEST(Debug, S2_16_failures_and_foreign_nodes_are_differences) {
  struct Failing : Interpreter {
    using Interpreter::Interpreter;
    Value run_node(Node& node) override {
      if (node.name() == "mul") throw std::runtime_error("no mul today");
      return Interpreter::run_node(node);
    }
  };
  auto gm = affine_module();
  Interpreter base(*gm);
  Failing failing(*gm);
  auto difference = first_difference(base, failing, {1});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->node, "mul");
  EXPECT_THAT(difference->reason, HasSubstr("no mul today"));
  auto other = affine_module();
  node_of(*other, "mul").rename("times");
  Interpreter renamed(*other);
  difference = first_difference(base, renamed, {1});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->reason, "found node times instead");
}

TEST(Debug, compare_values_tells_kinds_dtypes_shapes_and_items) {
  EXPECT_EQ(compare_values(1, 1), "");
  EXPECT_EQ(compare_values(1, 1.0), "found float, wanted int");
  EXPECT_EQ(compare_values(1.0, 1.0 + 1e-9), "");
  EXPECT_NE(compare_values(1.0, 1.1), "");
  EXPECT_EQ(compare_values(NAN, NAN), "");
  EXPECT_EQ(compare_values(row({NAN, INFINITY}), row({NAN, INFINITY})), "");
  EXPECT_NE(compare_values(row({1}), row({NAN})), "");
  EXPECT_EQ(compare_values(row({1}), torch::ones({1, 1})),
            "found Tensor f32[1, 1], wanted Tensor f32[1]");
  EXPECT_EQ(compare_values(row({1}), torch::ones({1}, at::kDouble)),
            "found Tensor f64[1], wanted Tensor f32[1]");
  EXPECT_EQ(compare_values(torch::tensor({1, 2, 3}), torch::tensor({1, 0, 0})),
            "2 of 3 elements differ");
  const Value a = c10::ivalue::Tuple::create(Values{1, "a"});
  const Value b = c10::ivalue::Tuple::create(Values{1, "b"});
  EXPECT_EQ(compare_values(a, b), "item 1: found 'b', wanted 'a'");
  EXPECT_EQ(compare_values(a, a), "");
}

TEST(ProfilingInterpreter, S0_45_reports_time_shape_dtype_and_bytes) {
  ParamModel model;
  auto gm = param_module(model);
  const Values inputs{torch::randn({10, 20}), torch::randn({10, 1})};
  ProfilingInterpreter profiler(*gm);
  const at::Tensor plain = Interpreter(*gm).run(inputs).toTensor();
  EXPECT_TRUE(same(profiler.run(inputs), plain));
  profiler.run(inputs);
  ASSERT_EQ(profiler.profiles().size(), 7u);
  const NodeProfile* linear = profiler.find(node_of(*gm, "linear"));
  ASSERT_NE(linear, nullptr);
  EXPECT_EQ(linear->calls, 2u);
  EXPECT_GT(linear->total_us, 0);
  EXPECT_LE(linear->min_us, linear->total_us / 2);
  EXPECT_EQ(linear->shape, (std::vector<std::int64_t>{10, 5}));
  EXPECT_EQ(linear->dtype, at::kFloat);
  EXPECT_EQ(linear->bytes, 200);
  const std::string table = profiler.table();
  std::istringstream lines(table);
  Names names;
  for (std::string line; std::getline(lines, line);)
    names.push_back(line.substr(0, line.find(' ')));
  EXPECT_EQ(names, (Names{"name", "x", "y", "param", "add", "mul", "linear", "output"}));
  EXPECT_THAT(table, HasSubstr("call_module"));
  EXPECT_THAT(table, HasSubstr("f32"));
  EXPECT_THAT(table, HasSubstr("[10, 5]"));
  // Slowest first: times do not grow down the list.
  const std::string sorted = profiler.table(/*slowest_first=*/true);
  EXPECT_EQ(sorted.size(), table.size());
  profiler.reset();
  EXPECT_TRUE(profiler.profiles().empty());
}

TEST(ProfilingInterpreter, G_096_M_025_nodes_are_ranges_of_libtorchs_profiler) {
  static thread_local Names ranges;
  ranges.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& range) {
        const std::string name = range.name();
        if (range.scope() == at::RecordScope::USER_SCOPE)
          ranges.push_back("node " + name);
        else if (name == "aten::add" || name == "aten::mul")
          ranges.push_back(name);
        return std::unique_ptr<at::ObserverContext>();
      }).scopes({at::RecordScope::USER_SCOPE, at::RecordScope::FUNCTION}));
  auto gm = affine_module();
  ProfilingInterpreter(*gm).run({torch::ones({2})});
  const Names profiled = std::exchange(ranges, {});
  Interpreter(*gm).run({torch::ones({2})});
  at::removeCallback(handle);
  EXPECT_THAT(profiled, ::testing::ElementsAre("node x", "node add", "aten::add", "node mul",
                                               "aten::mul", "node output"))
      << "operators stand inside of their nodes";
  EXPECT_THAT(ranges, ::testing::ElementsAre("aten::add", "aten::mul"));
}

}  // namespace
}  // namespace fx
