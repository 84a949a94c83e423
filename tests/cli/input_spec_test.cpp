// The input grammar: what it accepts, what it makes, and where it points when something is wrong.

#include "tools/fxcpp/input_spec.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fx/base/error.h"

namespace fx::cli {
namespace {

using testing::HasSubstr;

at::Tensor make(const std::string& text, const Dims& dims = {}, std::uint64_t seed = 0) {
  const InputSpec spec = parse_input_spec(text);
  const auto& tensor = std::get<TensorSpec>(spec.value);
  return make_tensor(spec, tensor, resolve_sizes(spec, tensor, dims), seed);
}

/// The message, and the column that the caret is under.
struct Complaint {
  std::string what;
  std::size_t column;
};
template <typename F>
Complaint complaint_of(F&& action) {
  try {
    action();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadInputSpec);
    const std::string& text = error.text();
    const std::size_t last = text.rfind('\n');
    return {text, text.size() - last - 1 - 4 - 1};
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}
Complaint refused(const std::string& text) {
  return complaint_of([&] { make(text); });
}

TEST(InputSpec, NamesAreOptional) {
  EXPECT_EQ(parse_input_spec("x=f32[2]:zeros").name, "x");
  EXPECT_EQ(parse_input_spec("f32[2]:zeros").name, "");
  EXPECT_EQ(parse_input_spec("x=@a=b.npy").name, "x");
  EXPECT_EQ(std::get<InputSpec::File>(parse_input_spec("x=@a=b.npy").value).path, "a=b.npy");
  EXPECT_EQ(std::get<InputSpec::File>(parse_input_spec("@dir/x.npy").value).path, "dir/x.npy");
}

TEST(InputSpec, FillsMakeTensors) {
  EXPECT_TRUE(make("f32[2,3]:zeros").equal(at::zeros({2, 3})));
  EXPECT_TRUE(make("i32[ 2 , 3 ]: ones").equal(at::ones({2, 3}, at::kInt)));
  EXPECT_TRUE(make("f64[3]:1,-2.5,1e-3").equal(at::tensor({1.0, -2.5, 1e-3}, at::kDouble)));
  EXPECT_TRUE(make("i64[2,2]:1,2,3,4").equal(at::arange(1, 5).view({2, 2})));
  EXPECT_TRUE(make("bool[4]:1,0,true,False").equal(at::tensor({1, 0, 1, 0}).to(at::kBool)));
  EXPECT_TRUE(make("f32[2]:inf,-inf").equal(at::tensor({INFINITY, -INFINITY})));
  EXPECT_TRUE(make("u8[2]:0,255").equal(at::tensor({0, 255}).to(at::kByte)));
  EXPECT_TRUE(make("f32[2,2]:full(0.5)").equal(at::full({2, 2}, 0.5)));
  EXPECT_TRUE(make("i64[3]:full(9007199254740993)")
                  .equal(at::full({3}, std::int64_t{9007199254740993}, at::kLong)));
  EXPECT_EQ(make("f16[2]:randn").scalar_type(), at::kHalf);
  EXPECT_EQ(make("float32[2]").scalar_type(), at::kFloat);
  EXPECT_EQ(make("bf16[2]:1,2").scalar_type(), at::kBFloat16);
}

TEST(InputSpec, ZeroDimensionalAndEmptyTensors) {
  const at::Tensor scalar = make("f32[]:3.5");
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.item<float>(), 3.5f);
  EXPECT_EQ(make("f32[0,3]:zeros").sizes(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(make("f32[1]:3.5").dim(), 1);
}

TEST(InputSpec, ComplexValues) {
  const at::Tensor made = make("c128[4]:1+2j,-2j,3,1e-1-1e-2j");
  const at::Tensor real = at::tensor({1.0, 0.0, 3.0, 0.1}, at::kDouble);
  const at::Tensor imag = at::tensor({2.0, -2.0, 0.0, -0.01}, at::kDouble);
  EXPECT_TRUE(made.equal(at::complex(real, imag)));
}

TEST(InputSpec, RandomFillsFollowTheSeedAndTheirBounds) {
  EXPECT_TRUE(make("f32[50]:randn", {}, 3).equal(make("f32[50]:randn", {}, 3)));
  EXPECT_FALSE(make("f32[50]:randn", {}, 3).equal(make("f32[50]:randn", {}, 4)));
  EXPECT_TRUE(make("f32[50]", {}, 3).equal(make("f32[50]:randn", {}, 3)));
  const at::Tensor uniform = make("f32[1000]:rand(2,3)");
  EXPECT_GE(uniform.min().item<float>(), 2);
  EXPECT_LE(uniform.max().item<float>(), 3);
  EXPECT_GT(uniform.std().item<float>(), 0.2f);
  const at::Tensor integers = make("i64[1000]:randint(-2,3)");
  EXPECT_EQ(integers.min().item<std::int64_t>(), -2);
  EXPECT_EQ(integers.max().item<std::int64_t>(), 2);
  const at::Tensor mask = make("bool[100]");
  EXPECT_GT(mask.sum().item<std::int64_t>(), 10);
  EXPECT_LT(mask.sum().item<std::int64_t>(), 90);
}

TEST(InputSpec, SymbolsGetTheirSizesFromDims) {
  EXPECT_EQ(make("f32[s0,3,s1]:zeros", {{"s0", 4}, {"s1", 2}}).sizes(),
            (std::vector<std::int64_t>{4, 3, 2}));
  const Complaint unknown = refused("f32[s0,3]:zeros");
  EXPECT_THAT(unknown.what, HasSubstr("the symbol s0 has no value: give --dim s0=SIZE"));
  EXPECT_EQ(unknown.column, 4u);
}

TEST(InputSpec, ScalarsAreInputsThatAreNoTensors) {
  auto scalar = [](const char* text) {
    return std::get<InputSpec::Scalar>(parse_input_spec(text).value).value;
  };
  EXPECT_EQ(std::get<std::int64_t>(scalar("n=3")), 3);
  EXPECT_EQ(std::get<double>(scalar("alpha=-0.5")), -0.5);
  EXPECT_EQ(std::get<bool>(scalar("flag=true")), true);
  EXPECT_EQ(std::get<std::string>(scalar("mode=\"a[=b\"")), "a[=b");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(scalar("mask=none")));
  EXPECT_EQ(std::get<std::int64_t>(scalar("7")), 7);
}

struct BadCase {
  const char* text;
  const char* what;
  std::size_t column;
};
class InputSpecRefuses : public testing::TestWithParam<BadCase> {};

TEST_P(InputSpecRefuses, WithACaretUnderThePlace) {
  const Complaint complaint = refused(GetParam().text);
  EXPECT_THAT(complaint.what, HasSubstr(GetParam().what));
  EXPECT_THAT(complaint.what, HasSubstr(std::string("\n    ") + GetParam().text + "\n"));
  EXPECT_EQ(complaint.column, GetParam().column) << complaint.what;
}

INSTANTIATE_TEST_SUITE_P(
    All, InputSpecRefuses,
    testing::Values(BadCase{"x=", "nothing follows '='", 2},
                    BadCase{"2x=f32[1]:zeros", "'2x' is no name of an input", 0},
                    BadCase{"x=@", "a path wanted behind '@'", 3},
                    BadCase{"x=@a.npz", ".npz archives are not read", 3},
                    BadCase{"x=hello", "'hello' is neither @FILE, nor DTYPE[SIZES]:FILL", 2},
                    BadCase{"x=f31[2]:zeros", "'f31' is no dtype (did you mean 'f32'?)", 2},
                    BadCase{"x=f32[2:zeros", "']' wanted behind the sizes, found ':'", 7},
                    BadCase{"x=f32[2", "']' wanted behind the sizes, the text ends here", 7},
                    BadCase{"x=f32[2,]:zeros", "a size wanted", 8},
                    BadCase{"x=f32[-2]:zeros", "a size cannot be negative", 6},
                    BadCase{"x=f32[2.5]:zeros", "'2.5' is no size", 6},
                    BadCase{"x=f32[2]zeros", "':' wanted behind the sizes, found 'z'", 8},
                    BadCase{"x=f32[2]:", "a fill wanted behind ':'", 9},
                    BadCase{"x=f32[2]:zeroes", "'zeroes' is no fill (did you mean 'zeros'?)", 9},
                    BadCase{"x=f32[2]:zeros(1)", "zeros takes no arguments", 14},
                    BadCase{"x=f32[2]:rand(1)", "',' wanted between the bounds, found ')'", 15},
                    BadCase{"x=f32[2]:rand(2,1)", "the lower bound is above the upper one", 9},
                    BadCase{"x=f32[2]:rand(0,1)x", "nothing wanted behind the fill, found 'x'", 18},
                    BadCase{"x=f32[2]:rand(0,1", "')' wanted at the end, the text ends here", 17},
                    BadCase{"x=i64[2]:rand(0,1)", "use randint(lo,hi)", 9},
                    BadCase{"x=i64[2]:randn", "use randint(lo,hi)", 9},
                    BadCase{"x=i64[2]:randint", "randint needs its bounds", 16},
                    BadCase{"x=i64[2]:randint(3,3)", "randint(lo,hi) needs lo below hi", 9},
                    BadCase{"x=u8[2]:randint(0,300)", "the bounds are outside of the dtype", 8},
                    BadCase{"x=bool[2]:1,2", "'2' is no bool", 12},
                    BadCase{"x=i64[2]:1,2.5", "'2.5' is no integer", 11},
                    BadCase{"x=u8[2]:1,256", "'256' is outside of the dtype", 10},
                    BadCase{"x=f32[2]:1,", "a value wanted", 11},
                    BadCase{"x=f32[3]:1,2", "3 values wanted for [3], found 2", 9},
                    BadCase{"x=f32[]:1,2", "1 values wanted for [], found 2", 8},
                    BadCase{"x=c64[1]:1+", "'1+' is no complex number", 9},
                    BadCase{"x=f32[4000000000,4000000000]:zeros", "is too large", 0}));

TEST(InputSpec, DimsAreNamesAndSizes) {
  Dims dims;
  parse_dim("s0=4", dims);
  parse_dim("batch=16", dims);
  EXPECT_EQ(dims, (Dims{{"s0", 4}, {"batch", 16}}));
  for (const char* bad : {"s0", "s0=", "s0=x", "s0=-1", "=4", "0=4", "s0=5"})
    EXPECT_THROW(parse_dim(bad, dims), UsageError) << bad;
}

}  // namespace
}  // namespace fx::cli
