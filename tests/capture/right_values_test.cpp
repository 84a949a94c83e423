// What captures of unmodified C++ code must get right, one test for each kind: the graph gives on
// new inputs what the program gives, or says why not, with the line and the way out.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "fx/capture/captured.h"
#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/value_tensors.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
// Of two tensors; gives tensors.
using Program = std::function<Tensors(Tensor, Tensor)>;

Tensors tensors_in(const Value& value) {
  Tensors out;
  for_each_tensor(value, [&](const Tensor& tensor) { out.push_back(tensor); });
  return out;
}

void expect_equal(const Tensors& found, const Tensors& expected, const Graph& graph) {
  ASSERT_EQ(found.size(), expected.size()) << graph;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type());
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 0, 0, true)) << i << "\n" << graph;
  }
}

// Replays on new inputs, by both ways, three times: results, what was written, random numbers.
void expect_right(const Program& program) {
  auto gm = make_fx(program, {torch::randn({4, 4}), torch::randn({4, 4})});
  gm->graph().lint({.strict = true});
  for (int call = 0; call < 3; ++call) {
    const Tensor x = torch::randn({4, 4}), y = torch::randn({4, 4});
    const auto run = [&](const std::function<Tensors(Tensor, Tensor)>& what) {
      Tensor a = x.clone(), b = y.clone();
      torch::manual_seed(call);
      Tensors out = what(a, b);
      out.insert(out.end(), {a, b, torch::rand({1})});
      return out;
    };
    const Tensors expected = run(program);
    expect_equal(run([&](Tensor a, Tensor b) { return tensors_in((*gm)(a, b)); }), expected,
                 gm->graph());
    expect_equal(run([&](Tensor a, Tensor b) { return tensors_in(Interpreter(*gm).run({a, b})); }),
                 expected, gm->graph());
  }
}

TEST(RightValues, in_place_operators) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    x.add_(y).relu_();
    y *= 2;
    return {x * 1, y.clone().zero_(), (x.t().mul_(3) + 1).sqrt_()};
  });
}

TEST(RightValues, writes_through_views) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor z = x.clone();
    z[1].fill_(5);
    z.t().select(0, 2).copy_(y[0]);
    z.view({2, 8}).slice(1, 0, 8, 3).mul_(2);
    z.diagonal().add_(y.diagonal());
    x.slice(0, 1, 3).zero_();
    return {z, z.sum(0)};
  });
}

TEST(RightValues, index_put) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor z = torch::zeros({4, 4});
    z.index_put_({torch::tensor({0, 2}), torch::tensor({1, 3})}, y[0].slice(0, 0, 2));
    z.index_put_({torch::tensor({1, 1})}, x.slice(0, 0, 2), /*accumulate=*/true);
    x.index_put_({x > 0}, -1);
    z[3] = y[1];
    return {z};
  });
}

TEST(RightValues, out_arguments) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor sum = torch::empty({4, 4}), product = torch::empty({0});
    at::add_out(sum, x, y);
    at::mm_out(product, x, y);
    at::mul_out(x, x, sum);
    Tensor values = torch::empty({4}), indices = torch::empty({4}, at::kLong);
    at::max_out(values, indices, sum, 1);
    return {sum, product, values, indices};
  });
}

TEST(RightValues, lists_that_are_mutated) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensors list{x, y.clone(), x + y};
    at::_foreach_mul_(list, 2.0);
    at::_foreach_add_(list, Tensors{y.clone(), x.clone(), x.clone()});
    list[1].add_(1);
    list.push_back(torch::stack(list).sum(0));
    return list;
  });
}

TEST(RightValues, aliased_and_repeated_inputs) {
  const auto program = [](Tensor x, Tensor y) {
    x.add_(1);
    return y * 2;
  };
  const auto expect_eager = [&](const std::function<std::pair<Tensor, Tensor>()>& inputs) {
    auto [a, b] = inputs();
    auto gm = make_fx(program, {a, b});
    auto [c, d] = inputs();
    auto [e, f] = inputs();
    EXPECT_TRUE(torch::equal((*gm)(c, d).toTensor(), program(e, f))) << gm->graph();
    EXPECT_TRUE(torch::equal(c, e));
    EXPECT_TRUE(torch::equal(d, f));
  };
  expect_eager([] {
    const Tensor x = torch::arange(4.);
    return std::pair(x, x);
  });
  expect_eager([] {
    const Tensor x = torch::arange(8.);
    return std::pair(x.slice(0, 0, 4), x.slice(0, 2, 6));
  });
  expect_eager([] { return std::pair(torch::arange(4.), torch::arange(4.)); });
}

TEST(RightValues, outputs_that_alias_inputs) {
  const auto program = [](Tensor x, Tensor y) { return Tensors{x, x.t(), y[0], x.view({-1})}; };
  auto gm = make_fx(program, {torch::randn({4, 4}), torch::randn({4, 4})});
  const Tensor x = torch::randn({4, 4}), y = torch::randn({4, 4});
  const Tensors found = tensors_in((*gm)(x, y)), expected = program(x, y);
  expect_equal(found, expected, gm->graph());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].data_ptr(), expected[i].data_ptr()) << i;
    EXPECT_EQ(found[i].strides(), expected[i].strides()) << i;
  }
}

TEST(RightValues, buffers_updated_in_training) {
  torch::nn::BatchNorm1d net(4), eager(4);
  auto gm = make_fx(net, {torch::randn({4, 4})});
  net->reset_running_stats();
  for (int step = 0; step < 3; ++step) {
    const Tensor x = torch::randn({5 - 1, 4});
    EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), eager(x)));
    EXPECT_TRUE(torch::equal(net->running_mean, eager->running_mean));
    EXPECT_TRUE(torch::equal(net->running_var, eager->running_var));
    EXPECT_EQ(net->num_batches_tracked.item<int>(), step + 1);
  }
}

TEST(RightValues, tensors_made_inside) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    const Tensor grid = torch::arange(4.).unsqueeze(1) * torch::ones({4});
    Tensor sum = torch::zeros_like(x);
    for (int i = 0; i < 3; ++i) sum += x * i;
    const Tensor numbers = torch::tensor({1.f, 2.f, 3.f, 4.f});
    return {sum + grid, torch::full({2}, 7) + y.sum(), numbers * x, torch::eye(4).mm(y)};
  });
}

TEST(RightValues, constants_that_are_written) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor counts = torch::tensor({1.f, 2.f, 3.f, 4.f});  // filled through a pointer
    counts.add_(x[0]);
    return {counts * y};
  });
  // What stands outside is the program's state: written in each call, as eager does.
  Tensor state = torch::zeros({4}), twin = torch::zeros({4});
  const auto program = [](Tensor into) {
    return [into](Tensor x) mutable { return into.add_(x).clone(); };
  };
  auto gm = make_fx(program(state), {torch::zeros({4})});
  auto eager = program(twin);
  for (int call = 0; call < 3; ++call)
    EXPECT_TRUE(torch::equal((*gm)(torch::ones({4})).toTensor(), eager(torch::ones({4}))));
  EXPECT_TRUE(torch::equal(state, twin));
}

TEST(RightValues, random_numbers) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor noise = torch::randn_like(x);
    return {torch::dropout(x, 0.5, true),        noise.uniform_() + y,
            torch::bernoulli(x.sigmoid()),       torch::randperm(4),
            torch::multinomial(y.softmax(1), 2), torch::rand({2, 2}).t().bernoulli_(0.5)};
  });
}

TEST(RightValues, no_grad_guard) {
  const auto program = [](Tensor x) {
    Tensor scale;
    {
      const torch::NoGradGuard no_grad;
      scale = x.abs().max() * x.mean();
    }
    return x / scale;
  };
  auto gm = make_fx(program, {torch::rand({3}).requires_grad_()});
  const Tensor x = torch::rand({3}).requires_grad_();
  EXPECT_TRUE(torch::equal(torch::autograd::grad({(*gm)(x).toTensor().sum()}, {x})[0],
                           torch::autograd::grad({program(x).sum()}, {x})[0]));
}

TEST(RightValues, autocast) {
  const auto program = [](Tensor x, Tensor y) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    const Tensor z = x.mm(y);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return Tensors{z, z.softmax(1) + x};
  };
  expect_right(program);
  EXPECT_EQ(program(torch::ones({4, 4}), torch::ones({4, 4}))[0].scalar_type(), at::kBFloat16);
}

TEST(RightValues, detach) {
  const auto program = [](Tensor x) { return x * x.detach() + x.data() * 2; };
  auto gm = make_fx(program, {torch::rand({3}).requires_grad_()});
  const Tensor x = torch::rand({3}).requires_grad_();
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x)));
  EXPECT_TRUE(torch::equal(torch::autograd::grad({(*gm)(x).toTensor().sum()}, {x})[0], x.detach()));
}

TEST(RightValues, values_whose_memory_another_tensor_has) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor z = x * 2, w = y + 1;
    z.set_data(w);
    w.mul_(3);
    return {z * 5, w - x};
  });
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor z = x * 2;
    z.set_data(torch::ones({4, 4}));
    z.set_data((x + y).t());
    return {z * 5, z.t() + y};
  });
  // What made the value is gone when it is used.
  expect_right([](Tensor x, Tensor y) -> Tensors {
    Tensor z = x.exp().data(), w = z;
    for (int i = 0; i < 3; ++i) w = (w * y).variable_data();
    return {z + w, w.add_(1), z.mul_(2)};
  });
  const auto keeps_no_gradient = [](Tensor x) { return (x * x).data() * x; };
  auto gm = make_fx(keeps_no_gradient, {torch::rand({3}).requires_grad_()});
  const Tensor x = torch::rand({3}).requires_grad_();
  EXPECT_TRUE(
      torch::equal(torch::autograd::grad({(*gm)(x).toTensor().sum()}, {x})[0], (x * x).detach()));
  EXPECT_FX_ERROR(make_fx(
                      [](Tensor a, Tensor b) {
                        a.set_data(b * 2);
                        return a + 1;
                      },
                      {torch::ones({2}), torch::ones({2})}),
                  TraceError, kBadArgument, "gave other memory to an input");
}

TEST(RightValues, composite_operators_that_use_pointers_below_autograd) {
  const torch::NoGradGuard no_grad;
  MakeFxOptions below;
  below.pre_dispatch = false;
  const auto pool = [](Tensor x) { return torch::max_pool1d(x * 2, 3, 2, 1); };
  auto gm = make_fx(pool, {torch::randn({2, 3, 9})}, below);
  const Tensor x = torch::randn({2, 3, 9});
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), pool(x))) << gm->graph();
  // What they read is checked.
  const auto loss = [](Tensor log, Tensor lengths) {
    return torch::ctc_loss(log, torch::tensor({{1, 2}, {2, 1}}), lengths, torch::tensor({2, 2}));
  };
  const Tensor log = torch::randn({6, 2, 4}).log_softmax(2), lengths = torch::tensor({6, 5});
  gm = make_fx(loss, {log, lengths}, below);
  EXPECT_TRUE(torch::allclose((*gm)(log, lengths).toTensor(), loss(log, lengths)));
  EXPECT_FX_ERROR((*gm)(log, torch::tensor({5, 5})), RunError, kNodeFailed,
                  "the program read a value");
  const auto split = [](Tensor x, Tensor at) { return x.tensor_split(at)[0] + 1; };
  gm = make_fx(split, {torch::randn({6}), torch::tensor({2, 4})}, below);
  EXPECT_FX_ERROR((*gm)(torch::randn({6}), torch::tensor({3, 4})), RunError, kNodeFailed,
                  "the program read a value");
}

TEST(RightValues, values_live_as_long_as_in_the_program) {
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> made;
  const auto program = [&](Tensor x) {
    for (int i = 0; i < 8; ++i) {
      x = torch::cat({x, x * 2}).slice(0, 0, 100) + 1;
      made.push_back(x.storage().getWeakStorageImpl());
      // The one before it, and what lay between the two.
      EXPECT_EQ(made.size() > 1 && !made[made.size() - 2].expired(), false) << i;
    }
    return x;
  };
  const Tensor x = torch::rand({100});
  auto gm = make_fx(program, {x});
  made.clear();
  EXPECT_TRUE(torch::equal((*gm)(x).toTensor(), program(x)));
}

TEST(RightValues, lists_of_chunks) {
  expect_right([](Tensor x, Tensor y) -> Tensors {
    auto parts = x.chunk(2, 1);
    const auto rows = torch::unbind(y);
    parts[0].add_(1);
    const auto split = torch::split(y, 3);
    return {torch::cat({parts[1], parts[0]}, 1), rows[3] * rows[0], split[1] + split[0][0]};
  });
}

TEST(RightValues, optional_and_scalar_results) {
  const auto program = [](Tensor x) {
    return std::make_tuple(x * 2, std::int64_t{3}, 2.5, true, Tensor(), std::optional<Tensor>(),
                           std::optional<Tensor>(x + 1));
  };
  auto gm = make_fx(program, {torch::ones({2})});
  const Values found = elements((*gm)(torch::full({2}, 4.f)));
  ASSERT_EQ(found.size(), 7u);
  EXPECT_TRUE(torch::equal(found[0].toTensor(), torch::full({2}, 8.f)));
  EXPECT_EQ(found[1].toInt(), 3);
  EXPECT_EQ(found[2].toDouble(), 2.5);
  EXPECT_TRUE(found[3].toBool());
  EXPECT_TRUE(found[4].isNone() || !found[4].toTensor().defined());
  EXPECT_TRUE(found[5].isNone());
  EXPECT_TRUE(torch::equal(found[6].toTensor(), torch::full({2}, 5.f)));
}

// A call that would break what the graph takes for granted throws, and says where and what to do;
// a capture with guards goes the other way.
void expect_checked(const std::function<Tensor(Tensor)>& program, const Tensor& example,
                    const Tensor& other) {
  auto gm = make_fx(program, {example.clone()});
  EXPECT_TRUE(torch::equal((*gm)(example.clone()).toTensor(), program(example.clone())));
  EXPECT_FX_ERROR((*gm)(other.clone()), RunError, kNodeFailed, "Capture again for such inputs");
  std::string lines;
  for (const Assumption& each : *gm->meta().get<Assumptions>("assumptions"))
    if (each.kind == Assumption::Kind::kValue) lines += each.where.source();
  EXPECT_THAT(lines, testing::HasSubstr("right_values_test.cpp:"));
  EXPECT_FX_ERROR(make_fx(program, {example.clone()}, {.strict = true}), TraceError, kConcreteValue,
                  "right_values_test.cpp:");
  Captured captured = capture_with_guards(program);
  for (const Tensor& x : {example, other, example, other})
    EXPECT_TRUE(torch::equal(captured(x.clone()).toTensor(), program(x.clone())));
  EXPECT_EQ(captured.graphs().size(), 2u);
}

TEST(RightValues, item) {
  expect_checked([](Tensor x) { return x * x.max().item<float>(); }, torch::tensor({1.f, 2.f}),
                 torch::tensor({1.f, 3.f}));
}

TEST(RightValues, equal) {
  expect_checked([](Tensor x) { return torch::equal(x, x.abs()) ? x * 2 : x * 3; },
                 torch::tensor({1.f, 2.f}), torch::tensor({1.f, -3.f}));
}

TEST(RightValues, data_dependent_branches) {
  expect_checked([](Tensor x) { return (x > 1).any().item<bool>() ? x.sin() : x.cos(); },
                 torch::tensor({1.f, 2.f}), torch::tensor({1.f, -3.f}));
  expect_checked(
      [](Tensor x) {
        while (x.sum().item<float>() < 8) x = x * 2;
        return x;
      },
      torch::tensor({1.f, 2.f}), torch::tensor({1.f, 0.f}));
}

TEST(RightValues, sizes_of_values) {
  expect_checked([](Tensor x) { return x.masked_select(x > 0) / (x > 0).nonzero().size(0); },
                 torch::tensor({1.f, 2.f, 3.f}), torch::tensor({1.f, -3.f, 2.f}));
}

TEST(RightValues, shape_reads) {
  const auto program = [](Tensor x) { return x.size(0) > 2 ? x.sum(0) * x.size(1) : x.mean(1); };
  auto gm = make_fx(program, {torch::ones({2, 3})});
  EXPECT_TRUE(
      torch::equal((*gm)(torch::full({2, 3}, 2.f)).toTensor(), program(torch::full({2, 3}, 2.f))));
  EXPECT_FX_ERROR((*gm)(torch::ones({3, 3})), RunError, kShapeMismatch, "dimension 0 must be 2");
  Captured captured = capture_with_guards(program);
  for (const std::int64_t rows : {2, 3, 2, 4})
    EXPECT_TRUE(
        torch::equal(captured(torch::ones({rows, 3})).toTensor(), program(torch::ones({rows, 3}))));
}

}  // namespace
}  // namespace fx
