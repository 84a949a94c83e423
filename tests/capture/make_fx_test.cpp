#include "fx/capture/make_fx.h"

#include <thread>

#include "examples/resnet18.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

at::Tensor flat(const Value& value) {
  std::vector<at::Tensor> parts;
  auto walk = [&](auto&& self, const Value& v) -> void {
    if (v.isTensor())
      parts.push_back(v.toTensor().detach().to(at::kDouble).flatten());
    else
      for (const Value& item : elements(v)) self(self, item);
  };
  walk(walk, value);
  return at::cat(parts);
}

// Replays on fresh inputs of the same shapes through GraphModule and Interpreter, exactly as eager.
template <typename Program>
void expect_replays(Program&& program, const std::vector<std::function<at::Tensor()>>& make_inputs,
                    const std::function<Value(std::vector<at::Tensor>&)>& eager) {
  auto fresh = [&] {
    std::vector<at::Tensor> inputs;
    for (const auto& make : make_inputs) inputs.push_back(make());
    return inputs;
  };
  auto clones = [](const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> out;
    for (const at::Tensor& input : inputs) out.push_back(input.detach().clone());
    return out;
  };
  auto gm = make_fx(program, fresh());
  gm->graph().lint({.strict = true});
  for (int round = 0; round < 3; ++round) {
    const auto inputs = fresh();
    auto a = clones(inputs), b = clones(inputs), c = clones(inputs);
    torch::manual_seed(round);
    const at::Tensor expected = flat(eager(a));
    torch::manual_seed(round);
    EXPECT_TRUE(torch::equal(flat(gm->forward(Values(b.begin(), b.end()))), expected)) << round;
    torch::manual_seed(round);
    EXPECT_TRUE(torch::equal(flat(Interpreter(*gm).run(Values(c.begin(), c.end()))), expected))
        << round;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(torch::equal(b[i], a[i])) << "input " << i << " is mutated alike";
      EXPECT_TRUE(torch::equal(c[i], a[i]));
    }
  }
}

std::function<at::Tensor()> randn(std::vector<std::int64_t> sizes) {
  return [sizes] { return torch::randn(sizes); };
}

// Stock torch::nn, nothing of fx.
struct ConvNetImpl : torch::nn::Module {
  ConvNetImpl()
      : conv(register_module("conv",
                             torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)))),
        bn(register_module("bn", torch::nn::BatchNorm2d(8))),
        fc(register_module("fc", torch::nn::Linear(8, 4))) {}
  at::Tensor forward(at::Tensor x) {
    x = bn(conv(x));
    torch::relu_(x);
    x = torch::nn::functional::max_pool2d(x, torch::nn::functional::MaxPool2dFuncOptions(2));
    x = x.mean({2, 3});
    x.mul_(2);
    return fc(x.view({x.size(0), -1}));
  }
  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d bn;
  torch::nn::Linear fc;
};
TORCH_MODULE(ConvNet);

TEST(MakeFx, convolution_batch_norm_in_place_in_eval) {
  ConvNet net;
  net->eval();
  torch::NoGradGuard no_grad;
  expect_replays(net, {randn({2, 3, 8, 8})}, [&](auto& in) { return Value(net->forward(in[0])); });
  auto gm = make_fx(net, {torch::randn({2, 3, 8, 8})});
  EXPECT_EQ(gm->graph().find_calls("aten::batch_norm").size(), 1u) << "before decomposition";
  EXPECT_EQ(gm->graph().find_calls("aten::relu_").size(), 1u);
  EXPECT_NE(gm->graph().find_node("conv_weight"), nullptr);
  EXPECT_TRUE(gm->find_tensor("conv.weight").is_same(net->conv->weight)) << "shared, not copied";
}

TEST(MakeFx, F_batch_norm_in_training_updates_the_buffers_of_the_module) {
  ConvNet net;
  net->train();
  torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({4, 3, 8, 8});
  auto gm = make_fx(net, {x});
  // Capturing was one eager step; replay takes the second, eager on a copy takes it too.
  ConvNet copy(std::dynamic_pointer_cast<ConvNetImpl>(std::make_shared<ConvNetImpl>()));
  for (const auto& item : net->named_parameters())
    copy->named_parameters()[item.key()].copy_(item.value());
  for (const auto& item : net->named_buffers())
    copy->named_buffers()[item.key()].copy_(item.value());
  const at::Tensor y = (*gm)(x).toTensor();
  EXPECT_TRUE(torch::equal(y, copy->forward(x)));
  EXPECT_TRUE(torch::equal(net->bn->running_mean, copy->bn->running_mean));
  EXPECT_TRUE(torch::equal(net->bn->running_var, copy->bn->running_var));
  EXPECT_TRUE(torch::equal(net->bn->num_batches_tracked, copy->bn->num_batches_tracked));
  EXPECT_FALSE(gm->graph().eliminate_dead_code()) << "the updates are effects";
}

TEST(MakeFx, lstm_and_gru) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(5, 7).num_layers(2).bidirectional(true));
  torch::nn::GRU gru(5, 7);
  torch::NoGradGuard no_grad;
  expect_replays(
      [&](at::Tensor x) {
        auto [out, state] = lstm(x);
        auto [other, hidden] = gru(x);
        return std::make_tuple(out, std::get<0>(state), std::get<1>(state), other, hidden);
      },
      {randn({6, 2, 5})},
      [&](auto& in) {
        auto [out, state] = lstm(in[0]);
        auto [other, hidden] = gru(in[0]);
        return to_value(
            std::make_tuple(out, std::get<0>(state), std::get<1>(state), other, hidden));
      });
}

TEST(MakeFx, transformer_encoder_layer_and_embedding) {
  struct Net : torch::nn::Module {
    Net()
        : embed(register_module("embed", torch::nn::Embedding(11, 16))),
          layer(register_module(
              "layer", torch::nn::TransformerEncoderLayer(
                           torch::nn::TransformerEncoderLayerOptions(16, 4).dim_feedforward(32)))),
          encoder(register_module("encoder", torch::nn::TransformerEncoder(layer, 2))) {}
    at::Tensor forward(at::Tensor ids) { return encoder(embed(ids)); }
    torch::nn::Embedding embed;
    torch::nn::TransformerEncoderLayer layer;
    torch::nn::TransformerEncoder encoder;
  };
  auto net = std::make_shared<Net>();
  net->eval();
  torch::NoGradGuard no_grad;
  expect_replays(net, {[] { return torch::randint(11, {5, 2}); }},
                 [&](auto& in) { return Value(net->forward(in[0])); });
  net->train();  // dropout: the seeded generator gives the same numbers
  expect_replays(net, {[] { return torch::randint(11, {5, 2}); }},
                 [&](auto& in) { return Value(net->forward(in[0])); });
}

TEST(MakeFx, resnet18) {
  resnet::ResNet18 net(10);
  net->eval();
  torch::NoGradGuard no_grad;
  expect_replays(net, {randn({1, 3, 32, 32})},
                 [&](auto& in) { return Value(net->forward(in[0])); });
}

TEST(MakeFx, mutation_views_and_aliases) {
  auto check = [](auto fn, std::size_t inputs = 1) {
    std::vector<std::function<at::Tensor()>> makers(inputs, randn({4, 4}));
    if (inputs == 1)
      expect_replays(fn, makers, [&](auto& in) {
        if constexpr (std::is_invocable_v<decltype(fn), at::Tensor>) return to_value(fn(in[0]));
        return Value();
      });
    else
      expect_replays(fn, makers, [&](auto& in) {
        if constexpr (std::is_invocable_v<decltype(fn), at::Tensor, at::Tensor>)
          return to_value(fn(in[0], in[1]));
        return Value();
      });
  };
  check([](at::Tensor x) { return x.add_(1); });  // input mutated
  check([](at::Tensor x) {
    x.add_(1);
    return x * 2;
  });  // F45
  check([](at::Tensor x) {
    auto y = x.clone();
    y[0].fill_(3);
    return y;
  });  // write through a view
  check([](at::Tensor x) {
    x.select(0, 1).mul_(x[2]);
    return x.sum(0);
  });
  check([](at::Tensor x) {
    auto y = x.view({-1});
    y.add_(1);
    return x + y.view({4, 4});
  });
  check([](at::Tensor x) {
    x.index_put_({torch::tensor({0, 2})}, torch::tensor(9.f));
    return x;
  });
  check([](at::Tensor x) { return x; });                                    // output is the input
  check([](at::Tensor x) { return std::make_tuple(x, x.view({16}), x); });  // outputs alias
  check([](at::Tensor x) {
    auto out = torch::empty({4, 4});
    torch::add_out(out, x, x);
    return out;
  });
  check([](at::Tensor x) {
    auto z = torch::zeros({4, 4});
    z += x;
    z.t().mul_(2);
    return z;
  });
  check([](at::Tensor x) {
    auto parts = torch::chunk(x, 2, 0);
    parts[0].add_(1);
    return torch::cat({parts[1], parts[0]}, 0) + x;
  });
  check([](at::Tensor x) {
    std::vector<at::Tensor> list{x, x + 1};
    at::_foreach_add_(list, 2.0);
    return list[0] * list[1];
  });
  check(
      [](at::Tensor x, at::Tensor y) {
        x.add_(y);
        return y - x;
      },
      2);
  check([](at::Tensor x) {
    at::NoGradGuard g;
    return x.detach().mul(2);
  });
  check([](at::Tensor x) { return torch::dropout(x, 0.5, true); });  // random, seeded
  check([](at::Tensor x) { return x + torch::rand({4, 4}); });
  check([](at::Tensor x) { return x.data().mul(2) + x; });  // alias behind the dispatcher
}

TEST(MakeFx, tensors_filled_through_pointers_become_constants) {
  auto program = [](at::Tensor x) {
    at::Tensor filled = torch::empty({3});
    auto values = filled.accessor<float, 1>();
    for (int i = 0; i < 3; ++i) values[i] = static_cast<float>(i);
    return x + torch::tensor({10.f, 20.f, 30.f}) + filled;
  };
  expect_replays(program, {randn({3})}, [&](auto& in) { return Value(program(in[0])); });
  auto gm = make_fx(program, {torch::zeros({3})});
  EXPECT_EQ(gm->graph().find_calls("aten::empty").size(), 1u)
      << "torch::tensor fills its memory by operators, the accessor does not: " << gm->graph();
  const auto* assumptions = gm->meta().get<Assumptions>("assumptions");
  ASSERT_NE(assumptions, nullptr);
  EXPECT_EQ(
      std::count_if(assumptions->begin(), assumptions->end(),
                    [](const Assumption& a) { return a.kind == Assumption::Kind::kConstant; }),
      1);
  EXPECT_FX_ERROR(make_fx(
                      [](at::Tensor x) {
                        at::Tensor memory = torch::empty({4});
                        at::Tensor view = memory.view({2, 2});
                        memory.data_ptr<float>()[0] = 1;
                        return x + view;
                      },
                      {torch::zeros({2, 2})}),
                  TraceError, kBadArgument, "through a pointer, outside of the dispatcher");
}

TEST(MakeFx, an_input_passed_twice_stays_two_inputs) {
  auto program = [](at::Tensor x, at::Tensor y) { return x - 2 * y; };
  const at::Tensor same = torch::ones({2});
  auto gm = make_fx(program, {same, same});
  EXPECT_TRUE(torch::equal((*gm)(torch::full({2}, 5.f), torch::full({2}, 1.f)).toTensor(),
                           torch::full({2}, 3.f)));
}

TEST(MakeFx, values_that_the_program_reads_are_assumptions) {
  auto program = [](at::Tensor x) { return x.sum().item<double>() > 0 ? x * 2 : -x; };
  auto gm = make_fx(program, {torch::ones({2})});
  const auto* assumptions = gm->meta().get<Assumptions>("assumptions");
  ASSERT_NE(assumptions, nullptr);
  std::string values;
  for (const Assumption& a : *assumptions)
    if (a.kind == Assumption::Kind::kValue) values += a.text;
  EXPECT_THAT(values, testing::HasSubstr("gave 2.0"));
  EXPECT_FX_ERROR(make_fx(program, {torch::ones({2})}, {.strict = true}), TraceError,
                  kConcreteValue, "the program read a value");
}

TEST(MakeFx, constants_from_outside_are_shared) {
  at::Tensor counter = torch::zeros({1});
  auto gm = make_fx([&](at::Tensor x) { return x + counter; }, {torch::ones({1})});
  counter.fill_(5);
  EXPECT_EQ((*gm)(torch::ones({1})).toTensor().item<double>(), 6);
  EXPECT_TRUE(gm->state_dict().empty());
}

TEST(MakeFx, gradients_flow_through_a_captured_graph) {
  ConvNet net;
  net->train();
  const at::Tensor x = torch::randn({4, 3, 8, 8});
  auto gm = make_fx(net, {x});
  auto gradients = [&](const std::function<at::Tensor()>& run) {
    net->zero_grad();
    run().square().sum().backward();
    std::vector<at::Tensor> out;
    for (const at::Tensor& p : net->parameters()) out.push_back(p.grad().clone());
    return out;
  };
  const auto expected = gradients([&] { return net->forward(x); });
  const auto replayed = gradients([&] { return (*gm)(x).toTensor(); });
  const auto interpreted = gradients([&] { return Interpreter(*gm).run({x}).toTensor(); });
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(torch::equal(replayed[i], expected[i])) << i;
    EXPECT_TRUE(torch::equal(interpreted[i], expected[i])) << i;
  }
}

TEST(MakeFx, exceptions_leave_no_state_behind) {
  auto failing = [](at::Tensor x) { return torch::matmul(x, torch::ones({7, 7})); };
  EXPECT_THROW(make_fx(failing, {torch::ones({2, 2})}), c10::Error);
  auto gm = make_fx([](at::Tensor x) { return x + 1; }, {torch::ones({2})});
  EXPECT_EQ(names(gm->graph()), (Names{"x", "add_scalar", "output"}));
  EXPECT_FX_ERROR(make_fx([](at::Tensor x) { return x; }, {torch::ones(1), torch::ones(1)}),
                  TraceError, kBadArgument, "does not take 2 tensors");
}

TEST(MakeFx, captures_on_many_threads_beside_eager_work) {
  auto program = [](at::Tensor x) { return torch::softmax(x.matmul(x.t()), -1).add_(1); };
  const std::string expected = make_fx(program, {torch::ones({3, 3})})->graph().str();
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 30; ++i)
        same += make_fx(program, {torch::randn({3, 3})})->graph().str() == expected;
    });
  for (int i = 0; i < 100; ++i) program(torch::randn({3, 3}));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 90);
}

}  // namespace
}  // namespace fx
