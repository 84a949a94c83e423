#include "fx/base/symbol.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace fx {
namespace {

TEST(Symbol, equal_text_is_one_address) {
  const Symbol a("layer1.weight");
  const Symbol b(std::string("layer1.") + "weight");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.id(), b.id());
  EXPECT_EQ(a.str(), "layer1.weight");
  EXPECT_FALSE(a == Symbol("layer1.bias"));
  EXPECT_TRUE(a == "layer1.weight");
}

TEST(Symbol, default_is_the_empty_string) {
  EXPECT_TRUE(Symbol().empty());
  EXPECT_EQ(Symbol(), Symbol(""));
  EXPECT_FALSE(Symbol("x").empty());
}

TEST(Symbol, keeps_any_bytes) {
  const std::string bytes("a\0b\xff\n", 5);
  EXPECT_EQ(Symbol(bytes).str(), bytes);
  EXPECT_FALSE(Symbol(bytes) == Symbol("a"));
}

TEST(Symbol, views_stay_valid_while_the_table_grows) {
  const Symbol first("stays");
  const std::string* address = &first.str();
  for (int i = 0; i < 20000; ++i) Symbol("grow_" + std::to_string(i));
  EXPECT_EQ(&Symbol("stays").str(), address);
  EXPECT_EQ(*address, "stays");
}

TEST(Symbol, threads_agree_on_addresses) {
  constexpr int kThreads = 8, kNames = 500;
  std::vector<std::vector<const void*>> ids(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) ids[t].push_back(Symbol("shared_" + std::to_string(i)).id());
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[t], ids[0]);
  EXPECT_EQ(std::unordered_set<const void*>(ids[0].begin(), ids[0].end()).size(),
            static_cast<std::size_t>(kNames));
}

}  // namespace
}  // namespace fx
