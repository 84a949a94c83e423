// torch.fx's own tests of make_fx (test_proxy_tensor.py, tracing mode "real"), in C++ form.
#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/capture/proxy_tensor.h"
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

// The options of torch.fx's make_fx, in the form they have here. decomposition_table:
// tests/passes/decompose_test.cpp.
TEST(MakeFxOfTorchFx, X_012_options) {
  // tracing_mode "real": the program runs; "fake": on tensors without data.
  int runs = 0;
  auto program = [&](at::Tensor x) {
    ++runs;
    return torch::softmax(x, -1);
  };
  auto real = make_fx(program, {torch::rand({2, 3})});
  auto fake = make_fx(program, {torch::empty({2, 3}, torch::kMeta)});
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(real->graph().str(), fake->graph().str());
  // pre_dispatch: operators as called, before autograd and decomposition.
  EXPECT_EQ(real->graph().find_calls("aten::softmax.int").size(), 1u);
  // "symbolic": sizes are those of the example, and a graph says so.
  bool input_noted = false;
  for (const Assumption& each : *real->meta().get<Assumptions>("assumptions"))
    input_noted = input_noted || each.kind == Assumption::Kind::kInput;
  EXPECT_TRUE(input_noted);
  // _allow_non_fake_inputs: a tensor with data beside those without, as a constant.
  const at::Tensor outside = torch::ones({3});
  auto mixed = make_fx([&](at::Tensor x) { return torch::matmul(x, outside); },
                       {torch::empty({2, 3}, torch::kMeta)});
  const at::Tensor x = torch::rand({2, 3});
  EXPECT_TRUE(torch::equal((*mixed)(x).toTensor(), torch::matmul(x, outside)));
  // _error_on_data_dependent_ops
  auto reads = [](at::Tensor x) { return x * x.sum().item<double>(); };
  EXPECT_FX_ERROR(make_fx(reads, {row({1, 2})}, {.strict = true}), TraceError, kConcreteValue,
                  "the program read a value");
  // The names of inputs and of the class.
  auto named = make_fx([](at::Tensor x) { return x + 1; }, {row({1})},
                       {.input_names = {"image"}, .class_name = "Named"});
  EXPECT_EQ(names(named->graph())[0], "image");
  EXPECT_EQ(named->class_name(), "Named");
}

// The map from tensors to proxies.
TEST(MakeFxOfTorchFx, X_013_tensors_are_known_by_identity) {
  auto module = make_fx(
      [](at::Tensor x) {
        const at::Tensor y = x + 1, same = y, view = y.view({3});
        return std::vector<at::Tensor>{x, y, same, view, y.detach()};
      },
      {row({1, 2, 3})});
  const std::span<const Argument> results = module->graph().output_node().args()[0].items();
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0].node().name(), "x");
  EXPECT_EQ(&results[1].node(), &results[2].node());
  EXPECT_NE(&results[3].node(), &results[1].node()) << "a view is another tensor";
  EXPECT_NE(&results[4].node(), &results[1].node());
  // get_proxy_slot: the proxy behind a tensor of a symbolic trace, null behind any other.
  symbolic_trace([](Proxy p) {
    const at::Tensor tensor = p;
    const Proxy* found = find_proxy(tensor);
    EXPECT_EQ(found ? &found->node() : nullptr, &p.node());
    EXPECT_EQ(find_proxy(torch::ones({2})), nullptr);
    return tensor + 1;
  });
  // The map goes with the capture: the same tensors mean nothing to the next one.
  const at::Tensor shared = row({5});
  auto first = make_fx([](at::Tensor x) { return x * 2; }, {shared});
  auto second = make_fx([&](at::Tensor x) { return x * shared; }, {row({7})});
  EXPECT_EQ(second->graph().find_nodes(Opcode::kGetAttr).size(), 1u);
  EXPECT_EQ((*second)(row({2})).toTensor().item<float>(), 10);
}

TEST(MakeFxOfTorchFx, X_014_constants_in_captures) {
  // A number read from a constant is that number; a constant that is written to is made anew.
  auto module = replayed(
      [](at::Tensor x) {
        at::Tensor two = torch::tensor(2.f);
        const double number = two.item<double>();
        two.add_(x.sum());
        return x * number + two;
      },
      row({1, 2}), row({3, 4}));
  EXPECT_EQ((*module)(row({0, 1})).toTensor()[0].item<float>(), 3);
  for (const auto& [path, constant] : module->constants())
    EXPECT_EQ(constant.item<float>(), 2) << path << ": a run wrote to it";
  // A parameter that is read twice is one get_attr node, under its name.
  struct TwiceImpl : torch::nn::Module {
    at::Tensor w = register_parameter("w", torch::ones({2}));
    at::Tensor forward(at::Tensor x) { return x * w + w; }
  };
  auto twice = make_fx(std::make_shared<TwiceImpl>(), {row({1, 2})});
  const auto reads = twice->graph().find_nodes(Opcode::kGetAttr);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0]->target(), "w");
  // Values that depend on the data: torch.fx refuses, here they are listed, and refused on request.
  auto branches = [](at::Tensor x) { return x.sum().item<double>() > 0 ? x : -x; };
  auto taken = make_fx(branches, {row({1})});
  std::string listed;
  for (const Assumption& each : *taken->meta().get<Assumptions>("assumptions"))
    if (each.kind == Assumption::Kind::kValue) listed += each.text;
  EXPECT_THAT(listed, testing::HasSubstr("aten::item gave 1.0, in %item"));
  EXPECT_FX_ERROR(make_fx(branches, {row({1})}, {.strict = true}), TraceError, kConcreteValue,
                  "the program read a value");
  EXPECT_FX_ERROR(symbolic_trace([](Proxy x) {
                    return static_cast<at::Tensor>(x).sum().item<double>() > 0 ? x : x;
                  }),
                  TraceError, kConcreteValue, "sum");
}

}  // namespace
}  // namespace fx
