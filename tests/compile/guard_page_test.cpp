#include <gtest/gtest.h>
#include <sys/mman.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fx/compile/compile.h"
#include "tests/compile/eager_check.h"

// Kernels touch nothing outside of their tensors: inputs lie between pages that may not be read,
// once at the one and once at the other.
namespace fx {
namespace {

using Tensors = std::vector<at::Tensor>;
using Program = std::function<at::Tensor(const Tensors&)>;

enum class End : std::uint8_t { kFirst, kLast };

// A copy whose memory begins, or ends, at a page that may not be read.
at::Tensor beside_a_guard(const at::Tensor& tensor, End end) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = tensor.nbytes();
  const std::size_t inside = (bytes + page - 1) / page * page;
  const std::size_t all = inside + 2 * page;
  void* memory = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  auto* begin = static_cast<char*>(memory) + page;
  EXPECT_EQ(mprotect(begin, inside, PROT_READ | PROT_WRITE), 0);
  char* data = end == End::kFirst ? begin : begin + inside - bytes;
  at::Tensor out = at::from_blob(
      data, tensor.sizes(), [memory, all](void*) { munmap(memory, all); }, tensor.options());
  return out.copy_(tensor);
}

struct Case {
  const char* name;
  Tensors inputs;
  Program program;
};

std::vector<Case> cases() {
  const auto r = [](std::vector<std::int64_t> sizes) { return torch::randn(sizes); };
  return {
      {"pointwise", {r({5, 37})}, [](const Tensors& t) { return (t[0] * 2 + 1).tanh(); }},
      {"bytes",
       {torch::randint(200, {77}, torch::kByte)},
       [](const Tensors& t) { return (t[0] * 3 + 1).bitwise_and(15); }},
      {"halves of bfloat16",
       {r({3, 46}).to(torch::kBFloat16)},
       [](const Tensors& t) {
         const auto h = t[0].chunk(2, 1);
         return (h[0] * 2).relu() + h[1];
       }},
      {"columns", {r({4, 19})}, [](const Tensors& t) { return (t[0].t() * 2 + 1).exp(); }},
      {"softmax", {r({3, 35})}, [](const Tensors& t) { return t[0].softmax(-1) + 1; }},
      {"softmax of columns", {r({9, 21})}, [](const Tensors& t) { return t[0].softmax(0) + 1; }},
      {"concatenation",
       {r({3, 5}), r({3, 18})},
       [](const Tensors& t) { return torch::cat({t[0] + 1, t[1].exp(), t[0]}, 1) * 2; }},
      {"concatenation of rows",
       {r({2, 7}), r({5, 7})},
       [](const Tensors& t) { return torch::cat({t[0] + 1, t[1]}, 0).relu() * 2; }},
      {"padding",
       {r({4, 6})},
       [](const Tensors& t) { return torch::constant_pad_nd(t[0], {3, 17, 2, 1}, 1) * 2 + 1; }},
      {"padding of one row for all",
       {r({1, 6}), r({8, 26})},
       [](const Tensors& t) {
         return torch::constant_pad_nd(t[0].expand({8, 6}), {3, 17}, 1) * 2 + t[1];
       }},
      {"flip", {r({33})}, [](const Tensors& t) { return t[0].flip(0) * 2 + t[0]; }},
      {"strides",
       {r({50})},
       [](const Tensors& t) { return t[0].index({torch::indexing::Slice(1, 50, 3)}).exp() + 1; }},
      {"windows", {r({30})}, [](const Tensors& t) { return t[0].unfold(0, 4, 3) * 2 + 1; }},
      {"roll", {r({3, 20})}, [](const Tensors& t) { return t[0].roll({7}, {1}) * 2 + t[0]; }},
      {"rows by index",
       {r({6, 9}), torch::tensor({5L, 0L, -6L, -1L})},
       [](const Tensors& t) { return t[0].index({t[1]}) * 2 + 1; }},
      {"elements by index",
       {r({4, 6}), torch::randint(6, {4, 19})},
       [](const Tensors& t) { return t[0].gather(1, t[1]) * 2 + 1; }},
      {"embedding and norm",
       {r({5, 8}), torch::randint(5, {2, 3})},
       [](const Tensors& t) { return torch::layer_norm(torch::embedding(t[0], t[1]), {8}); }},
      {"group norm",
       {r({2, 6, 3, 5})},
       [](const Tensors& t) { return torch::group_norm(t[0], 3).relu() + 1; }},
      {"triangle", {r({2, 11, 11})}, [](const Tensors& t) { return t[0].tril() * 2 + 1; }},
  };
}

std::shared_ptr<GraphModule> capture(const Case& test) {
  const Program& program = test.program;
  if (test.inputs.size() == 1)
    return make_fx([&](const at::Tensor& a) { return program({a}); }, test.inputs);
  return make_fx([&](const at::Tensor& a, const at::Tensor& b) { return program({a, b}); },
                 test.inputs);
}

TEST(GuardPages, NothingOutsideIsTouched) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  for (const Case& test : cases()) {
    const Compiled fast = compile(capture(test));
    const at::Tensor wanted = test.program(test.inputs);
    fast(Values(test.inputs.begin(), test.inputs.end()));
    for (const End end : {End::kFirst, End::kLast}) {
      Values inputs;
      for (const at::Tensor& input : test.inputs) inputs.emplace_back(beside_a_guard(input, end));
      const at::Tensor found = fast(inputs).toTensor();
      EXPECT_EQ(loops::difference(found, wanted, false), "") << test.name;
    }
    EXPECT_GT(fast.num_kernel_codes(), 0u) << test.name << "\n" << fast.explain();
  }
}

}  // namespace
}  // namespace fx
