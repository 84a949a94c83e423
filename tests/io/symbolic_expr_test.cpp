#include "fx/io/symbolic_expr.h"

#include <gtest/gtest.h>

#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;

SymbolicExpr parse(const std::string& text) { return parse_symbolic_expr(text, "here"); }

/// The value with s0 = 7, s1 = 3.
std::optional<std::int64_t> value(const std::string& text) {
  return parse(text).evaluate([](std::string_view name) -> std::optional<std::int64_t> {
    if (name == "s0") return 7;
    if (name == "s1") return 3;
    return std::nullopt;
  });
}

TEST(SymbolicExpr, BothFormsPrintAlike) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Symbol('s77', positive=True, integer=True)", "s77"},
      {"Integer(-3)", "-3"},
      {"Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(-1))", "2*s0 - 1"},
      {"2*s0 + 1", "2*s0 + 1"},
      {"FloorDiv(Symbol('s0', integer=True), Integer(2))", "s0//2"},
      {"(s0 + 1)//2", "(s0 + 1)//2"},
      {"Mod(s0, 4)", "s0%4"},
      {"PythonMod(s0, 4)", "s0%4"},
      {"Max(1, s0, s1)", "Max(1, s0, s1)"},
      {"Min(s0, s1)", "Min(s0, s1)"},
      {"CeilDiv(s0, 2)", "CeilDiv(s0, 2)"},
      {"Pow(Symbol('s0', integer=True), Integer(2))", "s0**2"},
      {"GreaterThan(Symbol('u0', integer=True), Integer(0))", "u0 >= 0"},
      {"StrictLessThan(s0, s1)", "s0 < s1"},
      {"Eq(Mod(s0, 3), 0) & ~(s0 > 4)", "s0%3 == 0 & ~(s0 > 4)"},
      {"And(Eq(s0, 1), Ne(s1, 2))", "s0 == 1 & s1 != 2"},
      {"s0 == 1 or not s1 == 2", "s0 == 1 | ~(s1 == 2)"},
      {"Where(s0 > 1, s0, 1)", "Where(s0 > 1, s0, 1)"},
      {"IntTrueDiv(s0, 2)", "s0/2"},
      {"Float('1.5', precision=53)", "1.5"},
      {"TruncToInt(s0)", "TruncToInt(s0)"},
      {"torch.utils._sympy.functions.FloorDiv(s0, 2)", "s0//2"},
      {"true", "True"},
      {"Add(s0 > 1)", "s0 > 1"},
      {"Where(s0 > 1, s0, Float('-11.5'))", "Where(s0 > 1, s0, -11.5)"},
      {"s0 - Float('-1.5')", "s0 + 1.5"},
      {"-s0", "-1*s0"},
      {"--5", "5"},
      {"s0*(s1*2)", "s0*(s1*2)"},
      {"s0 - (s1 - 2)", "s0 + -1*(s1 - 2)"},
      {"-2**2", "-1*2**2"},
  };
  for (const auto& [text, wanted] : cases) {
    const std::string printed = parse(text).str();
    EXPECT_EQ(printed, wanted) << text;
    EXPECT_EQ(parse(printed).str(), printed) << "printing is not stable";
  }
}

TEST(SymbolicExpr, EvaluatesAsPython) {
  EXPECT_EQ(value("2*s0 + 1"), 15);
  EXPECT_EQ(value("(s0 + 1)*(s1 - 2)"), 8);
  EXPECT_EQ(value("s0 - s1 - 1"), 3);
  EXPECT_EQ(value("s0 // s1 * s1 + s0 % s1"), 7);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("7 // -2"), -4);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("7 % -3"), -2);
  EXPECT_EQ(value("CeilDiv(7, 2)"), 4);
  EXPECT_EQ(value("CeilDiv(-7, 2)"), -3);
  EXPECT_EQ(value("s0**2"), 49);
  EXPECT_EQ(value("s0**0"), 1);
  EXPECT_EQ(value("-2**2"), -4);
  EXPECT_EQ(value("2**3"), 8);
  EXPECT_EQ(value("Max(1, s0, s1)"), 7);
  EXPECT_EQ(value("Min(1, s0, s1)"), 1);
  EXPECT_EQ(value("s0 > s1 and s1 > 1"), 1);
  EXPECT_EQ(value("s0 < s1 or s1 >= 4"), 0);
  EXPECT_EQ(value("not s0 < s1"), 1);
  EXPECT_EQ(value("Where(s0 > 1, 10, 20)"), 10);
  EXPECT_EQ(value("Ne(s0, s1)"), 1);
  EXPECT_EQ(value("True"), 1);
}

TEST(SymbolicExpr, WhatHasNoIntegerValueHasNone) {
  EXPECT_EQ(value("s9"), std::nullopt);
  EXPECT_EQ(value("s0 // 0"), std::nullopt);
  EXPECT_EQ(value("s0 % 0"), std::nullopt);
  EXPECT_EQ(value("(-9223372036854775807 - 1) // -1"), std::nullopt);
  EXPECT_EQ(value("(-9223372036854775807 - 1) % -1"), 0);
  EXPECT_EQ(value("9223372036854775807 + s0"), std::nullopt);
  EXPECT_EQ(value("9223372036854775807 * s0"), std::nullopt);
  EXPECT_EQ(value("s0**63"), std::nullopt);
  EXPECT_EQ(value("s0/2"), std::nullopt);
  EXPECT_EQ(value("1.5"), std::nullopt);
  EXPECT_EQ(value("TruncToInt(s0)"), std::nullopt);
}

TEST(SymbolicExpr, SymbolsInOrderOfOccurrence) {
  EXPECT_EQ(parse("s1*s0 + s1 + Max(u2, s0)").symbols(),
            (std::vector<std::string>{"s1", "s0", "u2"}));
}

TEST(SymbolicExprErrors, Syntax) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "a value is wanted at byte 0"},
      {"(", "a value is wanted at byte 1"},
      {"(s0", "a parenthesis is not closed"},
      {"s0)", "a parenthesis too many"},
      {"s0 s1", "what follows byte 3 is unexpected"},
      {"s0 +", "a value is wanted"},
      {"s0, s1", "a comma outside a call"},
      {"Max(s0,)", "a value is wanted"},
      {"Max()", "Max without arguments"},
      {"Mod(s0)", "Mod with 1 arguments"},
      {"Not(s0, s1)", "Not with 2 arguments"},
      {"s0 < s1 < 3", "a chain of comparisons"},
      {"9**9**9", "exponent from 0 to 63"},
      {"s0**s1", "exponent from 0 to 63"},
      {"Pow(s0, Integer(64))", "exponent from 0 to 63"},
      {"9223372036854775808", "does not fit an int64"},
      {"Mi.(s0)", "no name: ''"},
      {"Float('inf')", "a malformed number 'inf'"},
      {"12ab", "a malformed number"},
      {"1e", "a malformed number"},
      {"__import__('os').system('x')", "a value is wanted at byte 11"},
      {"Symbol('a b')", "no name: 'a b'"},
      {"Symbol('s0", "a string without end"},
      {"Symbol('s0', integer=1)", "an assumption that is no bool"},
      {"Symbol(s0)", "''' is wanted"},
      {"Integer(1.5)", "Integer() holds no integer"},
      {"Float('abc')", "a malformed number 'abc'"},
      {"lambda: 0", "what follows byte 6"},
      {"s0; s1", "what follows byte 2"},
      {"{}", "a value is wanted"},
      {"\xff", "a value is wanted"},
  };
  for (const auto& [text, part] : cases)
    expect_import_error(ErrorCode::kBadExpression, {"here: cannot read the expression", part},
                        [&] { parse(text); });
}

TEST(SymbolicExprErrors, Limits) {
  auto parens = [](std::size_t n) { return std::string(n, '(') + "1" + std::string(n, ')'); };
  auto calls = [](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += "Max(1, ";
    return text + "1" + std::string(n, ')');
  };
  for (std::size_t n : {99u, 100u}) {
    EXPECT_NO_THROW(parse(parens(n))) << n;
    EXPECT_NO_THROW(parse(calls(n))) << n;
  }
  for (const std::string& text : {parens(101), calls(101), parens(30'000)})
    expect_import_error(ErrorCode::kBadExpression, {"nested more than 100 deep"},
                        [&] { parse(text); });
  expect_import_error(ErrorCode::kBadExpression, {"200001 bytes"}, [&] { parse(parens(100'000)); });

  // Chains do not nest in the text but in the result.
  auto chain = [](const std::string& op, std::size_t n) {
    std::string text = "s0";
    for (std::size_t i = 0; i < n; ++i) text += op + "2";
    return text;
  };
  EXPECT_EQ(value(chain("+", 10'000)), 20'007);
  EXPECT_EQ(parse(chain("*", 10'000)).args.size(), 10'001u);
  EXPECT_NO_THROW(parse(chain("//", 200)));
  expect_import_error(ErrorCode::kBadExpression, {"too many operations inside each other"},
                      [&] { parse(chain("//", 201)); });
  EXPECT_EQ(value(std::string(60'000, '-') + "5"), 5);
  expect_import_error(ErrorCode::kBadExpression, {"too many operations inside each other"},
                      [&] { parse(std::string(60'000, '-') + "s0"); });
}

}  // namespace
}  // namespace fx::io
