// Items of sequences by int and slice, as Python gives them.
#include <gtest/gtest.h>

#include <limits>

#include "fx/base/error.h"
#include "fx/ops/builtins.h"

namespace fx {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

Value numbers() { return c10::ivalue::Tuple::create(Values{0, 1, 2, 3, 4}); }

std::vector<std::int64_t> picked(Value start, Value stop, Value step) {
  std::vector<std::int64_t> out;
  for (const Value& v : elements(get_item(numbers(), make_slice(start, stop, step))))
    out.push_back(v.toInt());
  return out;
}

TEST(Items, slices_as_in_python) {
  using List = std::vector<std::int64_t>;
  const Value none;
  EXPECT_EQ(picked(1, 4, none), (List{1, 2, 3}));
  EXPECT_EQ(picked(none, none, -1), (List{4, 3, 2, 1, 0}));
  EXPECT_EQ(picked(-2, none, none), (List{3, 4}));
  EXPECT_EQ(picked(10, -10, -2), (List{4, 2, 0}));
  EXPECT_EQ(picked(3, 1, none), List{});
  // Steps and bounds that would overflow.
  EXPECT_EQ(picked(1, none, kMax), (List{1}));
  EXPECT_EQ(picked(none, none, kMin), (List{4}));
  EXPECT_EQ(picked(kMin, kMax, none), (List{0, 1, 2, 3, 4}));
  EXPECT_EQ(picked(kMax, kMin, -3), (List{4, 1}));
  EXPECT_THROW(picked(none, none, 0), RunError);
}

TEST(Items, by_index) {
  EXPECT_EQ(get_item(numbers(), -5).toInt(), 0);
  for (const std::int64_t out_of_range : {std::int64_t{5}, std::int64_t{-6}, kMax, kMin})
    EXPECT_THROW(get_item(numbers(), out_of_range), RunError) << out_of_range;
}

}  // namespace
}  // namespace fx
