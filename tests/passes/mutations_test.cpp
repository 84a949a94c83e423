// Calls of functional graphs whose inputs or attributes share memory: what the program wrote early
// is written at the end, so that whatever reads the same memory would see the old contents.
#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/transformer.h"
#include "fx/passes/functionalize.h"
#include "fx/passes/split_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;

std::shared_ptr<GraphModule> writer(bool copy_back = true) {
  const auto program = [](Tensor x, Tensor y) {
    x.add_(1);
    return y * 2;
  };
  auto gm = make_fx(program, {torch::ones({3, 3}), torch::ones({3, 3})});
  functionalize(*gm, {torch::ones({3, 3}), torch::ones({3, 3})}, {.copy_back = copy_back});
  return gm;
}

// Pairs (x, y) that share memory in every way, in the order of the call.
std::vector<std::pair<Tensor, Tensor>> shared_pairs() {
  const Tensor one = torch::randn({3, 3}), rows = torch::randn({4, 3}), wide = torch::randn({3, 4});
  return {{one, one},
          {one, one.t()},
          {one, one.view({3, 3})},
          {one.t(), one.detach()},
          {one, one.diagonal().unsqueeze(0).expand({3, 3})},
          {rows.slice(0, 0, 3), rows.slice(0, 1, 4)},
          {rows.slice(0, 1, 4), rows.slice(0, 0, 3)},
          {wide.slice(1, 0, 3), wide.slice(1, 1, 4)}};
}

void expect_refused(const std::function<void()>& call) {
  EXPECT_FX_ERROR(call(), RunError, kSharedMemory, "input 'x' and input 'y' share memory");
}

TEST(Mutations, calls_with_shared_memory_are_refused_and_write_nothing) {
  for (const bool copy_back : {true, false}) {
    auto gm = writer(copy_back);
    for (const auto& [x, y] : shared_pairs()) {
      const Tensor before = x.clone();
      expect_refused([&] { (*gm)(x, y); });
      expect_refused([&] { Interpreter(*gm).run({x, y}); });
      expect_refused([&] { (*gm)(Values{x}, KwValues{{Symbol("y"), y}}); });
      EXPECT_TRUE(torch::equal(x, before));
    }
  }
}

TEST(Mutations, memory_that_is_only_next_to_the_other_is_no_fault) {
  auto gm = writer();
  const Tensor rows = torch::randn({6, 3}), before = rows.clone();
  const Tensor result = (*gm)(rows.slice(0, 0, 3), rows.slice(0, 3)).toTensor();
  EXPECT_TRUE(torch::equal(result, before.slice(0, 3) * 2));
  EXPECT_TRUE(torch::equal(rows.slice(0, 0, 3), before.slice(0, 0, 3) + 1));
  EXPECT_TRUE(torch::equal(rows.slice(0, 3), before.slice(0, 3)));
  // Neither is written: they may share what they like.
  auto reader =
      make_fx([](Tensor x, Tensor y) { return x + y; }, {torch::ones({3, 3}), torch::ones({3, 3})});
  functionalize(*reader, {torch::ones({3, 3}), torch::ones({3, 3})});
  EXPECT_TRUE(reader->mutations().empty());
  EXPECT_NO_THROW((*reader)(before.slice(0, 3), before.slice(0, 3)));
}

TEST(Mutations, modules_made_from_a_functional_one_are_checked_too) {
  const Tensor x = torch::randn({3, 3});
  auto gm = writer();
  expect_refused([&] { (*gm->deep_copy())(x, x); });
  expect_refused([&] { GraphModule(*gm, gm->graph().clone())(x, x); });
  expect_refused([&] { (*Transformer(*gm).transform())(x, x); });
  expect_refused([&] { (*split_module(*gm, [](const Node&) { return 0; }))(x, x); });
  gm->set_input_guards({});  // other sizes
  expect_refused([&] { (*gm)(torch::ones({2}), torch::ones({2})), (*gm)(x[0], x[0]); });
}

struct Counter : torch::nn::Module {
  Counter() { total = register_buffer("total", torch::zeros({3})); }
  Tensor forward(const Tensor& x) {
    total.add_(x);
    return x + total;
  }
  Tensor total;
};

TEST(Mutations, attributes_count) {
  const torch::NoGradGuard no_grad;
  auto net = std::make_shared<Counter>();
  auto gm = make_fx(net, {torch::ones({3})});
  functionalize(*gm, {torch::ones({3})});
  EXPECT_EQ(gm->mutations(), (std::vector<std::string>{"total"}));
  EXPECT_FX_ERROR((*gm)(net->total), RunError, kSharedMemory,
                  "attribute 'total' and input 'x' share memory");
  net->total.zero_();
  EXPECT_TRUE(torch::equal((*gm)(torch::ones({3})).toTensor(), torch::full({3}, 2.)));

  // An input that is written, and an attribute that is read.
  auto other = make_fx(
      [net](Tensor x) {
        x.mul_(2);
        return x + net->total;
      },
      {torch::ones({3})});
  functionalize(*other, {torch::ones({3})});
  EXPECT_EQ(other->mutations().size(), 1u);
  EXPECT_FX_ERROR((*other)(net->total), RunError, kSharedMemory, "share memory");
}

}  // namespace
}  // namespace fx
