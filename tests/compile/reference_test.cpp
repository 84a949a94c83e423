#include "tests/compile/reference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "fx/compile/unsupported.h"
#include "tests/compile/eager_check.h"
#include "tests/compile/values.h"

// The oracle itself, with values worked out by hand.
namespace fx::loops {
namespace {

const std::array<std::int64_t, 1> kTwo = {2};
const std::array<std::int64_t, 1> kFour = {4};
const std::array<std::int64_t, 2> kTwoByThree = {2, 3};
const std::array<std::int64_t, 1> kFirst = {0};
const std::array<std::int64_t, 1> kLast = {1};

at::Tensor run(const TensorProgram& program, const Tensor& output,
               const std::vector<at::Tensor>& inputs) {
  return evaluate(program, {&output, 1}, inputs).outputs[0];
}

TEST(Reference, PointwiseBroadcasts) {
  TensorProgram p;
  const Tensor a = p.unsqueeze(p.input(at::kFloat, kTwo), 1);
  const Tensor b = p.input(at::kFloat, std::array<std::int64_t, 1>{3});
  const at::Tensor out = run(p, p.apply(Op::kSub, {a, b}), {floats({10, 20}), floats({1, 2, 3})});
  EXPECT_EQ(difference(out, floats({9, 8, 7, 19, 18, 17}).view({2, 3}), true), "");
}

TEST(Reference, ReductionsAndViews) {
  TensorProgram p;
  const Tensor x = p.input(at::kFloat, kTwoByThree);
  const at::Tensor value = floats({1, 2, 3, 4, 5, 6}).view({2, 3});
  EXPECT_EQ(difference(run(p, p.reduce(Reduce::kSum, x, kFirst, false), {value}), floats({5, 7, 9}),
                       true),
            "");
  EXPECT_EQ(difference(run(p, p.reduce(Reduce::kProd, x, kLast, true), {value}),
                       floats({6, 120}).view({2, 1}), true),
            "");
  const std::array<std::int64_t, 2> order = {1, 0};
  EXPECT_EQ(difference(run(p, p.permute(x, order), {value}),
                       floats({1, 4, 2, 5, 3, 6}).view({3, 2}), true),
            "");
  const Tensor most = p.reduce(Reduce::kMax, x, kLast, true);
  EXPECT_EQ(difference(run(p, p.expand(most, x.dims), {value}),
                       floats({3, 3, 3, 6, 6, 6}).view({2, 3}), true),
            "");
}

TEST(Reference, SizesAreThoseOfTheCall) {
  TensorProgram p;
  const Tensor x = p.input(at::kFloat, kTwoByThree);
  const Tensor count = p.extent(x, kLast);
  EXPECT_EQ(run(p, count, {at::zeros({4, 7})}).item<std::int64_t>(), 7);
  const Tensor nothing = p.reduce(Reduce::kMax, x, kLast, false);
  EXPECT_EQ(difference(run(p, nothing, {at::zeros({2, 0})}), floats({-kInf, -kInf}), true), "");
}

TEST(Reference, DivisionOfIntegers) {
  TensorProgram p;
  const Tensor a = p.input(at::kLong, kFour);
  const Tensor b = p.apply(Op::kDivisor, {p.input(at::kLong, kFour)});
  const std::vector<at::Tensor> values = {ints({7, -7, kLowest, -7}), ints({-2, 2, -1, -2})};
  const auto divided = [&](Op op) { return run(p, p.apply(op, {a, b}), values); };
  EXPECT_EQ(difference(divided(Op::kTruncDiv), ints({-3, -3, kLowest, 3}), true), "");
  EXPECT_EQ(difference(divided(Op::kFloorDiv), ints({-4, -4, kLowest, 3}), true), "");
  EXPECT_EQ(difference(divided(Op::kTruncRem), ints({1, -1, 0, -1}), true), "");
  EXPECT_EQ(difference(divided(Op::kFloorRem), ints({-1, 1, 0, -1}), true), "");
  const Tensor quotient = p.apply(Op::kTruncDiv, {a, b});
  EXPECT_FALSE(evaluate(p, {&quotient, 1}, values).tripped);
  const std::vector<at::Tensor> zero = {values[0], ints({1, 0, 1, 1})};
  const ReferenceResult tripped = evaluate(p, {&quotient, 1}, zero);
  EXPECT_TRUE(tripped.tripped);
  EXPECT_EQ(difference(tripped.outputs[0], values[0], true), "");
}

TEST(Reference, BytesWrapAndShiftsEnd) {
  TensorProgram p;
  const Tensor a = p.input(at::kChar, kFour);
  const Tensor b = p.input(at::kChar, kFour);
  const std::vector<at::Tensor> values = {ints({127, -128, 1, -8}, at::kChar),
                                          ints({1, 1, -1, 40}, at::kChar)};
  const auto of = [&](Op op) { return run(p, p.apply(op, {a, b}), values); };
  EXPECT_EQ(difference(of(Op::kAdd), ints({-128, -127, 0, 32}, at::kChar), true), "");
  EXPECT_EQ(difference(of(Op::kSub), ints({126, 127, 2, -48}, at::kChar), true), "");
  EXPECT_EQ(difference(of(Op::kShl), ints({-2, 0, 0, 0}, at::kChar), true), "");
  EXPECT_EQ(difference(of(Op::kShr), ints({63, -64, 0, -1}, at::kChar), true), "");
}

TEST(Reference, FmaRoundsOnce) {
  TensorProgram p;
  const Tensor a = p.input(at::kFloat, kTwo);
  const Tensor c = p.input(at::kFloat, kTwo);
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, of which a rounded product loses the last.
  const double x = 1 + std::exp2(-12);
  const at::Tensor out =
      run(p, p.apply(Op::kFma, {a, a, c}), {floats({x, 3}), floats({-(1 + std::exp2(-11)), 1})});
  EXPECT_EQ(difference(out, floats({std::exp2(-24), 10}), true), "");
}

TEST(Reference, NanAndChoice) {
  TensorProgram p;
  const Tensor a = p.input(at::kFloat, kFour);
  const Tensor b = p.input(at::kFloat, kFour);
  const std::vector<at::Tensor> values = {floats({kNan, 1, 2, -kInf}), floats({1, kNan, 3, kInf})};
  const auto of = [&](Op op) { return run(p, p.apply(op, {a, b}), values); };
  EXPECT_EQ(difference(of(Op::kMaximum), floats({kNan, kNan, 3, kInf}), true), "");
  EXPECT_EQ(difference(of(Op::kFmin), floats({1, 1, 2, -kInf}), true), "");
  EXPECT_EQ(difference(of(Op::kNe), bools({1, 1, 1, 1}), true), "");
  EXPECT_EQ(difference(of(Op::kLt), bools({0, 0, 1, 1}), true), "");
  const Tensor less = p.apply(Op::kLt, {a, b});
  EXPECT_EQ(difference(run(p, p.apply(Op::kSelect, {less, a, b}), values),
                       floats({1, kNan, 2, -kInf}), true),
            "");
}

TEST(Reference, ScalarsArePassed) {
  TensorProgram p;
  const Tensor x = p.input(at::kFloat, kTwo);
  const Tensor s = p.cast(p.scalar(at::kDouble), at::kFloat);
  const Tensor y = p.apply(Op::kMul, {x, s});
  const std::vector<at::Tensor> inputs = {floats({2, 3})};
  const std::vector<c10::Scalar> scalars = {0.5};
  EXPECT_EQ(difference(evaluate(p, {&y, 1}, inputs, scalars).outputs[0], floats({1, 1.5}), true),
            "");
}

TEST(Reference, SizesThatMeetAreOneFromThenOn) {
  TensorProgram p;
  const Tensor a = p.input(at::kFloat, kTwoByThree);
  const Tensor b = p.input(at::kFloat, kTwoByThree);
  EXPECT_FALSE(p.shapes().same(a.dims, b.dims));
  p.apply(Op::kAdd, {a, b});
  EXPECT_TRUE(p.shapes().same(a.dims, b.dims));
  EXPECT_THROW(p.apply(Op::kAdd, {a, p.input(at::kFloat, kTwo)}), Unsupported);
}

}  // namespace
}  // namespace fx::loops
