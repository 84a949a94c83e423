#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/compile/eager_check.h"
#include "tests/compile/values.h"

// Where compilers of tensor programs went wrong, with what eager answered when the table was made.
namespace fx::loops {
namespace {

struct Row {
  const char* name;
  Stack args;
  at::Tensor expected;
};

/// What eager answered when the table was made; a row that it contradicts now is to be looked at.
std::vector<Row> rows() {
  const auto f = [](std::vector<double> values) { return floats(std::move(values)); };
  const auto i = [](std::vector<std::int64_t> values) { return ints(std::move(values)); };
  const auto bf = [](std::vector<double> values) {
    return floats(std::move(values), at::kBFloat16);
  };
  const auto i8 = [](std::vector<std::int64_t> v) { return ints(std::move(v), at::kChar); };
  const auto u8 = [](std::vector<std::int64_t> v) { return ints(std::move(v), at::kByte); };
  const auto i32 = [](std::vector<std::int64_t> v) { return ints(std::move(v), at::kInt); };
  const auto type = [](at::ScalarType t) { return c10::IValue(static_cast<std::int64_t>(t)); };
  return {
      // Division.
      {"aten::div.Tensor_mode", {i({7, -7, 7, -7}), i({2, 2, -2, -2}), "trunc"}, i({3, -3, -3, 3})},
      {"aten::div.Tensor_mode", {i({7, -7, 7, -7}), i({2, 2, -2, -2}), "floor"}, i({3, -4, -4, 3})},
      {"aten::remainder.Tensor", {i({7, -7, 7, -7}), i({3, 3, -3, -3})}, i({1, 2, -2, -1})},
      {"aten::fmod.Tensor", {i({7, -7, 7, -7}), i({3, 3, -3, -3})}, i({1, -1, 1, -1})},
      {"aten::floor_divide", {i({kLowest}), i({-1})}, i({kLowest})},
      {"aten::remainder.Tensor", {i32({-2147483648LL}), i32({-1})}, i32({0})},
      {"aten::floor_divide", {u8({200}), u8({7})}, u8({28})},
      {"aten::remainder.Tensor", {f({5, -5, 5, -5}), f({3, 3, -3, -3})}, f({2, 1, -1, -2})},
      {"aten::remainder.Tensor", {f({5, -5}), f({kInf, kInf})}, f({5, kInf})},
      {"aten::fmod.Tensor", {f({5, -5}), f({kInf, kInf})}, f({5, -5})},
      {"aten::remainder.Tensor", {f({-0.0, 0.0}), f({3, -3})}, f({-0.0, 0.0})},
      {"aten::floor_divide", {f({1, -1, 0}), f({0, 0, 0})}, f({kInf, -kInf, kNan})},
      {"aten::floor_divide", {f({kInf, 5, -5}), f({2, kInf, kInf})}, f({kNan, 0, -1})},
      {"aten::floor_divide",
       {f({1e30, -1e30, 1e30, kInf}), f({1e-20, 1e-20, -1e-20, 1e-20})},
       f({kInf, -kInf, -kInf, kNan})},
      {"aten::floor_divide.Scalar", {f({-7.5, 7.5}), 2.0}, f({-4, 3})},
      {"aten::floor_divide.Scalar", {f({1.0, 0.5}), 0.1}, f({9, 4})},
      {"aten::floor_divide.Scalar", {f({6.0}), 0.2}, f({29})},
      // Bounds that cross.
      {"aten::logit",
       {f({0.1, 0.5, 0.9, kNan}), 0.6},
       f({0.40546518564224243, 0.40546518564224243, -0.40546518564224243, kNan})},
      {"aten::clamp", {f({0.1, 0.5, 0.9, kNan}), 0.6, 0.4}, f({0.4f, 0.4f, 0.4f, kNan})},
      // Casts.
      {"aten::to.dtype",
       {f({kNan, kInf, -kInf, 3e9, -3e9}), type(at::kInt)},
       i32(std::vector<std::int64_t>(5, -2147483648LL))},
      {"aten::to.dtype",
       {f({kNan, kInf, -kInf, 1e19}), type(at::kLong)},
       i(std::vector<std::int64_t>(4, kLowest))},
      {"aten::to.dtype", {f({kNan, 200, -200, 32768}), type(at::kChar)}, i8({0, -56, 56, 0})},
      {"aten::to.dtype", {i({256, -1, 257}), type(at::kByte)}, u8({0, 255, 1})},
      {"aten::to.dtype", {i({128, -129}), type(at::kChar)}, i8({-128, 127})},
      {"aten::to.dtype", {i({2, -1, 0}), type(at::kBool)}, bools({1, 1, 0})},
      {"aten::to.dtype",
       {f({65519, 65520, 1e-8, 6e-8}), type(at::kHalf)},
       floats({65504, kInf, 0, 5.960464477539063e-08}, at::kHalf)},
      {"aten::to.dtype",
       {f({3.3895e38, 3.4e38, 1.00390625, 1.01171875}), type(at::kBFloat16)},
       bf({3.3895313892515355e+38, kInf, 1.0, 1.015625})},
      // NaN and zeros in extremes and choices.
      {"aten::minimum", {f({kNan, 1}), f({1, kNan})}, f({kNan, kNan})},
      {"aten::fmax", {f({kNan, 1}), f({1, kNan})}, f({1, 1})},
      {"aten::clamp", {f({kNan, -5, 5}), -1.0, 1.0}, f({kNan, -1, 1})},
      {"aten::clamp", {f({0.5}), 2.0, 1.0}, f({1})},
      {"aten::clamp", {f({0.5}), kNan, 1.0}, f({kNan})},
      {"aten::clamp", {i({3}), c10::IValue(), 2.5}, f({2.5})},
      {"aten::relu", {f({kNan, -0.0, 0.0, -kInf})}, f({kNan, -0.0, 0.0, 0.0})},
      {"aten::relu6", {f({kNan, 7, -1})}, f({kNan, 6, 0})},
      {"aten::leaky_relu", {f({kNan, -0.0, -kInf}), 0.01}, f({kNan, -0.0, -kInf})},
      {"aten::threshold", {f({kNan}), 0.0, 5.0}, f({kNan})},
      {"aten::amax",
       {f({-kInf, -kInf}), std::vector<std::int64_t>{0}},
       at::scalar_tensor(-kInf, at::kFloat)},
      {"aten::eq.Tensor", {f({kNan}), f({kNan})}, bools({0})},
      {"aten::sign", {f({kNan, -0.0, 0.0, -3})}, f({0, 0, 0, -1})},
      {"aten::sgn", {f({-0.0})}, f({0})},
      {"aten::nan_to_num",
       {f({kNan, kInf, -kInf})},
       f({0, 3.4028234663852886e+38, -3.4028234663852886e+38})},
      {"aten::nan_to_num",
       {bf({kNan, kInf, -kInf})},
       bf({0, 3.3895313892515355e+38, -3.3895313892515355e+38})},
      // Powers and functions.
      {"aten::pow.Tensor_Tensor", {f({0, -0.0, 0}), f({0, -1, -1})}, f({1, -kInf, kInf})},
      {"aten::pow.Tensor_Tensor", {f({-1, -1, -kInf}), f({kInf, -kInf, 3})}, f({1, 1, -kInf})},
      {"aten::pow.Tensor_Scalar", {i32({3}), 40}, i32({689956897})},
      {"aten::pow.Tensor_Scalar", {f({-3, -0.0}), 3}, f({-27, -0.0})},
      {"aten::pow.Tensor_Scalar", {f({4, -0.0, -kInf}), 0.5}, f({2, -0.0, kNan})},
      {"aten::pow.Tensor_Scalar",
       {floats({4, -0.0, -kInf}, at::kHalf), 0.5},
       floats({2, 0.0, kInf}, at::kHalf)},
      {"aten::rsqrt", {f({0, -0.0, kInf})}, f({kInf, -kInf, 0})},
      {"aten::reciprocal", {f({0, -0.0, kInf})}, f({kInf, -kInf, 0})},
      {"aten::log1p", {f({-1, -2, 1e-20})}, f({-kInf, kNan, 9.999999682655225e-21})},
      {"aten::expm1", {f({1e-10, -0.0, 100})}, f({1.000000013351432e-10, -0.0, kInf})},
      {"aten::sigmoid", {f({-89, -104, 1e4, -1e4})}, f({0, 0, 1, 0})},
      {"aten::tanh", {f({-0.0, 20, kNan})}, f({-0.0, 1, kNan})},
      {"aten::silu", {f({-kInf, -100, -0.0})}, f({kNan, -0.0, -0.0})},
      {"aten::softplus", {f({-100, 100, 20.5})}, f({3.783505853677006e-44, 100, 20.5})},
      {"aten::atan2",
       {f({0, -0.0, 0, -0.0}), f({-0.0, -0.0, 0, 0})},
       f({3.1415927410125732, -3.1415927410125732, 0, -0.0})},
      {"aten::sin", {f({kInf, 1e10})}, f({kNan, -0.48750603199005127})},
      {"aten::lgamma", {f({0, -1, -kInf})}, f({kInf, kInf, kInf})},
      {"aten::xlogy.Tensor", {f({0, 0, 0}), f({0, kNan, kInf})}, f({0, kNan, 0})},
      {"aten::special_xlog1py", {f({0}), f({-1})}, f({0})},
      {"aten::hypot", {f({kInf}), f({kNan})}, f({kInf})},
      {"aten::round.decimals", {f({2.675, -0.4}), 2}, f({2.680000066757202, -0.4000000059604645})},
      {"aten::ceil", {f({-0.5})}, f({-0.0})},
      {"aten::trunc", {f({-0.5})}, f({-0.0})},
      {"aten::frac", {f({-0.0})}, f({0.0})},
      {"aten::copysign.Tensor", {f({1, kNan}), f({-0.0, -1})}, f({-1, kNan})},
      {"aten::abs", {i8({-128})}, i8({-128})},
      {"aten::abs", {i({kLowest})}, i({kLowest})},
      {"aten::add.Tensor", {f({-0.0}), f({0.0})}, f({0.0})},
      {"aten::rsub.Scalar", {f({0.0, -0.0}), 0}, f({0.0, 0.0})},
      // Bools and promotion.
      {"aten::mul.Tensor", {bools({1}), bools({1})}, bools({1})},
      {"aten::bitwise_not", {bools({1, 0})}, bools({0, 1})},
      {"aten::sum", {bools({1, 1})}, at::scalar_tensor(2, at::kLong)},
      {"aten::div.Tensor", {bools({1}), bools({1})}, f({1})},
      {"aten::max", {bools({1, 0})}, at::scalar_tensor(true, at::kBool)},
      {"aten::bitwise_not", {u8({0, 5})}, u8({255, 250})},
      {"aten::add.Tensor",
       {i32({1}), at::scalar_tensor(1.5, at::kDouble)},
       floats({2.5}, at::kDouble)},
      {"aten::add.Tensor",
       {floats({1}, at::kHalf), at::scalar_tensor(1.0, at::kDouble)},
       floats({2}, at::kHalf)},
      {"aten::add.Tensor", {u8({1}), i8({1})}, ints({2}, at::kShort)},
      {"aten::add.Scalar", {u8({1}), 300}, u8({45})},
      {"aten::add.Tensor", {i8({1}), i({1})}, i({2})},
      {"aten::add.Tensor", {i({1}), at::scalar_tensor(1.0, at::kFloat)}, f({2})},
      {"aten::add.Scalar", {bools({1}), 1}, i({2})},
      {"aten::add.Scalar", {bools({1}), 1.0}, f({2})},
      {"aten::where.Scalar", {bools({1}), 1, 2.0}, f({1})},
      {"aten::where.ScalarOther", {bools({1}), i32({1}), 2.5}, f({1})},
      {"aten::sum", {i32({1})}, at::scalar_tensor(1, at::kLong)},
      {"aten::prod", {u8({1})}, at::scalar_tensor(1, at::kLong)},
      {"aten::eq.Tensor", {floats({1}, at::kHalf), i({1})}, bools({1})},
      // Integers wrap.
      {"aten::add.Tensor", {i8({127}), i8({1})}, i8({-128})},
      {"aten::add.Scalar", {i32({2147483647}), 1}, i32({-2147483648LL})},
      {"aten::mul.Tensor", {u8({200}), u8({2})}, u8({144})},
      {"aten::neg", {u8({6})}, u8({250})},
      {"aten::neg", {i8({-128})}, i8({-128})},
      {"aten::sum", {i({1LL << 62, 1LL << 62})}, at::scalar_tensor(kLowest, at::kLong)},
      {"aten::__lshift__.Scalar", {i32({1}), 31}, i32({-2147483648LL})},
      {"aten::bitwise_left_shift.Tensor", {i32({1}), i32({32})}, i32({0})},
      {"aten::bitwise_right_shift.Tensor", {i32({-8}), i32({40})}, i32({-1})},
      // Reductions of nothing, and what is inside them.
      {"aten::sum", {f({})}, at::scalar_tensor(0.0, at::kFloat)},
      {"aten::prod", {f({})}, at::scalar_tensor(1.0, at::kFloat)},
      {"aten::var", {f({})}, at::scalar_tensor(kNan, at::kFloat)},
      {"aten::var", {f({1})}, at::scalar_tensor(kNan, at::kFloat)},
      {"aten::var", {f({1}), false}, at::scalar_tensor(0.0, at::kFloat)},
      {"aten::norm.Scalar", {f({})}, at::scalar_tensor(0.0, at::kFloat)},
      {"aten::logsumexp",
       {f({}), std::vector<std::int64_t>{0}},
       at::scalar_tensor(-kInf, at::kFloat)},
      {"aten::logsumexp",
       {f({-kInf, -kInf}), std::vector<std::int64_t>{0}},
       at::scalar_tensor(-kInf, at::kFloat)},
      {"aten::softmax.int", {f({kInf, 1}), 0}, f({kNan, kNan})},
      {"aten::softmax.int", {f({kNan, 1}), 0}, f({kNan, kNan})},
      {"aten::softmax.int", {f({1000, 1000}), 0}, f({0.5, 0.5})},
      {"aten::layer_norm", {f({3, 3}), std::vector<std::int64_t>{2}}, f({0, 0})},
      {"aten::cosine_similarity", {at::zeros({1, 2}), at::zeros({1, 2})}, f({0})},
      {"aten::add.Tensor", {f({}), f({1})}, f({})},
      {"aten::sum",
       {at::full({4096}, 1.0, at::kBFloat16)},
       at::scalar_tensor(4096.0, at::kBFloat16)},
      {"aten::mean", {at::full({70000}, 1.0, at::kHalf)}, at::scalar_tensor(1.0, at::kHalf)},
      {"aten::add.Tensor", {bf({1.0}), bf({1.0 / 256})}, bf({1.0})},
      {"aten::lerp.Tensor", {f({1}), f({1e8}), f({0.5})}, f({50000000})},
      {"aten::addcmul", {f({1}), f({4097}), f({4095})}, f({16777216})},
      {"aten::binary_cross_entropy", {f({0}), f({1})}, at::scalar_tensor(100.0, at::kFloat)},
  };
}

TEST(LowerTraps, HaveEagersAnswers) {
  for (const Row& row : rows()) {
    const Overload& overload = overload_of(row.name);
    Stack eager = with_defaults(overload, row.args);
    const Stack args = eager;
    overload.handle.callBoxed(eager);
    EXPECT_EQ(difference(eager[0].toTensor(), row.expected, is_exact(base_name(row.name))), "")
        << "eager: " << call_text(overload, args);
    EXPECT_EQ(inequality(row.name, row.args), "");
    // Also where eager takes vectors of them.
    const bool nothing = row.args[0].isTensor() && row.args[0].toTensor().numel() == 0;
    if (nothing || base_name(row.name) == "layer_norm") continue;
    Stack many;
    for (const c10::IValue& arg : row.args)
      many.push_back(arg.isTensor() && arg.toTensor().dim() == 1
                         ? c10::IValue(arg.toTensor().repeat({67}))
                         : arg);
    EXPECT_EQ(inequality(row.name, many), "");
  }
}

TEST(LowerTraps, ErrorsAreLeftToEager) {
  const std::vector<std::pair<const char*, Stack>> calls = {
      {"aten::floor_divide", {ints({1}), ints({0})}},
      {"aten::remainder.Tensor", {ints({1}), ints({0})}},
      {"aten::div.Tensor_mode", {ints({1, 2}), ints({1, 0}), "trunc"}},
      {"aten::fmod.Scalar", {ints({1}), 0}},
      {"aten::sub.Tensor", {bools({1, 0}), bools({1, 1})}},
      {"aten::floor_divide", {bools({1}), bools({1})}},
      {"aten::add.Tensor", {ints({1}), ints({2}), 1.5}},
      {"aten::max", {floats({})}},
      {"aten::add.Tensor", {at::ones({0}), at::ones({2})}},
      {"aten::sum.dim_IntList", {at::ones({2, 2}), std::vector<std::int64_t>{0, -2}}},
      {"aten::softmax.int", {at::ones({2}), 1}},
      {"aten::masked_fill.Scalar", {ints({1}, at::kByte), bools({1}), 300}},
      {"aten::binary_cross_entropy", {floats({1.5}), floats({1})}},
      {"aten::pow.Tensor_Scalar", {ints({2}), -1}},
      {"aten::expand", {at::ones({2}), std::vector<std::int64_t>{3}}},
  };
  for (const auto& [name, args] : calls) {
    const Overload& overload = overload_of(name);
    const Check check = check_call(overload, with_defaults(overload, args), {});
    EXPECT_EQ(check.verdict, Verdict::kBothRefuse) << name << ": " << check.text;
  }
}

}  // namespace
}  // namespace fx::loops
