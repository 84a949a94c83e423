// Sizes that depend on values: a graph hands them on, or checks those that the program looked at.
#include <torch/torch.h>

#include <functional>

#include "fx/capture/captured.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using Program = std::function<Tensor(Tensor)>;
namespace idx = torch::indexing;

// A tensor of ten numbers of which `count` are positive.
Tensor positive(std::int64_t count) {
  torch::manual_seed(count);
  return torch::cat({torch::rand({count}) + 0.1, -torch::rand({10 - count}) - 0.1})
      .index_select(0, torch::randperm(10));
}

std::size_t checks(const GraphModule& module) {
  return module.graph().find_calls("torch._assert").size();
}

// For all numbers of items the graph gives what the program gives, or throws, where it may.
void expect_right(const std::string& name, const Program& program, std::int64_t example,
                  const std::vector<std::int64_t>& right) {
  SCOPED_TRACE(name);
  auto gm = make_fx(program, {positive(example)});
  gm->graph().lint({.strict = true});
  for (std::int64_t count = 0; count <= 10; ++count) {
    const Tensor x = positive(count);
    const bool must_hold = std::ranges::find(right, count) != right.end();
    Tensor found;
    try {
      found = (*gm)(x.clone()).toTensor();
      EXPECT_TRUE(torch::equal(Interpreter(*gm).run({x.clone()}).toTensor(), found));
    } catch (const std::exception& error) {
      EXPECT_FALSE(must_hold) << count << ": " << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr("looks at a size that depends on values"));
      EXPECT_THAT(error.what(), testing::HasSubstr("value_sizes_test.cpp:"));
      EXPECT_THAT(error.what(), testing::HasSubstr("fx::capture_with_guards"));
      continue;
    }
    EXPECT_TRUE(torch::equal(found, program(x))) << count << "\n" << gm->graph();
  }
}

std::vector<std::int64_t> from(std::int64_t least) {
  std::vector<std::int64_t> out;
  for (; least <= 10; ++least) out.push_back(least);
  return out;
}

TEST(ValueSizes, that_are_handed_on_need_no_check) {
  const std::vector<std::pair<const char*, Program>> programs = {
      {"nonzero", [](Tensor x) { return (x > 0).nonzero() * 2; }},
      {"argwhere", [](Tensor x) { return torch::argwhere(x > 0) + 1; }},
      {"masked_select", [](Tensor x) { return x.masked_select(x > 0).exp(); }},
      {"mask", [](Tensor x) { return x.index({x > 0}).sin(); }},
      {"two masks",
       [](Tensor x) {
         Tensor y = x.unsqueeze(1).expand({10, 10}).clone();
         return y.index({(y > 0).logical_and(y.t() > 0)}).sum();
       }},
      {"mask among indices",
       [](Tensor x) {
         Tensor y = torch::arange(30.).view({10, 3});
         return y.index({x > 0, idx::Slice(1, idx::None)}) + 1;
       }},
      {"indices and write",
       [](Tensor x) {
         const Tensor rows = (x > 0).nonzero().squeeze(1);
         return torch::zeros({10}).index_put({rows}, x.index_select(0, rows));
       }},
      {"where", [](Tensor x) { return torch::where(x > 0)[0] * 2; }},
      {"unique", [](Tensor x) { return std::get<0>(at::_unique2((x > 0).to(at::kInt))); }},
      {"repeat_interleave",
       [](Tensor x) { return torch::repeat_interleave((x > 0).to(at::kLong)); }},
      {"bincount", [](Tensor x) { return torch::bincount((x > 0).to(at::kLong)); }},
      {"one_hot", [](Tensor x) { return torch::one_hot((x > 0).sum().view({1})).sum(); }},
      {"append",
       [](Tensor x) { return torch::cat({x.masked_select(x > 0), torch::ones({1})}).cumsum(0); }},
  };
  for (const auto& [name, program] : programs) {
    expect_right(name, program, 4, from(0));
    EXPECT_EQ(checks(*make_fx(program, {positive(4)})), 0u) << name;
  }
}

TEST(ValueSizes, that_the_program_looks_at_are_checked) {
  expect_right("size as a number",
               [](Tensor x) {
                 const Tensor y = x.masked_select(x > 0);
                 return y * static_cast<double>(y.size(0));
               },
               4, {4});
  expect_right("mean by hand",
               [](Tensor x) {
                 const Tensor y = x.index({x > 0});
                 return y.sum() / y.numel();
               },
               4, {4});
  expect_right("a loop",
               [](Tensor x) {
                 const Tensor y = (x > 0).nonzero();
                 Tensor sum = torch::zeros({});
                 for (std::int64_t i = 0; i < y.size(0); ++i)
                   sum = sum * 2 + x[y[i].item<std::int64_t>()];
                 return sum;
               },
               0, {0});
  expect_right("unique classes",
               [](Tensor x) {
                 const Tensor classes =
                     std::get<0>(at::_unique2((x > 0).to(at::kInt) + (x > 0.5).to(at::kInt)));
                 return torch::zeros({classes.size(0)}) + 1;
               },
               0, {0});
  expect_right("tensor of that size",
               [](Tensor x) {
                 const Tensor y = x.masked_select(x > 0);
                 return torch::ones({y.size(0), 2}) * y.unsqueeze(1);
               },
               4, {4});
  expect_right("masks that complete each other",
               [](Tensor x) {
                 return torch::cat({x.masked_select(x > 0), x.masked_select(x <= 0)}).view({2, 5});
               },
               4, {4});
}

TEST(ValueSizes, least_number_of_items) {
  // Nothing selected goes another way.
  expect_right(
      "early return",
      [](Tensor x) {
        const Tensor y = x.masked_select(x > 0);
        return y.numel() == 0 ? torch::full({1}, -1.) : y * 2;
      },
      4, from(1));
  // One item, too.
  expect_right(
      "at least two",
      [](Tensor x) {
        const Tensor y = x.masked_select(x > 0);
        return y.numel() < 2 ? torch::full({1}, -1.) : y.std() * 2;
      },
      4, from(2));
  // LibTorch's index_put_ makes a number of one item.
  expect_right(
      "mask and write",
      [](Tensor x) {
        Tensor y = torch::zeros({10});
        y.index_put_({x > 0}, x.index({x > 0}) * 3);
        return y;
      },
      4, from(2));
  expect_right(
      "at least three",
      [](Tensor x) {
        const Tensor y = x.masked_select(x > 0);
        return y.numel() < 3 ? torch::full({1}, -1.) : y.std() * 2;
      },
      4, from(4));
}

TEST(ValueSizes, integers_as_indices_are_no_assumption) {
  auto of_values = [](const Program& program) {
    std::size_t count = 0;
    auto gm = make_fx(program, {torch::rand({10})}, {.strict = false});
    for (const Assumption& each : *gm->meta().get<Assumptions>("assumptions"))
      count += each.kind == Assumption::Kind::kValue;
    return count;
  };
  EXPECT_EQ(of_values([](Tensor x) { return x.index({torch::tensor({1, 3})}); }), 0u);
  EXPECT_EQ(of_values([](Tensor x) { return x.index({torch::tensor({1, 3}, at::kInt)}); }), 0u);
  EXPECT_EQ(of_values([](Tensor x) { return x.index({x > 0.5}); }), 1u);
  EXPECT_NO_THROW(make_fx([](Tensor x) { return x.index({torch::tensor({1, 3})}); },
                          {torch::rand({10})}, {.strict = true}));
}

TEST(ValueSizes, captures_with_guards_go_the_other_way) {
  int runs = 0;
  auto program = [&runs](Tensor x) {
    ++runs;
    const Tensor y = x.masked_select(x > 0);
    return y.numel() == 0 ? torch::full({1}, -1.) : y * 2;
  };
  Captured captured = capture_with_guards(program);
  for (int round = 0; round < 2; ++round)
    for (const std::int64_t count : {4, 0, 7, 1, 0, 10})
      EXPECT_TRUE(torch::equal(captured(positive(count)).toTensor(), program(positive(count))));
  EXPECT_EQ(captured.graphs().size(), 2u);
}

TEST(ValueSizes, finding_out_leaves_no_trace) {
  torch::nn::BatchNorm1d norm(1), other(1);
  const Tensor x = positive(4), same = positive(4);
  struct Holder : torch::nn::Module {
    explicit Holder(torch::nn::BatchNorm1d part) : norm(register_module("norm", part)) {}
    Tensor forward(Tensor x) {
      const Tensor y = x.masked_select(x > 0).unsqueeze(1);
      x.add_(1);
      return norm(y) + torch::rand_like(y) + y.size(0);
    }
    torch::nn::BatchNorm1d norm;
  };
  auto captured = std::make_shared<Holder>(norm), eager = std::make_shared<Holder>(other);
  torch::manual_seed(3);
  make_fx(captured, {x});
  const Tensor next = torch::rand({1});
  torch::manual_seed(3);
  eager->forward(same);
  EXPECT_TRUE(torch::equal(torch::rand({1}), next));
  EXPECT_TRUE(torch::equal(x, same)) << "written by one run";
  EXPECT_TRUE(torch::equal(norm->running_mean, other->running_mean));
  EXPECT_EQ(norm->num_batches_tracked.item<int>(), 1);
}

TEST(ValueSizes, below_autograd_are_checked) {
  const Program program = [](Tensor x) { return x.masked_select(x > 0) * 2; };
  auto gm = make_fx(program, {positive(4)}, {.pre_dispatch = false});
  EXPECT_TRUE(torch::equal((*gm)(positive(4)).toTensor(), program(positive(4))));
  EXPECT_FX_ERROR((*gm)(positive(5)), RunError, kNodeFailed,
                  "looks at a size that depends on values");
  gm = make_fx(program, {positive(4)}, {.guard_values = false});
  EXPECT_EQ(checks(*gm), 0u);
}

}  // namespace
}  // namespace fx
