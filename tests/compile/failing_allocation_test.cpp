// Memory for tensors runs out, at the first, the second, ... request of a call: the call fails or
// gives the right result, and the next one is right, also in what it writes.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>

#include "fx/compile/compile.h"

namespace fx {
namespace {

// The allocator of CPU tensors while it lives, which fails at one request.
class FailingAllocator : public c10::Allocator {
 public:
  FailingAllocator() : real_(*c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 200); }
  ~FailingAllocator() override { c10::SetCPUAllocator(&real_, 200); }
  FailingAllocator(const FailingAllocator&) = delete;
  FailingAllocator& operator=(const FailingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override {
    if (left_-- == 0) TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory, as the test wants it");
    return real_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return real_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    real_.copy_data(to, from, bytes);
  }

  // The `number`th request from now on fails, once.
  void fail_at(std::int64_t number) { left_ = number; }
  void fail_never() { left_ = -1; }
  bool failed() const { return left_ < 0; }

 private:
  c10::Allocator& real_;
  std::atomic<std::int64_t> left_{-1};
};

struct Case {
  const char* name;
  at::Tensor (*program)(const at::Tensor&);
};

at::Tensor norms(const at::Tensor& x) {
  const at::Tensor y = torch::mm(torch::layer_norm(x, {x.size(1)}).tanh(), x.t());
  return torch::softmax(y * 0.5, -1).sum(0) + torch::cat({y, y.relu()}, 0).mean(0);
}

at::Tensor writes(const at::Tensor& x) {
  at::Tensor sum = torch::zeros_like(x);
  for (int i = 0; i < 3; ++i) {
    sum.add_(x.sigmoid(), i + 1);
    sum.select(0, i).mul_(0.5);
  }
  return torch::stack({sum.exp(), torch::mm(sum, sum.t()).mm(x)}, 0);
}

at::Tensor pictures(const at::Tensor& x) {
  const at::Tensor image = x.reshape({1, 1, x.size(0), x.size(1)});
  const at::Tensor weight = torch::ones({2, 1, 3, 3}) / 9;
  const at::Tensor y = torch::relu(torch::conv2d(image, weight, {}, 1, 1));
  return torch::max_pool2d(y, 2).mean({2, 3}) * torch::amax(y, {2, 3});
}

constexpr Case kCases[] = {{"norms", norms}, {"writes", writes}, {"pictures", pictures}};
constexpr std::pair<const char*, const char*> kWays[] = {{"interpret", "default"},
                                                         {"plan", "default"},
                                                         {"plan", "reduce-overhead"},
                                                         {"llvm", "default"},
                                                         {"llvm", "reduce-overhead"}};

at::Tensor input() { return torch::linspace(-1, 1, 24 * 20).reshape({24, 20}); }

bool right(const Value& found, const at::Tensor& wanted) {
  return torch::allclose(found.toTensor(), wanted, 1e-5, 1e-5);
}

// Calls `body` with a failure at each request in turn, until there are no more requests.
// `body` calls the model; `after` has to find it whole.
template <typename Body, typename After>
std::int64_t sweep(FailingAllocator& allocator, Body&& body, After&& after) {
  for (std::int64_t number = 0;; ++number) {
    allocator.fail_at(number);
    bool threw = false;
    try {
      body();
    } catch (const std::exception&) {
      threw = true;
    }
    const bool failed = allocator.failed();
    allocator.fail_never();
    EXPECT_TRUE(failed || !threw) << "something else threw";
    after();
    if (!failed || testing::Test::HasFailure()) return number;
  }
}

TEST(FailingAllocations, calls_fail_or_are_right_and_the_next_one_is_right) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = input();
  FailingAllocator allocator;
  for (const auto& [name, program] : kCases)
    for (const auto& [backend, mode] : kWays) {
      SCOPED_TRACE(std::string(name) + " " + backend + " " + mode);
      const at::Tensor wanted = program(x);
      const Compiled fast = compile([p = program](at::Tensor in) { return p(in); },
                                    {.backend = backend, .mode = mode});
      for (int call = 0; call < 3; ++call) fast(x);
      const std::int64_t requests = sweep(
          allocator, [&] { EXPECT_TRUE(right(fast(x), wanted)); },
          [&] { EXPECT_TRUE(right(fast(x), wanted)); });
      EXPECT_GT(requests, 0);
      if (HasFailure()) return;
    }
}

TEST(FailingAllocations, a_first_call_that_fails_leaves_the_next_one_to_compile) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = input();
  FailingAllocator allocator;
  for (const auto& [name, program] : kCases)
    for (const auto& [backend, mode] : {kWays[2], kWays[4]}) {
      SCOPED_TRACE(std::string(name) + " " + backend + " " + mode);
      const at::Tensor wanted = program(x);
      std::optional<Compiled> fast;
      const std::int64_t requests = sweep(
          allocator,
          [&] {
            fast = compile([p = program](at::Tensor in) { return p(in); },
                           {.backend = backend, .mode = mode});
            EXPECT_TRUE(right((*fast)(x), wanted));
          },
          [&] {
            EXPECT_TRUE(right((*fast)(x), wanted));
            EXPECT_EQ(fast->num_compilations(), 1);
          });
      EXPECT_GT(requests, 5);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace fx
