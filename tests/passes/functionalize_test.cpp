#include "fx/passes/functionalize.h"

#include <torch/torch.h>

#include "fx/analysis/alias.h"
#include "fx/capture/make_fx.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/pass_manager.h"
#include "tests/graph/graphs.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

using at::Tensor;
using Program = std::function<Tensor(Tensor)>;

std::vector<std::string> targets(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node& node : graph.nodes())
    if (node.op() == Opcode::kCallFunction) out.push_back(node.target().str());
  return out;
}

// A functional graph gives eager's result, leaves the input as eager does, and writes by copies
// alone.
std::shared_ptr<GraphModule> expect_as_eager(const Program& program, const Tensor& example) {
  auto gm = make_fx(program, {example.clone()});
  functionalize(*gm, {example.clone()});
  gm->graph().lint({.strict = true});
  const AliasAnalysis aliases(gm->graph());
  for (const Node& node : gm->graph().nodes())
    if (!aliases.writes(node).empty() && !node.is_output())
      EXPECT_TRUE(node.calls("aten::copy_")) << gm->graph();
  for (int call = 0; call < 2; ++call) {
    const Tensor x = torch::randn_like(example);
    Tensor a = x.clone(), b = x.clone(), c = x.clone();
    torch::manual_seed(call);
    const Tensor expected = program(a);
    torch::manual_seed(call);
    EXPECT_TRUE(torch::equal((*gm)(b).toTensor(), expected)) << gm->graph();
    torch::manual_seed(call);
    EXPECT_TRUE(torch::equal(Interpreter(*gm).run({c}).toTensor(), expected));
    EXPECT_TRUE(torch::equal(b, a)) << gm->graph();
    EXPECT_TRUE(torch::equal(c, a));
  }
  return gm;
}

TEST(Functionalize, in_place_operators_and_writes_through_views) {
  const Tensor x = torch::randn({4, 4});
  auto gm = expect_as_eager([](Tensor x) { return x.mul(2).add_(1).relu_(); }, x);
  EXPECT_EQ(targets(gm->graph()),
            (std::vector<std::string>{"aten::mul.Scalar", "aten::add.Scalar", "aten::relu"}));
  expect_as_eager(
      [](Tensor x) {
        Tensor y = x.clone();
        y[0].fill_(3);
        y.t().select(0, 2).mul_(x[1]);
        y.diagonal().add_(x.diagonal());
        y.view({2, 8}).slice(1, 0, 8, 3).copy_(x.flatten().slice(0, 0, 6).view({2, 3}));
        return y;
      },
      x);
  expect_as_eager(
      [](Tensor x) {
        Tensor y = torch::zeros({4, 4});
        y.as_strided({2}, {5}, 1).add_(2);
        std::vector<Tensor> parts = y.chunk(2, 1);
        parts[1].add_(x.slice(1, 0, 2));
        y.unsqueeze_(0);
        return y.squeeze_(0).index_put_({torch::tensor({1, 3})}, x[0]);
      },
      x);
  expect_as_eager(
      [](Tensor x) {
        Tensor out = torch::empty({4, 4});
        at::add_out(out, x, x);
        std::vector<Tensor> list{out, x + 1};
        at::_foreach_mul_(list, 3.0);
        return list[0] - list[1];
      },
      x);
  expect_as_eager([](Tensor x) { return torch::empty({4, 4}).bernoulli_(0.5) + x; }, x);
}

// The operators are those of torch 2.15, in Python: make_fx(functionalize(f, remove="mutations"))
// without dead code.
TEST(Functionalize, operators_are_those_of_Python) {
  auto expect = [](const Program& program, const std::vector<std::string>& operators) {
    auto gm = make_fx(program, {torch::ones({4, 4})});
    functionalize(*gm, {torch::ones({4, 4})});
    std::vector<std::string> found;
    for (const std::string& target : targets(gm->graph()))
      if (target != "operator.getitem") found.push_back(target.substr(6));
    EXPECT_EQ(found, operators) << gm->graph();
  };
  expect(
      [](Tensor x) {
        x[0].mul_(x[1]);
        return x + x;
      },
      {"select.int", "select.int", "mul.Tensor", "select_scatter", "add.Tensor", "copy_"});
  expect(
      [](Tensor x) {
        Tensor y = x.clone();
        y[0].fill_(3);
        y.t().select(0, 2).mul_(y[1]);
        y.diagonal().add_(x.diagonal());
        return y;
      },
      {"clone", "select.int", "fill.Scalar", "select_scatter", "t", "select.int", "select.int",
       "mul.Tensor", "t", "select_scatter", "t", "diagonal", "diagonal", "add.Tensor",
       "diagonal_scatter"});
  expect(
      [](Tensor x) {
        Tensor y = torch::zeros({4, 4});
        y.chunk(2, 1)[1].add_(x.slice(1, 0, 2));
        return y.index_put_({torch::arange(1, 4, 2)}, x[0]);
      },
      {"zeros", "split.Tensor", "slice.Tensor", "add.Tensor", "slice_scatter", "arange.start_step",
       "select.int", "index_put"});
}

TEST(Functionalize, inputs_are_written_once_at_the_end) {
  const Tensor x = torch::randn({4});
  auto gm = expect_as_eager(
      [](Tensor x) {
        x.add_(1);
        x[0].mul_(5);
        return x * 2;
      },
      x);
  EXPECT_EQ(gm->graph().find_calls("aten::copy_").size(), 1u) << gm->graph();
  EXPECT_EQ(gm->mutations(), (std::vector<std::string>{"x"}));
  // What was returned is still the input itself.
  gm = expect_as_eager([](Tensor x) { return x.add_(1); }, x);
  Tensor y = x.clone();
  EXPECT_TRUE((*gm)(y).toTensor().is_alias_of(y));
}

TEST(Functionalize, buffers_are_written_once_at_the_end_or_returned) {
  torch::nn::BatchNorm1d net(3);
  torch::NoGradGuard no_grad;
  const Tensor x = torch::randn({5, 3});
  auto gm = make_fx(net, {x});
  net->reset_running_stats();
  functionalize(*gm, {x});
  EXPECT_EQ(net->num_batches_tracked.item<std::int64_t>(), 0) << "the example changes nothing";
  torch::nn::BatchNorm1d eager(3);
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), eager(x))) << gm->graph();
  EXPECT_TRUE(torch::equal(net->running_mean, eager->running_mean));
  EXPECT_TRUE(torch::equal(net->running_var, eager->running_var));
  EXPECT_EQ(net->num_batches_tracked.item<std::int64_t>(), 1);

  net->reset_running_stats();
  gm = make_fx(net, {x});
  net->reset_running_stats();
  functionalize(*gm, {x}, {.copy_back = false});
  EXPECT_FALSE(AliasAnalysis(gm->graph()).has_writes()) << gm->graph();
  const Values results = elements((*gm)(x));
  const std::vector<std::string>& names = gm->mutations();
  ASSERT_EQ(results.size(), 4u);
  ASSERT_EQ(names.size(), 3u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor expected = eager->named_buffers()[names[i]];
    EXPECT_TRUE(torch::equal(results[i].toTensor(), expected)) << names[i];
  }
  EXPECT_EQ(net->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST(Functionalize, writes_through_an_expand_that_repeats_nothing_do_not_round) {
  const Program program = [](Tensor x) {
    x.expand({1, 2}).select(1, 0).fill_(3);
    x.expand({-1}).slice(0, 1).mul_(0.1);
    return x;
  };
  auto gm = make_fx(program, {torch::ones({2})});
  functionalize(*gm, {torch::ones({2})});
  const Tensor x = torch::tensor({std::numeric_limits<float>::infinity(), 0.3f});
  EXPECT_TRUE(torch::equal((*gm)(x.clone()).toTensor(), program(x.clone()))) << gm->graph();
}

// A module that works in place runs on the example, which stays as it is.
TEST(Functionalize, calls_of_modules) {
  auto graph = std::make_shared<Graph>();
  Node& input = graph->placeholder("x");
  graph->output(graph->call_module("layer", {input}));
  GraphModule gm(graph);
  gm.set_submodule("layer", torch::nn::ReLU(torch::nn::ReLUOptions(true)).ptr());
  gm.recompile();
  const Tensor example = torch::full({2}, -1.f);
  functionalize(gm, {example});
  EXPECT_TRUE(torch::equal(example, torch::full({2}, -1.f)));
  EXPECT_EQ(targets(gm.graph()), (std::vector<std::string>{"aten::relu", "aten::copy_"}));
  const Tensor result = gm(example).toTensor();
  EXPECT_TRUE(result.is_alias_of(example));
  EXPECT_TRUE(torch::equal(example, torch::zeros({2})));
}

TEST(Functionalize, numbers_stay_numbers_in_copies) {
  auto gm = std::make_shared<GraphModule>(parse_text(R"(fx 1
%x = placeholder[target=x]
%add_ = call_method[target=add_](args = (%x, %x), kwargs = {})
%mul = call_function[target=operator.mul](args = (%x, 1), kwargs = {})
return %mul
)"));
  functionalize(*gm, {torch::scalar_tensor(3, torch::kByte)});
  const auto copy = gm->deep_copy();
  copy->recompile();
  EXPECT_EQ((*copy)(torch::scalar_tensor(3, torch::kByte)).toTensor().scalar_type(), torch::kByte);
}

TEST(Functionalize, calls_of_modules_on_inputs_with_gaps) {
  auto gm = std::make_shared<GraphModule>();
  gm->set_submodule("idle", torch::nn::Identity().ptr());
  gm->set_graph(parse_text(R"(fx 1
%x = placeholder[target=x]
%idle = call_module[target=idle](args = (%x,), kwargs = {})
%contiguous = call_method[target=contiguous](args = (%x,), kwargs = {})
%relu_ = call_method[target=relu_](args = (%x,), kwargs = {})
return (%relu_, %contiguous)
)"));
  gm->recompile();
  const auto input = [] { return torch::arange(-4, 4).reshape({4, 2}).slice(1, 0, 1); };
  functionalize(*gm, {input()});
  gm->recompile();
  const Tensor x = input();
  const Value results = (*gm)(x);
  EXPECT_TRUE(torch::equal(x, input().relu())) << gm->graph();
  EXPECT_TRUE(torch::equal(results.toTupleRef().elements()[1].toTensor(), input()));
}

TEST(Functionalize, constants_of_nested_graphs) {
  auto nested = std::make_shared<GraphModule>();
  nested->set_constant("kept", torch::ones({2}));
  nested->set_graph(parse_text(R"(fx 1
%x = placeholder[target=x]
%kept = get_attr[target=kept]
%add_ = call_method[target=add_](args = (%kept, %x), kwargs = {})
return %add_
)"));
  nested->recompile();
  auto gm = std::make_shared<GraphModule>();
  gm->set_submodule("nested", nested);
  gm->set_graph(parse_text(R"(fx 1
%x = placeholder[target=x]
%nested = call_module[target=nested](args = (%x,), kwargs = {})
return %nested
)"));
  gm->recompile();
  const std::string before = to_text(gm->graph());
  EXPECT_FX_ERROR(functionalize(*gm, {torch::ones({2})}), PassError, kNotFunctional,
                  "constant of a nested graph");
  EXPECT_EQ(to_text(gm->graph()), before);
  EXPECT_TRUE(torch::equal(nested->constants().begin()->second, torch::ones({2})));
}

TEST(Functionalize, results_that_are_views_of_inputs_stay_so) {
  const Program program = [](Tensor x) { return x.add_(1).t().select(0, 1); };
  auto gm = make_fx(program, {torch::ones({2, 2})});
  functionalize(*gm, {torch::ones({2, 2})});
  const Tensor x = torch::zeros({2, 2});
  const Tensor result = (*gm)(x).toTensor();
  EXPECT_TRUE(result.is_alias_of(x));
  x.fill_(7);
  EXPECT_TRUE(torch::equal(result, torch::full({2}, 7.f)));
}

TEST(Functionalize, gradients_stay_what_they_were) {
  const Program program = [](Tensor x) {
    Tensor y = x * 2;
    y.slice(0, 1).mul_(x[0]);
    Tensor z;
    {
      const torch::NoGradGuard no_grad;
      z = x.exp();
    }
    return y.add_(z * x);
  };
  const Tensor x = torch::randn({4}).requires_grad_();
  auto gm = make_fx(program, {x * 1});
  functionalize(*gm, {x.detach()});
  const Tensor expected = torch::autograd::grad({program(x * 1).sum()}, {x})[0];
  const Tensor found = torch::autograd::grad({(*gm)(x * 1).toTensor().sum()}, {x})[0];
  EXPECT_TRUE(torch::allclose(found, expected)) << gm->graph();
}

TEST(Functionalize, graphs_without_writes_stay_as_they_are) {
  auto gm = make_fx([](Tensor x) { return torch::linear(x, torch::ones({2, 2})).view({-1}); },
                    {torch::ones({2, 2})});
  const std::string before = gm->graph().str();
  EXPECT_FALSE(functionalize(*gm, {torch::ones({2, 2})}).changed);
  EXPECT_EQ(gm->graph().str(), before);
  gm = make_fx([](Tensor x) { return x.add_(1); }, {torch::ones({2})});
  EXPECT_TRUE(functionalize(*gm, {torch::ones({2})}).changed);
  EXPECT_FALSE(functionalize(*gm, {torch::ones({2})}).changed) << "it is functional now";
  EXPECT_TRUE(functionalize(*gm, {torch::ones({2})}, {.copy_back = false}).changed);
}

TEST(Functionalize, is_a_pass) {
  const Values example{torch::ones({2})};
  auto gm = make_fx([](Tensor x) { return x.exp().add_(1); }, {torch::ones({2})});
  EXPECT_TRUE(run_passes(*gm, "dce,functionalize", {.example_inputs = example}).changed);
  EXPECT_EQ(targets(gm->graph()), (std::vector<std::string>{"aten::exp", "aten::add.Scalar"}));
  gm = make_fx([](Tensor x) { return x.add_(1) * 2; }, {torch::ones({2})});
  run_passes(*gm, "functionalize(copy_back=false)", {.example_inputs = example});
  EXPECT_EQ(targets(gm->graph()),
            (std::vector<std::string>{"aten::add.Scalar", "aten::mul.Scalar"}));
  EXPECT_EQ(gm->mutations(), (std::vector<std::string>{"x"}));
}

Tensor halved_if_positive(Tensor x) {
  x.mul_(2);
  return x.sum().item<float>() > 0 ? x.div(4) : x.neg();
}

TEST(Functionalize, checks_of_values_stay) {
  const Tensor up = torch::ones({2});
  auto captured = make_fx(halved_if_positive, {up.clone()});
  auto expect_checked = [&](GraphModule& gm) {
    functionalize(gm, {up.clone()});
    gm.recompile();
    EXPECT_TRUE(torch::equal(gm(up.clone()).toTensor(), up / 2)) << gm.graph();
    EXPECT_FX_ERROR(gm(-up), RunError, kNodeFailed, "gave 4.0 when it was captured, and now -4.0");
    const Tensor untouched = -up;
    EXPECT_ANY_THROW(gm(untouched));
    EXPECT_TRUE(torch::equal(untouched, -up)) << "written at the end alone";
  };
  expect_checked(*captured->deep_copy());
  // In a graph that is called.
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module("part", {x}));
  GraphModule outer(graph);
  outer.set_submodule("part", captured->deep_copy());
  expect_checked(outer);
  // Of tensors, by operators that assert.
  auto asserts = make_fx(
      [](Tensor x) {
        at::_assert_async(x.sum() > 0, "not positive");
        return x.mul_(2);
      },
      {up.clone()});
  functionalize(*asserts, {up.clone()});
  EXPECT_NO_THROW((*asserts)(up.clone()));
  EXPECT_ANY_THROW((*asserts)(-up));
  // A number that nobody checked is not checked now.
  auto unchecked = make_fx(halved_if_positive, {up.clone()}, {.guard_values = false});
  functionalize(*unchecked, {up.clone()});
  EXPECT_EQ(unchecked->graph().find_calls("torch._assert").size(), 0u);
  EXPECT_TRUE(torch::equal((*unchecked)(-up).toTensor(), -up / 2));
  // Sizes are no values.
  auto sizes = parse_module(
      "%x = placeholder[target=x]\n"
      "%n = call_method[target=size](args = (%x, 0))\n"
      "%y = call_method[target=mul_](args = (%x, %n))\n"
      "return %y\n");
  functionalize(*sizes, {torch::ones({3})});
  EXPECT_EQ(sizes->graph().find_calls("torch._assert").size(), 0u) << sizes->graph();
  EXPECT_TRUE(torch::equal((*sizes)(torch::ones({3})).toTensor(), torch::full({3}, 3.)));
}

TEST(Functionalize, sizes_that_depend_on_values) {
  const Program handed_on = [](Tensor x) {
    Tensor y = x.masked_select(x > 0);
    y.mul_(2);
    x.index_put_({x < 0}, torch::zeros({}));
    return y;
  };
  const Tensor x = torch::tensor({1.f, -2.f, 3.f, 4.f});
  auto gm = make_fx(handed_on, {x.clone()});
  functionalize(*gm, {x.clone()});
  for (const Tensor& other : {x, -x, x.abs(), -x.abs()}) {
    Tensor a = other.clone(), b = other.clone();
    EXPECT_TRUE(torch::equal((*gm)(a).toTensor(), handed_on(b))) << gm->graph();
    EXPECT_TRUE(torch::equal(a, b));
  }
  // The functional form of chunk is split, of the size that a part has.
  const auto text =
      "%x = placeholder[target=x]\n"
      "%mask = call_function[target=aten::gt.Scalar](args = (%x, 0))\n"
      "%y = call_function[target=aten::masked_select](args = (%x, %mask))\n"
      "%chunks = call_function[target=aten::chunk](args = (%y, 2))\n"
      "%half = call_function[target=operator.getitem](args = (%chunks, 0))\n"
      "%z = call_function[target=aten::mul_.Scalar](args = (%half, 3))\n"
      "return %z\n";
  EXPECT_FX_ERROR(functionalize(*parse_module(text), {x.clone()}), PassError, kNotFunctional,
                  "sizes that depend on values");
  // A graph that holds for some sizes alone says so, before and after.
  gm = make_fx(
      [](Tensor x) {
        const auto halves = x.masked_select(x > 0).chunk(2);
        halves[0].mul_(3);
        return halves[0].sum();
      },
      {x.clone()});
  functionalize(*gm, {x.clone()});
  EXPECT_EQ((*gm)(x.clone()).toTensor().item<float>(), 12);
  EXPECT_FX_ERROR((*gm)(-x), RunError, kNodeFailed, "looks at a size that depends on values");
}

TEST(Functionalize, says_what_cannot_be_functional) {
  auto fails = [](const Program& program, const std::string& text) {
    auto gm = make_fx(program, {torch::ones({2, 2})});
    const std::string before = gm->graph().str();
    EXPECT_FX_ERROR(functionalize(*gm, {torch::ones({2, 2})}), PassError, kNotFunctional, text);
    EXPECT_EQ(gm->graph().str(), before);
  };
  fails([](Tensor x) { return x.unsqueeze_(0).add_(1); }, "no other shape");
  struct Tied : torch::nn::Module {
    Tensor forward(const Tensor& x) {
      whole.add_(x.sum());
      return x + part;
    }
    Tensor whole = register_buffer("whole", torch::zeros({4}));
    Tensor part = register_buffer("part", whole.slice(0, 2));
  };
  auto gm = make_fx(std::make_shared<Tied>(), {torch::ones({2, 2})});
  EXPECT_FX_ERROR(functionalize(*gm, {torch::ones({2, 2})}), PassError, kNotFunctional,
                  "'whole' is written to and shares memory with 'part'");
  // What the example decides: the result would be wrong for other values.
  auto reads = parse_module(
      "%x = placeholder[target=x]\n"
      "%s = call_function[target=aten::sum](args = (%x,))\n"
      "%k = call_function[target=aten::item](args = (%s,))\n"
      "%y = call_method[target=mul_](args = (%x, %k))\n"
      "return %y\n");
  EXPECT_FX_ERROR(functionalize(*reads, {torch::ones({2})}), PassError, kNotFunctional,
                  "reads a value: the result would hold for that of the example alone");
  // A branch is such a value, too.
  auto root = std::make_shared<torch::nn::Module>();
  root->register_module("yes", symbolic_trace([](auto x) { return x * 2; }));
  root->register_module("no", symbolic_trace([](auto x) { return x * 3; }));
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->call_function("aten::add_", {x, 1});
  Node& is_positive = graph->call_function("aten::gt", {graph->call_function("aten::sum", {x}), 0});
  graph->output(graph->call_function(
      "torch.ops.higher_order.cond",
      {is_positive, graph->get_attr("yes"), graph->get_attr("no"), Argument::list({x})}));
  GraphModule branches(*root, graph);
  EXPECT_FX_ERROR(functionalize(branches, {torch::ones({2})}), PassError, kNotFunctional,
                  "reads a value: the result would hold for that of the example alone");
  EXPECT_FX_ERROR(functionalize(*gm, {}), PassError, kNotFunctional, "wanted 1 tensors");
  EXPECT_FX_ERROR(functionalize(*gm, {1}), PassError, kNotFunctional, "wanted tensors");
}

}  // namespace
}  // namespace fx
