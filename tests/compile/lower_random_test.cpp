#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "fx/compile/lower_table.h"
#include "tests/compile/eager_check.h"
#include "tests/compile/random_args.h"

namespace fx::loops {
namespace {

/// Calls that eager takes and that are left to it: part of the operator, and the reason.
bool may_refuse(const std::string& op, const std::string& reason, const Stack& args) {
  // Eager lets some numbers overflow.
  if (reason.ends_with(" does not fit") &&
      std::any_of(args.begin(), args.end(), [](const c10::IValue& arg) {
        return arg.isScalar() && !(std::abs(arg.toScalar().toDouble()) < 60000);
      }))
    return true;
  static const std::pair<const char*, const char*> rows[] = {
      {"softmax", "softmax of integers"},  // nothing is left of it: eager takes only empty ones
      {"", "of nothing"},
      {"pad", "nothing is left"},
      {"split", "so many parts"},
      {"unbind", "so many parts"},
      {"unfold", "a tensor without dimensions"},
      {"view", "of other dimensions"},  // 0 is one of them
      {"reshape", "of other dimensions"},
      {"unflatten", "of other dimensions"},
      {"cat", "tensors without dimensions"},
      {"index", "other than one or two indices"},
      {"roll", "a roll all around"},
      {"gather", "an index of other dimensions"},  // of a number
      {"index_select", "an index of other than one dimension"},
      {"clamp", "does not fit"},
      {"clip", "does not fit"},
      {"hardtanh", "negative bounds of unsigned integers"},
      {"lerp", "lerp of different dtypes"},  // eager takes those of nothing
      {"masked_fill", "value is not constant"},
      {"pool", "pooling of integers"},
      {"pool", "pooling with sizes that are rounded up"},
      {"max_pool1d", "max_pool1d with a stride"},
      {"pool", "pooling that leaves out the padding"},
      {"pool", "windows of different sizes"},
      {"pool", "windows of more than 16 elements"},
      {"cum", "a scan as bool"},
      {"upsample", "interpolation by other factors"},
      {"upsample", "interpolation of integers"},
      {"upsample", "a copy"},
      {"scatter", "a tensor without dimensions"},
      {"scatter", "an index of other dimensions"},  // of nothing
      {"scatter", "a scatter of means"},
      {"scatter", "a scatter that leaves out what was there"},
      {"scatter", "value is not constant"},
      {"scatter", "does not fit"},
      {"scatter", "a sum of bools as bool"},
      {"index_", "a sum of bools as bool"},
      {"index_", "a tensor without dimensions"},
      {"index_add", "a factor of the values"},
      {"", "a scatter into nothing"},
      {"", "a sum of halves at places"},
      {"adaptive", "pooling of other dimensions"},  // of two where only one is whole
      {"sum", "a sum of bools as bool"},
      {"prod", "a sum of bools as bool"},
      {"prod", "prod of half"},
      {"loss", "of another dtype"},
      {"loss", "of integers"},
      {"binary_cross_entropy", "of another dtype"},
      {"binary_cross_entropy", "of other sizes"},
      {"binary_cross_entropy", "a weight of more elements"},
      {"norm", "parameters of different dtypes"},
      {"instance_norm", "parameters of another dtype"},
      {"instance_norm", "updates statistics"},
      {"native_dropout", "dropout in training"},
      {"native_dropout", "dropout of nothing"},
      {"pow", "pow of integers"},
      {"pow", "pow of bools"},
      {"logsumexp", "over no dimensions"},
      {"where", "condition is not of bools"},
  };
  for (const auto& [part, text] : rows)
    if (op.find(part) != std::string::npos && reason.find(text) != std::string::npos) return true;
  return false;
}

/// Calls without the arguments that make their operators inexact.
bool is_plain(const std::string& name, const Stack& args) {
  const std::string op = base_name(name);
  if (op == "add" || op == "sub" || op == "subtract" || op == "rsub")
    return args[2].isInt() && args[2].toInt() == 1;
  return name == "aten::round";
}

class LowerRandom : public testing::TestWithParam<std::string> {};

TEST_P(LowerRandom, EqualsEager) {
  const Overload& overload = overload_of(GetParam());
  const std::string op = base_name(GetParam());
  const char* wanted = std::getenv("FXCPP_LOWER_CALLS");
  const int calls = wanted != nullptr ? std::atoi(wanted) : 400;
  std::map<std::string, std::string> unsupported;
  int equal = 0;
  int wrong = 0;
  for (int i = 0; i < calls && wrong < 3; ++i) {
    ArgMaker maker(std::hash<std::string>()(GetParam()) + static_cast<std::uint64_t>(i));
    const Stack args = maker.make(overload);
    CheckOptions options;
    options.numbers = i % 3 == 2 ? Numbers::kPassed : Numbers::kConstants;
    options.exact = is_exact(op) || is_plain(GetParam(), args);
    options.elementwise = true;
    const Check check = check_call(overload, args, options);
    equal += check.verdict == Verdict::kEqual ? 1 : 0;
    if (check.verdict == Verdict::kUnsupported && options.numbers == Numbers::kConstants &&
        !may_refuse(op, check.text, args))
      unsupported[check.text] = call_text(overload, args);
    if (check.verdict == Verdict::kWrong) {
      ++wrong;
      ADD_FAILURE() << call_text(overload, args) << "\n  " << check.text
                    << (options.numbers == Numbers::kPassed ? " (numbers passed)" : "");
    }
  }
  EXPECT_GE(10 * equal, calls) << "too few valid calls";
  for (const auto& [reason, call] : unsupported)
    ADD_FAILURE() << "unsupported: " << reason << ": " << call;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Lowering& row : lowerings()) out.emplace_back(row.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Table, LowerRandom, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param.substr(6);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace fx::loops
