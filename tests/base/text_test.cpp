#include "fx/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fx {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Expected texts are those of Python 3.11's repr().
TEST(StrRepr, follows_python) {
  EXPECT_EQ(str_repr("abc"), "'abc'");
  EXPECT_EQ(str_repr(""), "''");
  EXPECT_EQ(str_repr("it's"), "\"it's\"");
  EXPECT_EQ(str_repr("say \"hi\""), "'say \"hi\"'");
  EXPECT_EQ(str_repr("it's \"both\""), "'it\\'s \"both\"'");
  EXPECT_EQ(str_repr("a\\b"), "'a\\\\b'");
  EXPECT_EQ(str_repr("a\nb\tc\rd"), "'a\\nb\\tc\\rd'");
  EXPECT_EQ(str_repr(std::string_view("\0\x1f\x7f", 3)), "'\\x00\\x1f\\x7f'");
  EXPECT_EQ(str_repr("π"), "'π'");
}

TEST(FloatRepr, follows_python) {
  EXPECT_EQ(float_repr(0.0), "0.0");
  EXPECT_EQ(float_repr(-0.0), "-0.0");
  EXPECT_EQ(float_repr(1.0), "1.0");
  EXPECT_EQ(float_repr(-2.5), "-2.5");
  EXPECT_EQ(float_repr(0.1), "0.1");
  EXPECT_EQ(float_repr(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(float_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(float_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(float_repr(1e16), "1e+16");
  EXPECT_EQ(float_repr(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(float_repr(1e-4), "0.0001");
  EXPECT_EQ(float_repr(1e-5), "1e-05");
  EXPECT_EQ(float_repr(1.5e-7), "1.5e-07");
  EXPECT_EQ(float_repr(1e100), "1e+100");
  EXPECT_EQ(float_repr(5e-324), "5e-324");
  EXPECT_EQ(float_repr(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(float_repr(kInf), "inf");
  EXPECT_EQ(float_repr(-kInf), "-inf");
  EXPECT_EQ(float_repr(kNan), "nan");
}

TEST(ComplexRepr, follows_python) {
  EXPECT_EQ(complex_repr({1, 2}), "(1+2j)");
  EXPECT_EQ(complex_repr({0, 1}), "1j");
  EXPECT_EQ(complex_repr({0, -0.0}), "-0j");
  EXPECT_EQ(complex_repr({-0.0, 1}), "(-0+1j)");
  EXPECT_EQ(complex_repr({1, -0.0}), "(1-0j)");
  EXPECT_EQ(complex_repr({1.5, -2.25}), "(1.5-2.25j)");
  EXPECT_EQ(complex_repr({kInf, kNan}), "(inf+nanj)");
  EXPECT_EQ(complex_repr({0, -kInf}), "-infj");
  EXPECT_EQ(complex_repr({1e16, 0}), "(1e+16+0j)");
}

// torch.fx.graph._snake_case.
TEST(SnakeCase, follows_torch_fx) {
  EXPECT_EQ(snake_case("fooBar"), "foo_bar");
  EXPECT_EQ(snake_case("ALL_CAPS"), "all_caps");
  EXPECT_EQ(snake_case("FooBarBaz"), "foo_bar_baz");
  EXPECT_EQ(snake_case("conv2D"), "conv2d");
  EXPECT_EQ(snake_case("HTTPServer"), "httpserver");
  EXPECT_EQ(snake_case("aB"), "a_b");
  EXPECT_EQ(snake_case(""), "");
}

TEST(IsIdentifier, ascii_only) {
  EXPECT_TRUE(is_identifier("a"));
  EXPECT_TRUE(is_identifier("_0"));
  EXPECT_TRUE(is_identifier("aZ9_"));
  EXPECT_FALSE(is_identifier(""));
  EXPECT_FALSE(is_identifier("0a"));
  EXPECT_FALSE(is_identifier("a.b"));
  EXPECT_FALSE(is_identifier("a b"));
  EXPECT_FALSE(is_identifier("π"));
}

TEST(EditDistance, counts_insertions_deletions_and_changes) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("aten::relu", "aten::relu"), 0u);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2u);
}

TEST(Nearest, finds_likely_misspellings_only) {
  const std::vector<std::string> names{"fold_constants", "fuse_conv_bn", "remove_dead_code"};
  EXPECT_EQ(nearest("fuse_conv_bm", names), "fuse_conv_bn");
  EXPECT_EQ(nearest("fold_constant", names), "fold_constants");
  EXPECT_EQ(nearest("quantize", names), "");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), "");
  // Of equally near candidates the first one counts.
  EXPECT_EQ(nearest("ab", std::vector<std::string>{"aa", "ac"}), "aa");
}

}  // namespace
}  // namespace fx
