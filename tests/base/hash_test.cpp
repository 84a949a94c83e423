#include "fx/base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace fx {
namespace {

std::uint64_t hash_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.value();
}

TEST(Hash, is_the_same_in_every_process) {
  // Fixed values: a cache key written by one process is read by another.
  EXPECT_EQ(Hasher().value(), 0xe9e0033e3badaf36ull);
  Hasher hasher;
  hasher.add(std::uint64_t{42});
  hasher.add("aten::add.Tensor");
  EXPECT_EQ(hasher.value(), 0xfca889f0c401e9a8ull);
}

TEST(Hash, order_and_boundaries_count) {
  Hasher ab, ba, joined;
  ab.add("a");
  ab.add("b");
  ba.add("b");
  ba.add("a");
  joined.add("ab");
  EXPECT_NE(ab.value(), ba.value());
  EXPECT_NE(ab.value(), joined.value());
}

TEST(Hash, length_counts_where_bytes_are_zero) {
  std::unordered_set<std::uint64_t> seen;
  for (std::size_t length = 0; length < 64; ++length)
    EXPECT_TRUE(seen.insert(hash_of(std::string(length, '\0'))).second) << length;
}

TEST(Hash, no_collisions_on_similar_text) {
  std::unordered_set<std::uint64_t> seen;
  for (int i = 0; i < 100000; ++i) seen.insert(hash_of("add_" + std::to_string(i)));
  EXPECT_EQ(seen.size(), 100000u);
}

}  // namespace
}  // namespace fx
