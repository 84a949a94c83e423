// make_fx on programs whose effects the dispatcher does not show: switched gradients, autocast,
// memory filled through pointers, values kept beyond the call.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <array>
#include <future>

#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using Program = std::function<Tensor(Tensor)>;

// The result and the gradients of `parameters` and of the input.
std::vector<Tensor> run(const Program& program, const Tensor& input,
                        const std::vector<Tensor>& parameters) {
  const Tensor leaf = input.clone().requires_grad_();
  const Tensor result = program(leaf.clone());
  std::vector<Tensor> wanted = parameters;
  wanted.push_back(leaf);
  std::vector<Tensor> out{result.detach()};
  if (!result.requires_grad()) return out;
  for (Tensor& gradient : torch::autograd::grad({result.sum()}, wanted, {}, {}, false, true))
    out.push_back(gradient.defined() ? gradient : torch::full({}, -99.));
  return out;
}

void expect_gradients_as_eager(const Program& program, const Tensor& input,
                               const std::vector<Tensor>& parameters = {}) {
  auto gm = make_fx(program, {torch::randn_like(input).requires_grad_().clone()});
  const auto expected = run(program, input, parameters);
  const auto replayed = run([&](Tensor x) { return (*gm)(x).toTensor(); }, input, parameters);
  const auto interpreted =
      run([&](Tensor x) { return Interpreter(*gm).run({x}).toTensor(); }, input, parameters);
  ASSERT_EQ(replayed.size(), expected.size()) << gm->graph();
  ASSERT_EQ(interpreted.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(torch::equal(replayed[i], expected[i])) << i << "\n" << gm->graph();
    EXPECT_TRUE(torch::equal(interpreted[i], expected[i])) << i;
  }
}

TEST(MakeFxEffects, parts_without_gradients_stay_without) {
  const Tensor x = torch::randn({3, 3});
  expect_gradients_as_eager(
      [](Tensor x) {
        const torch::NoGradGuard no_grad;
        return x * x;
      },
      x);
  expect_gradients_as_eager(
      [](Tensor x) {
        Tensor scale;
        {
          const torch::NoGradGuard no_grad;
          scale = x.abs().max();
        }
        return x / scale + x * x;
      },
      x);
  expect_gradients_as_eager(
      [](Tensor x) {
        Tensor list_sum;
        {
          const torch::NoGradGuard no_grad;
          list_sum = torch::cat({x, x * 2}).sum();
          const torch::AutoGradMode again(true);
          list_sum = list_sum + (x * 3).sum();
        }
        return x * list_sum;
      },
      x);
}

TEST(MakeFxEffects, parameters_are_written_to_where_gradients_are_off) {
  Tensor weight = torch::full({3}, 2.f).requires_grad_();
  const Program clipped = [&](Tensor x) {
    {
      const torch::NoGradGuard no_grad;
      weight.clamp_(-1.5, 1.5).mul_(0.5);
    }
    return x * weight;
  };
  auto gm = make_fx(clipped, {torch::ones({3})});
  for (int step = 0; step < 2; ++step) {
    const Tensor before = weight.detach().clone();
    const Tensor expected = clipped(torch::ones({3})).detach().clone();
    {
      const torch::NoGradGuard no_grad;
      weight.copy_(before);
    }
    const Tensor y = (*gm)(torch::ones({3})).toTensor();
    EXPECT_TRUE(torch::equal(y, expected));
    EXPECT_TRUE(torch::equal(torch::autograd::grad({y.sum()}, {weight})[0], torch::ones({3})));
  }
}

TEST(MakeFxEffects, gradients_taken_inside_become_operators) {
  const Program forces = [](Tensor x) {
    const Tensor leaf = x.detach().requires_grad_();
    return torch::autograd::grad({(leaf.sin() * leaf).sum()}, {leaf})[0];
  };
  auto gm = make_fx(forces, {torch::randn({4})});
  const Tensor x = torch::randn({4});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), forces(x))) << gm->graph();
}

struct Square : torch::autograd::Function<Square> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * 100};
  }
};

TEST(MakeFxEffects, own_autograd_functions_are_refused_where_gradients_matter) {
  const Program program = [](Tensor x) { return Square::apply(x) + 1; };
  const Tensor x = torch::ones({2}).requires_grad_();
  EXPECT_FX_ERROR(make_fx(program, {x}), TraceError, kBadArgument,
                  "applies a torch::autograd::Function");
  EXPECT_FX_ERROR(make_fx([](Tensor x) { return Square::apply(x); }, {x}), TraceError, kBadArgument,
                  "capture it under torch::NoGradGuard");
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal((*make_fx(program, {x}))(torch::full({2}, 3.f)).toTensor(),
                           torch::full({2}, 10.f)));
}

class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype) : dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }

 private:
  at::ScalarType dtype_;
};

TEST(MakeFxEffects, autocast_becomes_casts) {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                            torch::nn::Linear(16, 6), torch::nn::Softmax(1));
  torch::nn::LSTM lstm(6, 5);
  const std::vector<Tensor> parameters = net->parameters();
  const auto inside = [&](Tensor x) {
    const Autocast autocast(at::kBFloat16);
    return net->forward(x);
  };
  const Tensor x = torch::randn({2, 3, 4, 4});
  EXPECT_EQ(torch::nn::Linear(3, 3)->forward(torch::ones({1, 3})).scalar_type(), at::kFloat);
  expect_gradients_as_eager(inside, x, parameters);
  auto gm = make_fx(inside, {x});
  const auto calls = gm->graph().str();
  EXPECT_THAT(calls, testing::HasSubstr("bfloat16"));
  {
    // The whole capture within autocast, with casts of the weights in its cache.
    const Autocast autocast(at::kBFloat16);
    const Tensor expected = net->forward(x);
    gm = make_fx([&](Tensor x) { return net->forward(x); }, {x});
    EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), expected));
  }
  for (const auto& [path, constant] : gm->constants())
    EXPECT_EQ(constant.scalar_type(), at::kFloat) << path << ": casts of weights are no constants";
  const auto recurrent = [&](Tensor x) {
    const Autocast autocast(at::kBFloat16);
    return std::get<0>(lstm->forward(x)).to(at::kFloat);
  };
  const torch::NoGradGuard no_grad;
  gm = make_fx(recurrent, {torch::randn({3, 2, 6})});
  const Tensor steps = torch::randn({3, 2, 6});
  EXPECT_TRUE(torch::equal((*gm)(steps).toTensor(), recurrent(steps))) << gm->graph();
}

TEST(MakeFxEffects, memory_filled_through_a_pointer_and_then_written_is_new_in_each_call) {
  const Program filled = [](Tensor x) {
    Tensor memory = torch::empty({3});
    for (int i = 0; i < 3; ++i) memory.data_ptr<float>()[i] = static_cast<float>(i);
    return memory.add_(x);
  };
  const Program partly = [](Tensor x) {
    Tensor memory = torch::empty({3});
    for (int i = 0; i < 3; ++i) memory.data_ptr<float>()[i] = static_cast<float>(i);
    memory.index_put_({torch::tensor({1})}, x[0]);
    return memory;
  };
  const Program borrowed = [](Tensor x) {
    std::array<float, 3> numbers{1, 2, 3};
    Tensor memory = torch::from_blob(numbers.data(), {3});
    return x + memory.mul_(2);
  };
  for (const Program& program : {filled, partly, borrowed}) {
    auto gm = make_fx(program, {torch::ones({3})});
    for (int call = 0; call < 3; ++call) {
      const Tensor x = torch::randn({3});
      EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x))) << call << "\n" << gm->graph();
    }
  }
  // A view made before the memory is filled, and a write to a part of filled memory.
  EXPECT_FX_ERROR(make_fx(
                      [](Tensor x) {
                        Tensor memory = torch::empty({4});
                        Tensor part = memory.slice(0, 0, 2);
                        memory.data_ptr<float>()[3] = 1;
                        part.copy_(x);
                        return memory * 1;
                      },
                      {torch::zeros({2})}),
                  TraceError, kBadArgument, "through a pointer");
}

TEST(MakeFxEffects, memory_that_the_program_gives_to_a_parameter_is_refused) {
  struct Swapping : torch::nn::Module {
    Tensor forward(const Tensor& x) {
      Tensor y = x * weight;
      weight.set_data(torch::ones({2}));
      return y;
    }
    Tensor weight = register_parameter("weight", torch::zeros({2}));
  };
  EXPECT_FX_ERROR(make_fx(std::make_shared<Swapping>(), {torch::ones({2})}), TraceError,
                  kBadArgument, "gave other memory to 'weight'");
}

TEST(MakeFxEffects, values_that_outlive_the_call_are_assumptions) {
  struct Stateful : torch::nn::Module {
    Tensor forward(const Tensor& x) {
      last = last.defined() ? last + x : x * 2;
      return last * 1;
    }
    Tensor last;
  };
  auto kept = [](const GraphModule& module) {
    std::string texts;
    for (const Assumption& each : *module.meta().get<Assumptions>("assumptions"))
      if (each.kind == Assumption::Kind::kKept) texts += each.text + "\n";
    return texts;
  };
  auto net = std::make_shared<Stateful>();
  EXPECT_THAT(kept(*make_fx(net, {torch::ones({2})})),
              testing::HasSubstr("keeps the value of %mul"));
  net->last = Tensor();
  EXPECT_FX_ERROR(make_fx(net, {torch::ones({2})}, {.strict = true}), TraceError, kConcreteValue,
                  "beyond its end");
  // With gradients too: what the graph of autograd holds goes with the result.
  const Tensor x = torch::ones({2}).requires_grad_();
  EXPECT_EQ(kept(*make_fx([](Tensor x) { return (x.exp() * x).relu_(); }, {x})), "");
  EXPECT_EQ(kept(*make_fx([](Tensor x) { return x.mul_(2).exp(); }, {x * 1})), "");
}

TEST(MakeFxEffects, sizes_that_depend_on_values_are_assumptions) {
  const auto program = [](Tensor x) { return x.nonzero() * 2; };
  auto gm = make_fx(program, {torch::ones({3})});
  std::string values;
  for (const Assumption& each : *gm->meta().get<Assumptions>("assumptions"))
    if (each.kind == Assumption::Kind::kValue) values += each.text;
  EXPECT_THAT(values, testing::HasSubstr("whose sizes depend on values"));
  const Tensor x = torch::tensor({0.f, 1.f, 0.f});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x)));
  EXPECT_FX_ERROR(make_fx(program, {torch::ones({3})}, {.strict = true}), TraceError,
                  kConcreteValue, "sizes depend on values");
}

TEST(MakeFxEffects, guards_are_of_the_inputs_as_they_came) {
  auto gm = make_fx([](Tensor x) { return x.unsqueeze_(0) * 2; }, {torch::ones({3})});
  EXPECT_EQ((*gm)(torch::ones({3})).toTensor().sizes(), (std::vector<std::int64_t>{1, 3}));
}

}  // namespace
}  // namespace fx
