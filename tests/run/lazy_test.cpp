// torch.fx's TestLazyGraphModule (test_lazy_graph_module.py), as far as it needs no capture; the
// rest is in tests/compile/lazy_test.cpp. A lazy module builds its program at its next call.
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "fx/graph/graph_module.h"
#include "fx/graph/lazy_recompile.h"
#include "fx/graph/module_snapshot.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// f(x) = op(x), and the node of op.
struct Unary {
  explicit Unary(const std::string& op = "torch.sin") {
    Node& x = graph->placeholder("x");
    call = &graph->call_function(op, {x});
    graph->output(*call);
    module = std::make_shared<GraphModule>(graph);
  }

  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  Node* call = nullptr;
  std::shared_ptr<GraphModule> module;
};

const at::Tensor kX = torch::linspace(-2, 2, 7);

TEST(LazyModule, R_079_M_027_replace_sin_with_cos) {
  Unary f;
  f.module->set_lazy_recompile(true);
  EXPECT_TRUE(f.module->lazy_recompile());
  f.call->set_target("torch.cos");
  f.module->recompile();
  EXPECT_TRUE(f.module->needs_recompile());
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.cos()));
  EXPECT_FALSE(f.module->needs_recompile());
}

TEST(LazyModule, R_079_call_forward_directly) {
  Unary f;
  f.module->set_lazy_recompile(true);
  f.call->set_target("torch.cos");
  f.module->recompile();
  EXPECT_TRUE(torch::equal(f.module->forward({kX}).toTensor(), kX.cos()));
  EXPECT_FALSE(f.module->needs_recompile());
}

TEST(LazyModule, R_079_needs_recompile) {
  Unary f;
  EXPECT_FALSE(f.module->needs_recompile());
  f.module->set_lazy_recompile(true);
  EXPECT_FALSE(f.module->needs_recompile()) << "the program that is there is that of the graph";
  f.module->recompile();
  EXPECT_TRUE(f.module->needs_recompile());
  f.module->force_recompile();
  EXPECT_FALSE(f.module->needs_recompile());
  f.module->recompile();
  f.module->set_lazy_recompile(false);
  EXPECT_FALSE(f.module->needs_recompile()) << "switching it off builds what waits";
}

// torch.fx counts builds. Here: of many recompile() only the next call builds, the graph as it
// stands then, and later calls use that program.
TEST(LazyModule, R_079_multi_recompile) {
  Unary f;
  f.module->set_lazy_recompile(true);
  for (const char* op : {"torch.cos", "torch.neg", "torch.exp", "torch.abs"}) {
    f.call->set_target(op);
    f.module->recompile();
    EXPECT_TRUE(f.module->needs_recompile());
  }
  f.call->set_target("torch.tanh");  // after the last recompile(), before the call
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.tanh()));
  EXPECT_FALSE(f.module->needs_recompile());
  f.call->set_target("torch.sin");  // nothing waits: the program stays
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.tanh()));
  f.module->recompile();
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.sin()));
}

// In torch.fx the code is a part of what recompile() makes. Here it is written from the graph, so
// that it is never old and reading it builds nothing.
TEST(LazyModule, R_079_accessing_code_is_up_to_date) {
  Unary f;
  f.module->set_lazy_recompile(true);
  f.call->set_target("torch.cos");
  f.module->recompile();
  EXPECT_THAT(f.module->code(), ::testing::HasSubstr("cos("));
  EXPECT_THAT(f.module->python_code(), ::testing::HasSubstr("torch.cos(x)"));
  EXPECT_TRUE(f.module->needs_recompile());
}

TEST(LazyModule, R_079_graph_module_str) {
  Unary f;
  f.module->set_lazy_recompile(true);
  f.call->set_target("torch.cos");
  f.module->recompile();
  std::ostringstream out;
  f.module->pretty_print(out);
  EXPECT_EQ(out.str(), [] {
    Unary g("torch.cos");
    std::ostringstream wanted;
    g.module->pretty_print(wanted);
    return wanted.str();
  }());
  EXPECT_THAT(f.graph->str(), ::testing::HasSubstr("torch.cos"));
}

// A bound forward that was taken before the edit runs the new program.
TEST(LazyModule, R_079_save_lazy_forward) {
  Unary f;
  f.module->set_lazy_recompile(true);
  f.module->recompile();
  const std::function<Value(at::Tensor)> forward = [module = f.module](at::Tensor x) {
    return module->forward({x});
  };
  f.call->set_target("torch.cos");
  f.module->recompile();
  EXPECT_TRUE(torch::equal(forward(kX).toTensor(), kX.cos()));
  EXPECT_FALSE(f.module->needs_recompile());
}

TEST(LazyModule, R_079_make_graph_module) {
  EXPECT_FALSE(Unary().module->lazy_recompile());
  {
    const UseLazyRecompile lazy;
    Unary f;
    EXPECT_TRUE(f.module->lazy_recompile());
    EXPECT_TRUE(f.module->needs_recompile()) << "nothing is built before the first call";
    {
      const UseLazyRecompile eager(false);
      EXPECT_FALSE(Unary().module->needs_recompile());
    }
    std::thread([] { EXPECT_FALSE(Unary().module->lazy_recompile()); }).join();
    EXPECT_TRUE(UseLazyRecompile::active());
    EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.sin()));
    // The other constructor, which takes attributes of a root.
    const GraphModule taken(*f.module, f.graph->clone());
    EXPECT_TRUE(taken.needs_recompile());
  }
  EXPECT_FALSE(UseLazyRecompile::active());
}

TEST(LazyModule, M_027_copies_stay_lazy) {
  Unary f;
  f.module->set_lazy_recompile(true);
  const std::shared_ptr<GraphModule> copy = f.module->deep_copy();
  EXPECT_TRUE(copy->lazy_recompile());
  EXPECT_TRUE(copy->needs_recompile());
  EXPECT_FALSE(f.module->needs_recompile());
  EXPECT_TRUE(torch::equal((*copy)(kX).toTensor(), kX.sin()));
  EXPECT_FALSE(copy->needs_recompile());
}

TEST(LazyModule, M_027_nested_modules_are_built_with_the_one_around_them) {
  Unary inner;
  inner.module->set_lazy_recompile(true);
  auto graph = std::make_shared<Graph>();
  GraphModule outer(graph);
  outer.set_submodule("inner", inner.module);
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module("inner", {x}));
  outer.set_lazy_recompile(true);
  outer.recompile();
  inner.call->set_target("torch.cos");
  EXPECT_TRUE(torch::equal(outer(kX).toTensor(), kX.cos()));
  EXPECT_FALSE(outer.needs_recompile());
  EXPECT_FALSE(inner.module->needs_recompile());
  // A program that is there calls a nested module that waits.
  inner.call->set_target("torch.neg");
  inner.module->recompile();
  EXPECT_TRUE(torch::equal(outer(kX).toTensor(), kX.neg()));
}

TEST(LazyModule, M_027_a_new_graph_waits_too) {
  Unary f, g("torch.cos");
  f.module->set_lazy_recompile(true);
  f.module->set_graph(g.graph->clone());
  EXPECT_TRUE(f.module->needs_recompile());
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.cos()));
}

// What a snapshot restores: the program, and whether one waits.
TEST(LazyModule, M_027_snapshots_restore_what_waits) {
  Unary f;
  f.module->set_lazy_recompile(true);
  ModuleSnapshot built(*f.module, ModuleSnapshot::Keep::kForRestore);
  f.call->set_target("torch.cos");
  f.module->recompile();
  built.restore();
  EXPECT_FALSE(f.module->needs_recompile());
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.sin()));

  f.call->set_target("torch.cos");
  f.module->recompile();
  ModuleSnapshot waiting(*f.module, ModuleSnapshot::Keep::kForRestore);
  f.call->set_target("torch.neg");
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.neg()));
  EXPECT_FALSE(f.module->needs_recompile());
  waiting.restore();
  EXPECT_TRUE(f.module->needs_recompile());
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.cos()));
}

// A failing build leaves the module waiting; each call says why.
TEST(LazyModule, M_027_interpreter_and_broken_graphs) {
  Unary f("torch.no_such_function");
  f.module->set_lazy_recompile(true);
  f.module->recompile();
  for (int i = 0; i < 2; ++i)
    EXPECT_FX_ERROR((*f.module)(kX), RunError, kNodeFailed, "no_such_function");
  f.call->set_target("torch.cos");
  EXPECT_TRUE(torch::equal(Interpreter(*f.module).run({kX}).toTensor(), kX.cos()));
  f.module->recompile();
  EXPECT_TRUE(torch::equal((*f.module)(kX).toTensor(), kX.cos()));
}

// Many threads call a module first while its program waits: all get the new program's result.
TEST(LazyModule, M_027_many_threads_call_a_waiting_module) {
  constexpr int kThreads = 8;
  Unary f;
  f.module->set_lazy_recompile(true);
  for (int round = 0; round < 50; ++round) {
    f.call->set_target(round % 2 ? "torch.sin" : "torch.cos");
    f.module->recompile();
    const at::Tensor wanted = round % 2 ? kX.sin() : kX.cos();
    std::atomic<int> ready{0}, right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        right += torch::equal((*f.module)(kX).toTensor(), wanted);
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(right, kThreads) << "round " << round;
    EXPECT_FALSE(f.module->needs_recompile());
  }
}

}  // namespace
}  // namespace fx
