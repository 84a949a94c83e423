// In-place operators that became functional ones: a compiled graph serves calls with other dtypes
// and ranks than those it was compiled with as eager does, errors included.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/compile/compile.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"

namespace fx {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Values copies(const Tensors& tensors) {
  Values out;
  for (const Tensor& tensor : tensors) out.push_back(tensor.clone());
  return out;
}

// The result, or undefined where the call is refused.
template <typename Run>
Tensor result_of(Run&& run) {
  try {
    return run().toTensor();
  } catch (const std::exception&) {
    return {};
  }
}

std::shared_ptr<GraphModule> writing(const std::string& call) {
  return std::make_shared<GraphModule>(
      parse_text("fx 1\n%x = placeholder[target=x]\n%z = placeholder[target=z]\n"
                 "%a = call_function[target=aten::mul.Scalar](args = (%x, 2))\n"
                 "%b = call_function[target=" +
                 call +
                 "\n%c = call_function[target=aten::add.Scalar](args = (%b, 3))\n"
                 "%d = call_function[target=aten::abs](args = (%c,))\nreturn %d\n"));
}

TEST(UndoInplace, memory_keeps_its_dtype_and_size) {
  const std::vector<Tensors> calls = {
      {torch::rand({64}), torch::rand({64})},
      {torch::rand({64}), torch::rand({64}, at::kDouble)},
      {torch::rand({64}, at::kHalf), torch::rand({64})},
      {torch::rand({64}).to(at::kBFloat16), torch::rand({64}, at::kHalf)},
      {torch::randint(1, 4, {64}), torch::rand({64})},
      {torch::randint(1, 4, {64}, at::kInt), torch::randint(1, 4, {64})},
      {torch::rand({64}), torch::rand({2, 64})},
      {torch::rand({1, 64}), torch::rand({2, 64})},
      {torch::rand({2, 64}), torch::rand({64})},
      {torch::rand({3, 64}), torch::rand({3, 1})},
      {torch::rand({1}), torch::rand({7})},
      {torch::rand({7}), torch::rand({1})},
      {torch::rand({5}), torch::rand({})},
      {torch::rand({90}), torch::rand({90})}};
  for (const char* call :
       {"aten::add_.Tensor](args = (%a, %z))", "aten::mul_.Tensor](args = (%a, %z))",
        "aten::div_.Tensor](args = (%a, %z))", "aten::sub_.Tensor](args = (%a, %z))",
        "aten::pow_.Tensor](args = (%a, %z))", "aten::pow_.Scalar](args = (%a, 2))",
        "aten::addcmul_](args = (%a, %z, %z))", "aten::mul_.Scalar](args = (%a, 2.5))",
        "aten::clamp_](args = (%a, 0.25, 0.75))", "aten::exp_](args = (%a,))"}) {
    const auto module = writing(call);
    // Each of the calls is the first one once.
    for (std::size_t first = 0; first < calls.size(); ++first) {
      const Compiled compiled = compile(module);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const Tensors& inputs = calls[(first + i) % calls.size()];
        const Tensor wanted = result_of([&] { return Interpreter(module).run(copies(inputs)); });
        const Tensor found = result_of([&] { return compiled(copies(inputs)); });
        ASSERT_EQ(found.defined(), wanted.defined()) << call << " " << first << " " << i;
        if (!wanted.defined()) continue;
        EXPECT_EQ(found.scalar_type(), wanted.scalar_type()) << call << " " << first << " " << i;
        EXPECT_EQ(found.sizes(), wanted.sizes());
        const double tolerance = wanted.element_size() == 2 ? 1e-2 : 1e-5;
        EXPECT_TRUE(torch::allclose(found, wanted, tolerance, tolerance))
            << call << found << wanted;
      }
      EXPECT_LE(compiled.num_compilations(), calls.size());
    }
  }
}

TEST(UndoInplace, attributes_may_change_their_dtype) {
  auto module = std::make_shared<GraphModule>(
      parse_text("fx 1\n%x = placeholder[target=x]\n%w = get_attr[target=w]\n"
                 "%a = call_function[target=aten::mul.Scalar](args = (%x, 2))\n"
                 "%b = call_function[target=aten::add_.Tensor](args = (%a, %w))\n"
                 "%d = call_function[target=aten::abs](args = (%b,))\nreturn %d\n"));
  Tensor w = torch::rand({8});
  module->set_constant("w", w);
  module->recompile();
  const Compiled compiled = compile(module);
  const Tensor x = torch::rand({8});
  EXPECT_EQ(compiled({x}).toTensor().scalar_type(), at::kFloat);
  w.set_data(w.to(at::kDouble));
  EXPECT_EQ(compiled({x}).toTensor().scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::allclose(compiled({x}).toTensor(), (x * 2 + w).abs().to(at::kFloat)));
}

}  // namespace
}  // namespace fx
