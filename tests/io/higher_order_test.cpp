// Higher-order operators: cond, while_loop, scan, map, autocast, gradient mode. That programs of
// Python give Python's results is zoo_test.cpp's matter, that Python runs what was saved
// save_pt2_python_test.cpp's; this is about effects, errors, passes and what is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <stop_token>
#include <thread>

#include "fx/analysis/alias.h"
#include "fx/base/error.h"
#include "fx/capture/control_flow.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/tensor_meta.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "fx/io/import_export.h"
#include "fx/io/save_module.h"
#include "fx/io/save_pt2.h"
#include "fx/ops/stop.h"
#include "fx/passes/cse.h"
#include "fx/passes/dce.h"
#include "fx/passes/fake_tensor_prop.h"
#include "fx/passes/shape_prop.h"
#include "tests/io/archive_builder.h"
#include "tests/io/saved_again.h"
#include "tests/io/zoo.h"

namespace fx::io {
namespace {

using nlohmann::ordered_json;
using testing::expect_import_error;
using ::testing::HasSubstr;
using testing::ProgramFile;
using testing::source_path;
using testing::TempDir;

constexpr const char* kCond = "torch.ops.higher_order.cond";
constexpr const char* kWhile = "torch.ops.higher_order.while_loop";
constexpr const char* kAssociativeScan = "torch.ops.higher_order.associative_scan";
constexpr const char* kMap = "torch.ops.higher_order.map_impl";

at::Tensor vec(std::vector<float> values) { return torch::tensor(values); }

std::shared_ptr<GraphModule> zoo(const std::string& name) {
  return load(source_path("tests/io/zoo/" + name + ".pt2"));
}

/// A graph of operators with those inputs; `build` returns the result.
std::shared_ptr<GraphModule> body(const std::vector<std::string>& inputs,
                                  const std::function<Argument(Graph&, Args)>& build) {
  auto graph = std::make_shared<Graph>();
  Args args;
  for (const std::string& name : inputs) args.emplace_back(graph->placeholder(name));
  graph->output(build(*graph, args));
  return std::make_shared<GraphModule>(graph, "Body");
}

std::shared_ptr<GraphModule> calls(const std::string& op, const std::string& other = "") {
  return body({"x"}, [&](Graph& g, const Args& args) -> Argument {
    Node& value = g.call_function(op, args);
    return Argument::tuple({other.empty() ? value : g.call_function(other, {value})});
  });
}

/// cond(x.sum() > 0, on_true, on_false, (x,))[0]
std::shared_ptr<GraphModule> branch(std::shared_ptr<GraphModule> on_true,
                                    std::shared_ptr<GraphModule> on_false,
                                    bool returns_result = true) {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  module->set_submodule("on_true", std::move(on_true));
  module->set_submodule("on_false", std::move(on_false));
  Node& x = graph->placeholder("x");
  Node& sum = graph->call_function("aten::sum", {x});
  Node& positive = graph->call_function("aten::gt.Scalar", {sum, 0});
  Node& result = graph->call_function(kCond, {positive, graph->get_attr("on_true"),
                                              graph->get_attr("on_false"), Argument::tuple({x})});
  Node& item = graph->call_function("operator.getitem", {result, 0});
  graph->output(returns_result ? item : x);
  module->recompile();
  return module;
}

/// while_loop with one carried value, from `x`.
std::shared_ptr<GraphModule> loop(std::shared_ptr<GraphModule> condition,
                                  std::shared_ptr<GraphModule> step) {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  module->set_submodule("condition", std::move(condition));
  module->set_submodule("step", std::move(step));
  Node& x = graph->placeholder("x");
  Node& result =
      graph->call_function(kWhile, {graph->get_attr("condition"), graph->get_attr("step"),
                                    Argument::tuple({x}), Argument::tuple({})});
  graph->output(graph->call_function("operator.getitem", {result, 0}));
  module->recompile();
  return module;
}

std::shared_ptr<GraphModule> sum_below(double limit) {
  return body({"x"}, [&](Graph& g, const Args& args) -> Argument {
    return g.call_function("aten::lt.Scalar", {g.call_function("aten::sum", args), limit});
  });
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

at::Tensor run(GraphModule& module, const at::Tensor& x) {
  const at::Tensor result = module(x).toTensor();
  const at::Tensor interpreted = Interpreter(module).run({x}).toTensor();
  EXPECT_TRUE(at::equal(result, interpreted));
  return result;
}

TEST(HigherOrder, ABranchIsChosenByTheValue) {
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  module->graph().lint({.strict = true});
  EXPECT_TRUE(at::equal(run(*module, vec({1, 2})), vec({1, 2}).sin()));
  EXPECT_TRUE(at::equal(run(*module, vec({-1, -2})), vec({-1, -2}).cos()));
}

TEST(HigherOrder, PrintsAsTorchFxDoes) {
  const auto module = zoo("cond");
  EXPECT_THAT(module->graph().str(),
              HasSubstr("%true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]"));
  EXPECT_THAT(module->graph().str(),
              HasSubstr("call_function[target=torch.ops.higher_order.cond](args = (%gt, "
                        "%true_graph_0, %false_graph_0, [%x]), kwargs = {})"));
  EXPECT_THAT(module->python_code(), HasSubstr("torch.ops.higher_order.cond(gt, true_graph_0, "));
  EXPECT_THAT(error_of([&] { module->code(); }), HasSubstr("a module is no value in C++"));
}

TEST(HigherOrder, GradientsFlowThroughTheBranchThatRan) {
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  at::Tensor x = vec({1, 2}).set_requires_grad(true);
  (*module)(x).toTensor().sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), x.detach().cos()));
}

TEST(HigherOrder, GradientsFlowThroughEveryStep) {
  const auto loaded = zoo("scan");
  at::Tensor x = torch::randn({3, 2, 4}), h = torch::randn({2, 4}).set_requires_grad(true);
  const Value result = loaded->forward({x, h});
  elements(result)[0].toTensor().sum().backward();
  const at::Tensor weight = loaded->find_tensor("linear.weight");
  const at::Tensor bias = loaded->find_tensor("linear.bias");
  at::Tensor again = h.detach().clone().set_requires_grad(true), carry = again;
  for (int i = 0; i < 3; ++i) carry = torch::tanh(torch::linear(carry, weight, bias) + x[i]);
  const at::Tensor wanted = torch::autograd::grad({carry.sum()}, {again})[0];
  EXPECT_TRUE(at::allclose(h.grad(), wanted));
}

TEST(HigherOrder, ALoopThatNeverRunsGivesCopies) {
  auto module = loop(sum_below(-1000), calls("aten::sin"));
  const at::Tensor x = vec({1, 2});
  const at::Tensor result = run(*module, x);
  EXPECT_TRUE(at::equal(result, x));
  EXPECT_NE(result.data_ptr(), x.data_ptr());
}

TEST(HigherOrder, ALoopWithoutEndCanBeStopped) {
  auto step = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    return Argument::tuple({g.call_function("aten::neg", args)});
  });
  auto module = loop(sum_below(1e9), step);
  std::stop_source stop;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop.request_stop();
  });
  const StopScope scope(stop.get_token());
  EXPECT_THAT(error_of([&] { (*module)(vec({1, 2})); }), HasSubstr("stop"));
  other.join();
}

// --- what a run refuses

TEST(HigherOrder, ResultsThatShareMemoryAreRefused) {
  auto view = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    return Argument::tuple({g.call_function("aten::view", {args[0], Argument::list({2})})});
  });
  auto module = branch(view, calls("aten::cos"));
  EXPECT_THAT(error_of([&] { (*module)(vec({1, 2})); }),
              HasSubstr("cond: result 1 of its graph shares memory with an operand"));
  EXPECT_TRUE(at::equal(run(*module, vec({-1, -2})), vec({-1, -2}).cos()));
}

TEST(HigherOrder, CarriedValuesKeepDtypeAndRank) {
  auto module = loop(sum_below(100), calls("aten::sum"));
  EXPECT_THAT(
      error_of([&] { (*module)(vec({1, 2})); }),
      HasSubstr("while_loop: carried value 1 is a Tensor f32 of rank 1 on cpu, after a step "
                "it a Tensor f32 of rank 0 on cpu; they have to agree"));
  auto grows = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    return Argument::tuple({g.call_function("aten::to.dtype", {args[0], at::kDouble})});
  });
  EXPECT_THAT(error_of([&] { (*loop(sum_below(100), grows))(vec({1, 2})); }), HasSubstr("f64"));
}

TEST(HigherOrder, PredicatesThatAreNone) {
  auto rows = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    return g.call_function("aten::gt.Scalar", {args[0], 0});
  });
  EXPECT_THAT(error_of([&] { (*loop(rows, calls("aten::sin")))(vec({1, 2})); }),
              HasSubstr("while_loop: the predicate is a Tensor bool[2], wanted a bool or a bool "
                        "tensor of rank 0"));
}

TEST(HigherOrder, MapAndScanOverNothing) {
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_submodule("f", calls("aten::sin"));
  Node& x = graph->placeholder("x");
  graph->output(
      graph->call_function(kMap, {graph->get_attr("f"), Argument::list({x}), Argument::list({})}));
  module.recompile();
  const Value rows = module(torch::ones({3, 2}));
  EXPECT_TRUE(at::equal(elements(rows)[0].toTensor(), torch::ones({3, 2}).sin()));
  EXPECT_THAT(error_of([&] { module(torch::ones({0, 2})); }),
              HasSubstr("map_impl: runs over tensors without elements"));
  EXPECT_THAT(error_of([&] { module(torch::ones({})); }), HasSubstr("with a first dimension"));
  EXPECT_THAT(error_of([&] { module(3); }), HasSubstr("runs over a int"));
}

/// associative_scan(f, (x,), (y,))[0]
std::shared_ptr<GraphModule> scanned(std::shared_ptr<GraphModule> f) {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  module->set_submodule("f", std::move(f));
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& result = graph->call_function(
      kAssociativeScan, {graph->get_attr("f"), Argument::list({x}), Argument::tuple({y})});
  graph->output(graph->call_function("operator.getitem", {result, 0}));
  module->recompile();
  return module;
}

std::shared_ptr<GraphModule> combine(const std::string& op, const std::string& other = "") {
  return body({"a", "b", "y"}, [&](Graph& g, const Args& args) -> Argument {
    Node& value = g.call_function(op, {args[0], args[1]});
    return Argument::tuple({other.empty() ? value : g.call_function(other, {value, args[2]})});
  });
}

TEST(HigherOrder, AssociativeScansCombineEachRowWithThoseBefore) {
  const auto sums = scanned(combine("aten::add.Tensor"));
  const auto products = scanned(combine("aten::mul.Tensor", "aten::mul.Tensor"));
  for (std::int64_t n = 0; n < 20; ++n) {
    const at::Tensor x = torch::randint(-9, 9, {n, 3}, torch::kLong), one = torch::tensor(1);
    EXPECT_TRUE(at::equal((*sums)(x, one).toTensor(), x.cumsum(0))) << n;
    EXPECT_TRUE(at::equal(Interpreter(*sums).run({x, one}).toTensor(), x.cumsum(0))) << n;
    EXPECT_TRUE(at::equal((*products)(x, one).toTensor(), x.cumprod(0))) << n;
    EXPECT_FALSE((*sums)(x, one).toTensor().is_alias_of(x)) << n;
  }
  // An operand of every combination: a step of y for each row but the first.
  const at::Tensor ones = torch::ones({5, 2}, torch::kLong);
  const auto with_steps = scanned(combine("aten::add.Tensor", "aten::add.Tensor"));
  EXPECT_TRUE(at::equal((*with_steps)(ones, torch::tensor(10)).toTensor().select(1, 1),
                        torch::tensor({1, 12, 23, 34, 45})));
}

TEST(HigherOrder, GradientsFlowThroughAnAssociativeScan) {
  const at::Tensor x = torch::rand({6, 2}).add_(0.5).requires_grad_();
  const at::Tensor y = x.detach().clone().requires_grad_();
  (*scanned(combine("aten::mul.Tensor")))(x, torch::tensor(1)).toTensor().sum().backward();
  y.cumprod(0).sum().backward();
  EXPECT_TRUE(at::allclose(x.grad(), y.grad()));
}

TEST(HigherOrder, AssociativeScansThatDoNotFit) {
  const at::Tensor x = torch::ones({4, 2}), one = torch::tensor(1);
  const auto reduced = body({"a", "b", "y"}, [](Graph& g, const Args& args) -> Argument {
    Node& sum = g.call_function("aten::add.Tensor", {args[0], args[1]});
    return Argument::tuple(
        {g.call_function("aten::sum.dim_IntList", {sum, Argument::list({0}), true})});
  });
  EXPECT_THAT(error_of([&] { (*scanned(reduced))(x, one); }),
              HasSubstr("other sizes than it is given; it has to combine element by element"));
  EXPECT_THAT(error_of([&] { (*scanned(combine("aten::lt.Tensor")))(x, one); }),
              HasSubstr("they have to agree"));
  EXPECT_THAT(error_of([&] { (*scanned(combine("aten::add.Tensor")))(one, one); }),
              HasSubstr("with a first dimension"));
  EXPECT_THAT(error_of([&] { (*scanned(combine("aten::add_.Tensor")))(x.clone(), one); }),
              HasSubstr("shares memory with an operand"));
}

// --- lint

std::string lint_error(const GraphModule& module) {
  return error_of([&] { module.graph().lint({.strict = true}); });
}

TEST(HigherOrder, LintChecksWhatGraphsTakeAndGive) {
  auto two = body({"x", "y"},
                  [](Graph&, const Args& args) -> Argument { return Argument::tuple({args[0]}); });
  EXPECT_THAT(lint_error(*branch(two, calls("aten::sin"))),
              HasSubstr("cond: its graph 'on_true' takes 2 operands, found 1"));
  auto pair = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    return Argument::tuple(
        {g.call_function("aten::sin", args), g.call_function("aten::cos", args)});
  });
  EXPECT_THAT(lint_error(*branch(pair, calls("aten::sin"))),
              HasSubstr("its branches return 2 values and 1 value; they have to agree"));
  auto same =
      body({"x"}, [](Graph&, const Args& args) -> Argument { return Argument::tuple({args[0]}); });
  EXPECT_THAT(lint_error(*branch(same, calls("aten::sin"))),
              HasSubstr("returns x, which it was given; results have to be new values"));
  auto twice = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    Node& sin = g.call_function("aten::sin", args);
    return Argument::tuple({sin, sin});
  });
  EXPECT_THAT(lint_error(*branch(twice, twice)), HasSubstr("returns sin twice"));
  EXPECT_THAT(lint_error(*loop(sum_below(1), pair)),
              HasSubstr("its body returns 2 values, carried are 1"));
  EXPECT_THAT(lint_error(*loop(calls("aten::sum"), calls("aten::sin"))),
              HasSubstr("its condition returns a tuple"));
  EXPECT_THAT(lint_error(*scanned(calls("aten::sin"))), HasSubstr("takes 1 operand, found 3"));
  auto three = body({"a", "b", "y"}, [](Graph& g, const Args& args) -> Argument {
    return Argument::tuple({g.call_function("aten::add.Tensor", {args[0], args[1]}),
                            g.call_function("aten::mul.Tensor", {args[0], args[1]})});
  });
  EXPECT_THAT(lint_error(*scanned(three)), HasSubstr("its graph returns 2 values, it runs over 1"));
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  module->graph().find_node("cond")->update_arg(1, *module->graph().find_node("x"));
  EXPECT_THAT(lint_error(*module), HasSubstr("argument 2 is no graph"));
}

// --- effects

TEST(HigherOrder, EffectsOfTheGraphsAreThoseOfTheCall) {
  auto pure = branch(calls("aten::sin"), calls("aten::cos"), /*returns_result=*/false);
  EXPECT_FALSE(pure->graph().find_node("cond")->is_impure());
  EXPECT_TRUE(pure->graph().eliminate_dead_code());
  EXPECT_EQ(pure->graph().find_node("cond"), nullptr);

  auto random = branch(calls("aten::rand_like"), calls("aten::cos"), false);
  EXPECT_TRUE(random->graph().find_node("cond")->is_impure());
  EXPECT_FALSE(random->graph().find_node("cond")->is_impure(/*impure_random=*/false));

  // Writes to its operand: nothing may move across it, and it stays.
  auto write = body({"x"}, [](Graph& g, const Args& args) -> Argument {
    g.call_function("aten::mul_.Scalar", {args[0], 3});
    return Argument::tuple({g.call_function("aten::sin", args)});
  });
  auto writer = branch(write, calls("aten::cos"), false);
  Node& call = *writer->graph().find_node("cond");
  EXPECT_TRUE(call.is_impure());
  const AliasAnalysis aliases(writer->graph());
  EXPECT_TRUE(aliases.writes_inputs());
  EXPECT_TRUE(aliases.conflict(call, *writer->graph().find_node("sum_1")));
  writer->graph().eliminate_dead_code();
  EXPECT_EQ(writer->graph().find_node("cond"), &call);
  writer->recompile();
  at::Tensor x = vec({1, 2});
  (*writer)(x);
  EXPECT_TRUE(at::equal(x, vec({3, 6})));
}

TEST(HigherOrder, EqualCallsAreMergedUnlessTheyHaveEffects) {
  for (const bool is_random : {false, true}) {
    auto module = branch(calls(is_random ? "aten::rand_like" : "aten::sin"), calls("aten::cos"));
    Graph& graph = module->graph();
    Node& first = *graph.find_node("cond");
    {
      const auto at = graph.inserting_before(graph.output_node());
      Node& second = graph.call_function(kCond, {first.args().begin(), first.args().end()});
      Node& item = graph.call_function("operator.getitem", {second, 0});
      graph.output_node().set_args(
          {graph.call_function("aten::add.Tensor", {*graph.find_node("getitem"), item})});
    }
    cse(*module);
    EXPECT_EQ(graph.find_nodes(Opcode::kCallFunction, Target::function(kCond)).size(),
              is_random ? 2U : 1U);
  }
}

TEST(HigherOrder, DeadCodeInsideGraphsGoes) {
  const auto module = zoo("while_loop");
  Graph& inner = *module->nested_graph("while_loop_body_graph_0");
  const std::size_t before = inner.size();
  {
    const auto at = inner.inserting_before(inner.output_node());
    inner.call_function("aten::relu", {*inner.placeholders()[1]});
  }
  dce(*module);
  EXPECT_EQ(inner.size(), before);
}

// --- analyses and copies

TEST(HigherOrder, ShapesWithoutValues) {
  for (const char* name : {"cond", "while_loop", "scan", "map_rows", "autocast"}) {
    SCOPED_TRACE(name);
    for (const testing::ZooEntry& entry : testing::read_manifests()) {
      if (entry.name() != name || entry.version != "2_15") continue;
      at::NoGradGuard no_grad;
      Values inputs;
      for (const auto& input : entry.data["calls"][0]["inputs"])
        inputs.push_back(testing::read_value(entry, input));
      auto module = load(entry.path());
      Values real, fake;
      testing::flatten_value(ShapeProp(*module).propagate(inputs), real);
      testing::flatten_value(FakeTensorProp(*module).propagate(inputs), fake);
      ASSERT_EQ(real.size(), fake.size());
      for (std::size_t i = 0; i < real.size(); ++i) {
        EXPECT_EQ(real[i].toTensor().sizes(), fake[i].toTensor().sizes());
        EXPECT_EQ(real[i].toTensor().scalar_type(), fake[i].toTensor().scalar_type());
      }
    }
  }
}

TEST(HigherOrder, ShapePropAnnotatesTheGraphsThatRan) {
  const at::NoGradGuard no_grad;
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  const auto annotated = [&](const char* graph) {
    const auto nested = std::dynamic_pointer_cast<GraphModule>(module->find_submodule(graph));
    for (const Node& node : nested->graph().nodes())
      if (node.op() == Opcode::kCallFunction) return tensor_meta(node);
    return static_cast<const TensorMeta*>(nullptr);
  };
  ShapeProp(*module).propagate({vec({1, 2, 3})});
  ASSERT_NE(annotated("on_true"), nullptr);
  EXPECT_EQ(annotated("on_true")->shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(annotated("on_false"), nullptr);
  ShapeProp(*module).propagate({vec({-1, -2})});
  ASSERT_NE(annotated("on_false"), nullptr);
  EXPECT_EQ(annotated("on_false")->shape, (std::vector<std::int64_t>{2}));
}

TEST(HigherOrder, BranchesThatDifferAreNoticedWithoutValues) {
  auto module = branch(calls("aten::sin"), calls("aten::sum"));
  EXPECT_THAT(error_of([&] { FakeTensorProp(*module).propagate({vec({1, 2})}); }),
              HasSubstr("they have to agree"));
}

TEST(HigherOrder, CopiesAreDeep) {
  const auto module = zoo("while_loop");
  const auto copy = module->deep_copy();
  Graph& inner = *copy->nested_graph("while_loop_body_graph_0");
  EXPECT_NE(&inner, module->nested_graph("while_loop_body_graph_0"));
  const at::Tensor x = torch::randn({3, 4});
  const Values a = elements(module->forward({x})), b = elements(copy->forward({x}));
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(at::equal(a[i].toTensor(), b[i].toTensor()));
}

TEST(HigherOrder, CapturesKeepTheCallOrSayWhatTheyAssume) {
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  const auto traced = symbolic_trace(*module);
  EXPECT_NE(traced->graph().find_node("cond"), nullptr);
  for (const at::Tensor& x : {vec({1, 2}), vec({-1, -2})})
    EXPECT_TRUE(at::equal(run(*traced, x), run(*module, x)));

  const auto recorded =
      make_fx([&](at::Tensor x) { return (*module)(x).toTensor(); }, {vec({1, 2})});
  const auto* assumptions = recorded->meta().get<Assumptions>("assumptions");
  ASSERT_NE(assumptions, nullptr);
  EXPECT_TRUE(std::ranges::any_of(*assumptions, [](const Assumption& assumption) {
    return assumption.kind == Assumption::Kind::kValue;
  }));
}

// What torch.cond and torch.while_loop are for C++ programs.
struct BranchesImpl : torch::nn::Module {
  BranchesImpl() {
    const auto register_graph = [this](const char* name, std::shared_ptr<GraphModule> graph) {
      register_module(name, std::shared_ptr<torch::nn::Module>(graph));
      return graph;
    };
    large = register_graph("large", symbolic_trace([](auto x) { return x.cos(); }));
    small = register_graph("small", symbolic_trace([](auto x) { return x.sin(); }));
    step = register_graph("step", body({"x", "y"}, [](Graph& g, const Args& args) -> Argument {
                            return Argument::tuple({g.call_function("aten::add.Tensor", args)});
                          }));
    condition =
        register_graph("condition", body({"x", "y"}, [](Graph& g, const Args& args) {
                         return Argument(g.call_function(
                             "aten::lt.Scalar", {g.call_function("aten::sum", {args[0]}), 10}));
                       }));
  }
  at::Tensor forward(at::Tensor x) {
    const at::Tensor chosen = cond(x.sum() > 0, large, small, {x})[0];
    return while_loop(condition, step, {chosen}, {x * x + 1})[0] * 2;
  }
  std::shared_ptr<GraphModule> large, small, step, condition;
};
TORCH_MODULE(Branches);

TEST(HigherOrder, ProgramsCallBranchesAndLoops) {
  Branches net;
  auto reference = [](at::Tensor x) {
    at::Tensor y = x.sum().item<float>() > 0 ? x.cos() : x.sin();
    while (y.sum().item<float>() < 10) y = y + (x * x + 1);
    return y * 2;
  };
  const auto traced = symbolic_trace(net);
  EXPECT_NE(traced->graph().find_node("cond"), nullptr);
  EXPECT_NE(traced->graph().find_node("while_loop"), nullptr);
  traced->graph().lint({.strict = true});
  for (const at::Tensor& x : {vec({1, 2}), vec({-1, -2}), vec({0.5, -0.25})}) {
    EXPECT_TRUE(at::equal(net->forward(x), reference(x)));
    EXPECT_TRUE(at::equal(run(*traced, x), reference(x)));
  }
  EXPECT_THAT(error_of([&] { cond(vec({1}), nullptr, nullptr, {}); }), HasSubstr("null"));
  EXPECT_THAT(error_of([&] {
                symbolic_trace([&](at::Tensor x) {
                  return cond(x.sum() > 0, net->large, net->small, {x})[0];
                });
              }),
              HasSubstr("register the module as a submodule of the traced root"));
}

TEST(HigherOrder, TransformersCopyTheCall) {
  const auto module = zoo("while_loop");
  const auto copy = Transformer(*module).transform();
  const at::Tensor x = torch::randn({3, 4});
  const Values a = elements(module->forward({x})), b = elements(copy->forward({x}));
  EXPECT_TRUE(at::equal(a[1].toTensor(), b[1].toTensor()));
}

// --- files

TEST(HigherOrder, SavedModulesKeepTheirGraphs) {
  for (const char* name : {"cond", "while_loop", "scan", "map_rows", "autocast", "cond_on_size"}) {
    SCOPED_TRACE(name);
    const auto module = zoo(name);
    testing::expect_equal(*module, *testing::saved_and_loaded(*module));
  }
}

TEST(HigherOrder, MadeByHandAndWrittenAsAnExportedProgram) {
  const TempDir folder;
  auto module = branch(calls("aten::sin", "aten::relu"), calls("aten::cos"));
  save_pt2(*module, folder.path("m.pt2"), {.example_inputs = {vec({1, 2})}});
  const auto loaded = load(folder.path("m.pt2"));
  for (const at::Tensor& x : {vec({1, 2}), vec({-1, -2})})
    EXPECT_TRUE(at::equal(run(*loaded, x), run(*module, x)));
}

TEST(HigherOrder, AnExportNeverRecordsOneBranch) {
  const TempDir folder;
  auto module = branch(calls("aten::sin"), calls("aten::cos"));
  Graph& graph = module->graph();
  {
    const auto at = graph.inserting_before(graph.output_node());
    Node& more = graph.call_method("relu", {*graph.find_node("getitem")});
    graph.output_node().set_args({more});
  }
  expect_import_error(ErrorCode::kNotExportable, {"method 'relu' is no operator overload"}, [&] {
    save_pt2(*module, folder.path("m.pt2"), {.example_inputs = {vec({1, 2})}});
  });
  // A tensor of its own would be lost.
  auto own = std::make_shared<GraphModule>(std::make_shared<Graph>());
  own->set_buffer("w", vec({1, 1}));
  Node& x = own->graph().placeholder("x");
  own->graph().output(Argument::tuple(
      {own->graph().call_function("aten::add.Tensor", {x, own->graph().get_attr("w")})}));
  expect_import_error(ErrorCode::kNotExportable, {"pass it on as an operand"}, [&] {
    save_pt2(*branch(own, calls("aten::cos")), folder.path("m.pt2"),
             {.example_inputs = {vec({1, 2})}});
  });
}

TEST(HigherOrder, TextsAndGuardsOfAnExportedProgramSurviveFxa) {
  const TempDir folder;
  for (const char* name : {"namedtuple_io", "symbolic_sizes", "dict_io"}) {
    SCOPED_TRACE(name);
    const auto module = zoo(name);
    save(*module, folder.path("m.fxa"));
    const SavePt2Options options{.node_meta = false};
    save_pt2(*load(folder.path("m.fxa")), folder.path("a.pt2"), options);
    save_pt2(*module, folder.path("b.pt2"), options);
    EXPECT_TRUE(testing::read_file(folder.path("a.pt2")) ==
                testing::read_file(folder.path("b.pt2")));
  }
}

// --- files that are wrong

ordered_json& call_of(ordered_json& model, const std::string& op) {
  for (ordered_json& node : model["graph_module"]["graph"]["nodes"])
    if (node["target"] == "torch.ops.higher_order." + op) return node;
  throw std::out_of_range(op);
}

void expect_refused(const std::string& zoo_name, const std::string& op,
                    const std::vector<std::string>& parts,
                    const std::function<void(ordered_json&)>& edit,
                    ErrorCode code = ErrorCode::kBadProgram) {
  const TempDir folder;
  ProgramFile file(zoo_name);
  file.edit_model([&](ordered_json& model) { edit(call_of(model, op)); });
  expect_import_error(code, parts, [&] { load(file.write(folder)); });
}

ordered_json& graph_of(ordered_json& call, std::size_t input) {
  return call["inputs"][input]["arg"]["as_graph"]["graph"];
}

TEST(HigherOrder, FilesWhoseGraphsDoNotFit) {
  expect_refused("cond", "cond", {"its branches do not agree in value 1: f32[3] on cpu and f64[3]"},
                 [](ordered_json& call) {
                   for (auto& [name, meta] : graph_of(call, 2)["tensor_values"].items())
                     meta["dtype"] = 8;
                 });
  expect_refused("cond", "cond", {"f32[3] on cpu and f32[3] on meta"}, [](ordered_json& call) {
    for (auto& [name, meta] : graph_of(call, 2)["tensor_values"].items())
      meta["device"]["type"] = "meta";
  });
  expect_refused("cond", "cond", {"argument 2 of cond is no graph"},
                 [](ordered_json& call) { call["inputs"][1]["arg"] = {{"as_int", 3}}; });
  expect_refused("cond", "cond", {"argument 4 of cond is as_graph"},
                 [](ordered_json& call) { call["inputs"][3]["arg"] = call["inputs"][2]["arg"]; });
  expect_refused("cond", "cond", {"unusable name of a graph, 'a.b/../c'"}, [](ordered_json& call) {
    call["inputs"][1]["arg"]["as_graph"]["name"] = "a.b/../c";
  });
  expect_refused(
      "cond", "cond", {"its graph gives 1 values, the node has 2"},
      [](ordered_json& call) { call["outputs"].push_back({{"as_tensor", {{"name", "more"}}}}); });
  expect_refused("cond", "cond", {"differ in whether the result is one tensor or a tuple"},
                 [](ordered_json& call) { call["is_hop_single_tensor_return"] = true; });
  expect_refused(
      "cond", "cond", {"graph 'true_graph_0'", "uses the unknown value 'ghost'"},
      [](ordered_json& call) { graph_of(call, 1)["outputs"][0]["as_tensor"]["name"] = "ghost"; });
}

TEST(HigherOrder, OperatorsInsideGraphsAreCheckedToo) {
  const TempDir folder;
  ProgramFile file("while_loop");
  file.edit_model([](ordered_json& model) {
    graph_of(call_of(model, "while_loop"), 1)["nodes"][0]["target"] =
        "torch.ops.aten.from_file.default";
  });
  expect_import_error(ErrorCode::kForbiddenOperator, {"aten::from_file", "while_loop_body_graph_0"},
                      [&] { load(file.write(folder)); });
}

TEST(HigherOrder, FilesWithTheWrongNumberOfOperands) {
  const TempDir folder;
  ProgramFile file("cond");
  file.edit_model([](ordered_json& model) {
    call_of(model, "cond")["inputs"][3]["arg"]["as_tensors"] = ordered_json::array();
  });
  expect_import_error(ErrorCode::kBadProgram, {"takes 1 operand, found 0"},
                      [&] { load(file.write(folder)); });
}

}  // namespace
}  // namespace fx::io
