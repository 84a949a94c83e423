// Torch functions and methods with the signatures that Python gives them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fx/base/error.h"
#include "fx/ops/call.h"

namespace fx {
namespace {

Value run(std::string_view name, Values args, KwValues kwargs = {}) {
  return call(*Function::get(name), std::move(args), std::move(kwargs));
}

KwValue key(std::string_view name, Value value) { return {Symbol(name), std::move(value)}; }

TEST(PythonCalls, MethodsPutTheirTensorWhereTheSchemaHasIt) {
  const at::Tensor x = at::rand({3}) + 1;
  const at::Tensor other = at::rand({3});
  const at::Tensor condition = other > 0.5;
  const at::Tensor gamma = at::polygamma(2, x);
  EXPECT_TRUE(at::equal(call_method("polygamma", {x, 2}).toTensor(), gamma));
  EXPECT_TRUE(at::equal(call_method("polygamma", {x}, {key("n", 2)}).toTensor(), gamma));
  const at::Tensor chosen = at::where(condition, x, other);
  EXPECT_TRUE(at::equal(call_method("where", {x, condition, other}).toTensor(), chosen));
  EXPECT_TRUE(
      at::equal(call_method("where", {x, condition}, {key("other", other)}).toTensor(), chosen));
  EXPECT_TRUE(at::equal(
      call_method("where", {x}, {key("other", other), key("condition", condition)}).toTensor(),
      chosen));
  EXPECT_FALSE(is_operator_method("polygamma"));
  EXPECT_FALSE(is_operator_method("where"));
  EXPECT_TRUE(is_operator_method("relu"));
}

TEST(PythonCalls, IntsAreOneListOnlyWhereThereIsNothingElse) {
  const at::Tensor x = at::arange(6).reshape({2, 3});
  EXPECT_TRUE(at::equal(call_method("roll", {x, 1, 0}).toTensor(), x.roll(1, 0)));
  EXPECT_TRUE(at::equal(call_method("movedim", {x, 0, 1}).toTensor(), x.movedim(0, 1)));
  EXPECT_TRUE(at::equal(call_method("view", {x, 3, 2}).toTensor(), x.view({3, 2})));
  EXPECT_TRUE(at::equal(call_method("flip", {x, 0, 1}).toTensor(), x.flip({0, 1})));
  EXPECT_TRUE(at::equal(call_method("sum", {x, 0, true}).toTensor(), x.sum({0}, true)));
  EXPECT_EQ(call_method("new_zeros", {x, 4, 5}).toTensor().sizes(), at::IntArrayRef({4, 5}));
}

TEST(PythonCalls, MethodsOfOperators) {
  const at::Tensor x = at::arange(1, 4), y = at::full({3}, 7);
  EXPECT_TRUE(at::equal(call_method("__radd__", {x, 2}).toTensor(), 2 + x));
  EXPECT_TRUE(at::equal(call_method("__rmul__", {x, y}).toTensor(), y * x));
  EXPECT_TRUE(at::equal(call_method("__rsub__", {x, 2}).toTensor(), 2 - x));
  EXPECT_TRUE(at::equal(call_method("__rsub__", {x, y}).toTensor(), y - x));
  EXPECT_TRUE(at::equal(call_method("__sub__", {x, y}).toTensor(), x - y));
  EXPECT_TRUE(at::equal(call_method("__rpow__", {x, 2}).toTensor(), at::pow(2, x)));
  EXPECT_TRUE(at::equal(call_method("__rand__", {x, 2}).toTensor(), x.bitwise_and(2)));
  EXPECT_TRUE(at::equal(call_method("__neg__", {x}).toTensor(), -x));
  EXPECT_THROW(call_method("__nothing__", {x}), RunError);
  EXPECT_THROW(call_method("__radd__", {x}), RunError);
}

TEST(PythonCalls, ConversionsTakeAMemoryFormat) {
  const at::Tensor x = at::rand({1, 2, 3, 3});
  const KwValue last =
      key("memory_format", static_cast<std::int64_t>(at::MemoryFormat::ChannelsLast));
  for (const auto& [name, type] : std::initializer_list<std::pair<const char*, at::ScalarType>>{
           {"half", at::kHalf},
           {"double", at::kDouble},
           {"long", at::kLong},
           {"float", at::kFloat},
           {"cfloat", at::kComplexFloat},
           {"cdouble", at::kComplexDouble},
           {"chalf", at::kComplexHalf}}) {
    EXPECT_EQ(call_method(name, {x}).toTensor().scalar_type(), type) << name;
    const at::Tensor y = call_method(name, {x}, {last}).toTensor();
    EXPECT_EQ(y.scalar_type(), type) << name;
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
  }
}

TEST(PythonCalls, KeywordsThatOperatorsLack) {
  const at::Tensor eye = run("torch.eye", {2}, {key("requires_grad", false)}).toTensor();
  EXPECT_TRUE(at::equal(eye, at::eye(2)));
  EXPECT_FALSE(eye.requires_grad());
  EXPECT_TRUE(run("torch.eye", {2}, {key("requires_grad", true)}).toTensor().requires_grad());
  EXPECT_TRUE(call_method("new_zeros", {at::rand({2}), 3}, {key("requires_grad", true)})
                  .toTensor()
                  .requires_grad());
  EXPECT_THROW(run("torch.relu", {eye}, {key("requires_grad", false)}), RunError);
  EXPECT_THROW(run("aten::eye", {2}, {key("requires_grad", false)}), RunError);

  const at::Tensor some = at::eye(2);
  for (const Value& found : {run("torch.nonzero", {some}, {key("as_tuple", true)}),
                             call_method("nonzero", {some}, {key("as_tuple", true)})}) {
    ASSERT_TRUE(found.isTuple());
    ASSERT_EQ(elements(found).size(), 2u);
    EXPECT_TRUE(at::equal(elements(found)[1].toTensor(), at::arange(2)));
  }
  EXPECT_TRUE(at::equal(run("torch.nonzero", {some}, {key("as_tuple", false)}).toTensor(),
                        at::nonzero(some)));
}

TEST(PythonCalls, NamesThatPythonGives) {
  const at::Tensor x = at::rand({4});
  EXPECT_TRUE(at::equal(run("torch.nn.functional.logsigmoid", {x}).toTensor(), at::log_sigmoid(x)));
  EXPECT_TRUE(at::equal(
      run("torch._segment_reduce", {x, "sum"}, {key("lengths", at::tensor({3, 1})), key("axis", 0)})
          .toTensor(),
      at::segment_reduce(x, "sum", at::tensor({3, 1}))));
}

}  // namespace
}  // namespace fx
