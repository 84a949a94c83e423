#include "fx/base/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <typeindex>

namespace fx {
namespace {

using ::testing::HasSubstr;

TEST(Error, message_is_text_advice_and_code) {
  GraphError error(ErrorCode::kEraseWithUsers, "node add still has 1 user");
  EXPECT_STREQ(error.what(),
               "node add still has 1 user. To mend it: replace the uses first "
               "(replace_all_uses_with), then erase. [FX103]");
  EXPECT_EQ(error.text(), "node add still has 1 user");
  EXPECT_EQ(error.code(), ErrorCode::kEraseWithUsers);
}

TEST(Error, no_second_full_stop) {
  EXPECT_THAT(GraphError(ErrorCode::kNoOutput, "Nothing here!").what(),
              ::testing::StartsWith("Nothing here! To mend it:"));
  EXPECT_THAT(GraphError(ErrorCode::kNoOutput, "a\nb\n").what(),
              ::testing::StartsWith("a\nb\n To mend it:"));
  EXPECT_THAT(GraphError(ErrorCode::kNoOutput, "").what(), ::testing::StartsWith(" To mend it:"));
}

TEST(Error, every_kind_is_caught_as_error_and_std_exception) {
  EXPECT_THROW(throw LintError(ErrorCode::kLintOrder, ""), Error);
  EXPECT_THROW(throw TraceError(ErrorCode::kControlFlow, ""), Error);
  EXPECT_THROW(throw ImportError(ErrorCode::kOpenFailed, ""), std::runtime_error);
  EXPECT_THROW(throw RunError(ErrorCode::kMissingInput, ""), std::exception);
}

TEST(ErrorTable, rows_are_complete_unique_and_sorted) {
  std::set<std::string_view> names;
  int last = 0;
  for (std::size_t i = 0; i < num_error_codes(); ++i) {
    const ErrorInfo& row = error_info_at(i);
    EXPECT_EQ(&error_info(row.code), &row);
    EXPECT_GT(static_cast<int>(row.code), last) << row.name;
    last = static_cast<int>(row.code);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.name.starts_with("k")) << row.name;
    EXPECT_FALSE(row.kind.empty()) << row.name;
    EXPECT_FALSE(row.advice.empty()) << row.name;
    // The advice is a clause inside "To mend it: ... ."
    EXPECT_NE(row.advice.back(), '.') << row.name;
    EXPECT_FALSE(row.advice[0] >= 'A' && row.advice[0] <= 'Z') << row.name;
  }
  EXPECT_EQ(names.size(), num_error_codes());
}

TEST(ErrorTable, kinds_have_their_own_hundred) {
  for (std::size_t i = 0; i < num_error_codes(); ++i) {
    const ErrorInfo& row = error_info_at(i);
    const int number = static_cast<int>(row.code);
    const int hundred = row.kind == "Graph" || row.kind == "Lint" || row.kind == "Parse" ? 1
                        : row.kind == "Trace"                                            ? 2
                        : row.kind == "Run"                                              ? 3
                        : row.kind == "Import"                                           ? 4
                        : row.kind == "Pass"                                             ? 5
                        : row.kind == "Compile"                                          ? 6
                                                                                         : 7;
    EXPECT_EQ(number / 100, hundred) << row.name;
  }
}

TEST(ErrorTable, unknown_code_is_a_bug) {
  EXPECT_THROW(error_info(static_cast<ErrorCode>(1)), InternalError);
  EXPECT_THROW(error_info(static_cast<ErrorCode>(9999)), InternalError);
  EXPECT_THROW(error_info_at(num_error_codes()), std::out_of_range);
}

TEST(Assert, throws_with_place_and_condition) {
  FX_ASSERT(1 + 1 == 2, "holds");
  try {
    FX_ASSERT(1 + 1 == 3, "arithmetic broke");
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    const std::string what = error.what();
    EXPECT_THAT(what, HasSubstr("error_test.cpp:"));
    EXPECT_THAT(what, HasSubstr("arithmetic broke"));
    EXPECT_THAT(what, HasSubstr("1 + 1 == 3"));
    EXPECT_THAT(what, HasSubstr("bug in fxcpp"));
  }
}

}  // namespace
}  // namespace fx
