// torch.fx's own tests of make_fx (test_proxy_tensor.py, tracing mode "real"), in C++ form.
#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "tests/graph/graphs.h"
#include "tests/ops/sample_calls.h"

namespace fx {
namespace {

at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

// Captures on one input, replays on another, twice: the capture burnt nothing in, and neither did
// the first run.
template <typename Program>
std::shared_ptr<GraphModule> replayed(Program program, const at::Tensor& example,
                                      const at::Tensor& other) {
  auto module = make_fx(program, {example.clone()});
  module->graph().lint({.strict = true});
  for (int round = 0; round < 2; ++round) {
    const at::Tensor a = other.clone(), b = other.clone(), c = other.clone();
    torch::manual_seed(round);
    const at::Tensor expected = program(a);
    torch::manual_seed(round);
    EXPECT_TRUE(torch::equal((*module)(b).toTensor(), expected)) << module->graph();
    torch::manual_seed(round);
    EXPECT_TRUE(torch::equal(Interpreter(*module).run({c}).toTensor(), expected));
    EXPECT_TRUE(torch::equal(a, b)) << "inputs are written to alike";
  }
  return module;
}

TEST(MakeFxOfTorchFx, Z_001_simple_programs_factories_and_overloads) {
  auto module =
      replayed([](at::Tensor x) { return torch::sin(x); }, torch::rand({3}), torch::rand({3}));
  EXPECT_EQ(names(module->graph()), (Names{"x", "sin", "output"}));
  // make_fx_overloads: every target is one overload of an operator.
  module = replayed([](at::Tensor x) { return x.cos() + torch::randn(x.sizes()); },
                    torch::rand({3}), torch::rand({3}));
  for (const Node* node : module->graph().find_nodes(Opcode::kCallFunction))
    EXPECT_EQ(node->target().function()->kind(), FunctionKind::kOperator) << node->name();
  EXPECT_EQ(module->graph().find_calls("aten::randn").size(), 1u) << "a factory is recorded";
  // scalar_device: a tensor of no dimensions beside others.
  auto scalars = make_fx([](at::Tensor a, at::Tensor b) { return a + b; },
                         {torch::randn({3}), torch::tensor(5)});
  EXPECT_TRUE(
      torch::equal((*scalars)(row({1, 2, 3}), torch::tensor(7)).toTensor(), row({8, 9, 10})));
  // empty_like_doesnt_burn_in_defaults
  module = make_fx([](at::Tensor x) { return at::empty_like(x).fill_(1) + x; }, {torch::rand({2})});
  EXPECT_TRUE(module->graph().find_calls("aten::empty_like")[0]->kwargs().empty());
  // varargs
  auto many = make_fx([](at::Tensor a, at::Tensor b, at::Tensor c) { return a + b * c; },
                      {row({1}), row({2}), row({3})});
  EXPECT_EQ((*many)(row({4}), row({5}), row({6})).toTensor().item<float>(), 34);
}

TEST(MakeFxOfTorchFx, Z_001_metadata_that_changes_in_place) {
  replayed(
      [](at::Tensor x) {
        x = x.clone();
        x.unsqueeze_(-1);
        EXPECT_EQ(x.size(-1), 1);
        return x;
      },
      torch::rand({5}), torch::rand({5}));
  replayed(
      [](at::Tensor x) {
        at::Tensor y = x.clone();
        y.unsqueeze_(0);
        return y + 1;
      },
      torch::rand({5}), torch::rand({5}));
  // strides: asked for while capturing, they are those of the real tensors.
  replayed(
      [](at::Tensor x) {
        EXPECT_TRUE(x.is_contiguous());
        EXPECT_FALSE(x.t().is_contiguous());
        at::Tensor y = x.t();
        return y + y.contiguous();
      },
      torch::rand({2, 3}), torch::rand({2, 3}));
}

TEST(MakeFxOfTorchFx, Z_001_constants) {
  // tensor_constants, constant_proxy_tensor_mut: written to in each run anew.
  replayed(
      [](at::Tensor x) {
        at::Tensor val = torch::tensor(1.f);
        val.add_(2);
        return x + val;
      },
      row({1, 2}), row({3, 4}));
  // constant_unbind, constant_blowup: numbers that the program reads are assumptions.
  for (const bool strict : {false, true}) {
    auto unbind = [](at::Tensor x) {
      const at::Tensor val = torch::tensor({2.f});
      return x * torch::unbind(val, 0)[0].item<double>();
    };
    auto random = [](at::Tensor x) {
      at::Tensor val = torch::tensor({2.f});
      val.normal_();
      return x * val.item<double>();
    };
    auto all_close = [](at::Tensor x) { return torch::allclose(x, x * 2) ? x : -x; };
    if (strict) {
      EXPECT_FX_ERROR(make_fx(unbind, {row({1})}, {.strict = true}), TraceError, kConcreteValue,
                      "the program read a value");
      EXPECT_FX_ERROR(make_fx(random, {row({1})}, {.strict = true}), TraceError, kConcreteValue,
                      "the program read a value");
      EXPECT_FX_ERROR(make_fx(all_close, {row({1})}, {.strict = true}), TraceError, kConcreteValue,
                      "the program read a value");
    } else {
      auto module = make_fx(unbind, {row({1})});
      EXPECT_EQ((*module)(row({3})).toTensor().item<float>(), 6);
      bool noted = false;
      for (const Assumption& each : *module->meta().get<Assumptions>("assumptions"))
        noted = noted || each.kind == Assumption::Kind::kValue;
      EXPECT_TRUE(noted);
    }
  }
  // constant_random: drawn in each run.
  replayed(
      [](at::Tensor x) {
        at::Tensor val = torch::tensor({2.f});
        val.normal_();
        return x + val;
      },
      row({1, 2}), row({3, 4}));
}

TEST(MakeFxOfTorchFx, Z_001_isolated_graphmodule_a_capture_inside_of_a_capture) {
  std::shared_ptr<GraphModule> inner;
  auto program = [&](at::Tensor x) {
    inner = make_fx([](at::Tensor y) { return y.sin(); }, {torch::rand({2})});
    return x.cos();
  };
  auto outer = make_fx(program, {torch::rand({2})});
  EXPECT_EQ(inner->graph().find_calls("aten::sin").size(), 1u);
  EXPECT_EQ(inner->graph().find_calls("aten::cos").size(), 0u);
  EXPECT_EQ(outer->graph().find_calls("aten::cos").size(), 1u);
  const at::Tensor x = torch::rand({2});
  EXPECT_TRUE(torch::equal((*outer)(x).toTensor(), x.cos()));
}

// TestProxyTensorOpInfo: each operator is recorded as itself, and the graph gives what it gives.
TEST(MakeFxOfTorchFx, Z_004_every_operator) {
  std::size_t captured = 0;
  for (const SampleCall& sample : sample_calls()) {
    if (sample.name.find("empty") != std::string::npos) continue;  // nothing to compare
    SCOPED_TRACE(sample.name);
    const Function& function = *Function::get(sample.name);
    Value expected;
    try {
      expected = call(function, sample.args);
    } catch (const std::exception&) {
      continue;  // it takes other values
    }
    std::vector<at::Tensor> inputs;
    for (const Value& arg : sample.args) {
      if (arg.isTensor()) inputs.push_back(arg.toTensor().clone());
      if (arg.isTensorList()) inputs.insert(inputs.end(), 2, arg.toTensorVector()[0]);
    }
    for (at::Tensor& input : inputs) input = input.clone();
    auto module = record_program(
        torch::nn::Module(), inputs, {}, [&](std::vector<at::Tensor>& traced) -> TraceArg {
          std::size_t next = 0;
          Values args;
          for (const Value& arg : sample.args) {
            if (arg.isTensor())
              args.emplace_back(traced.at(next++));
            else if (arg.isTensorList())
              args.emplace_back(c10::List<at::Tensor>({traced.at(next), traced.at(next + 1)}));
            else
              args.push_back(arg);
            if (arg.isTensorList()) next += 2;
          }
          const Value result = call(function, std::move(args));
          if (result.isTensor()) return result.toTensor();
          std::vector<TraceArg> items;
          for (const Value& item : elements(result)) items.emplace_back(item.toTensor());
          return TraceArg::tuple(std::move(items));
        });
    module->graph().lint({.strict = true});
    EXPECT_EQ(module->graph().find_calls(sample.name).size(), 1u) << module->graph();
    const Value found = module->forward(Values(inputs.begin(), inputs.end()));
    const Values left = found.isTensor() ? Values{found} : elements(found);
    const Values right = expected.isTensor() ? Values{expected} : elements(expected);
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i)
      EXPECT_TRUE(at::allclose(left[i].toTensor().to(at::kComplexDouble),
                               right[i].toTensor().to(at::kComplexDouble), 0, 0,
                               /*equal_nan=*/true));
    ++captured;
  }
  EXPECT_GT(captured, 350u);
}

// proxy_tensor, model_fwd_bwd, fwd_bwd_wgtupdate: the gradient is part of the program.
TEST(MakeFxOfTorchFx, Z_001_programs_that_compute_gradients) {
  auto gradient = [](at::Tensor x) {
    at::Tensor leaf = x.detach().clone().requires_grad_();
    at::Tensor loss = (leaf.sin() * leaf).sum();
    return torch::autograd::grad({loss}, {leaf})[0];
  };
  const at::Tensor x = torch::rand({3}), y = torch::rand({3});
  auto module = make_fx(gradient, {x});
  const at::Tensor expected = y.cos() * y + y.sin();
  EXPECT_TRUE(torch::allclose(gradient(y), expected));
  EXPECT_TRUE(torch::allclose((*module)(y).toTensor(), expected)) << module->graph();
}

// alias, meta: captures without data.
TEST(MakeFxOfTorchFx, Z_002_tensors_without_data) {
  const at::Tensor meta = torch::empty({2, 3}, torch::kMeta);
  auto module = make_fx([](at::Tensor x) { return x.view({3, 2}).sigmoid() + 1; }, {meta});
  EXPECT_EQ(names(module->graph()), (Names{"x", "view", "sigmoid", "add_scalar", "output"}));
  const at::Tensor x = torch::randn({2, 3});
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), x.view({3, 2}).sigmoid() + 1));
  EXPECT_TRUE((*module)(meta).toTensor().is_meta());
  auto alias = make_fx([](at::Tensor v) { return at::alias(v); }, {meta});
  EXPECT_TRUE((*alias)(x).toTensor().is_alias_of(x));
}

}  // namespace
}  // namespace fx
