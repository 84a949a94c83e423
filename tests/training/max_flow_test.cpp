#include "fx/passes/max_flow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

namespace fx {
namespace {

using Edges = std::vector<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>>;

FlowNetwork::Cut cut_of(std::size_t vertices, const Edges& edges, std::uint32_t sink) {
  FlowNetwork network(vertices);
  for (const auto& [from, to, capacity] : edges) network.add_edge(from, to, capacity);
  return network.min_cut(0, sink);
}

std::int64_t capacity_across(const Edges& edges, const std::vector<bool>& behind) {
  std::int64_t sum = 0;
  for (const auto& [from, to, capacity] : edges)
    if (!behind[from] && behind[to]) sum += capacity;
  return sum;
}

// Cormen, Leiserson, Rivest, Stein: the network of the chapter on flows, of value 23.
TEST(MaxFlow, textbook) {
  const Edges edges{{0, 1, 16}, {0, 2, 13}, {2, 1, 4},  {1, 3, 12}, {3, 2, 9},
                    {2, 4, 14}, {4, 3, 7},  {3, 5, 20}, {4, 5, 4}};
  const FlowNetwork::Cut cut = cut_of(6, edges, 5);
  EXPECT_EQ(cut.value, 23);
  EXPECT_EQ(cut.behind, (std::vector<bool>{false, false, false, true, false, true}));
}

TEST(MaxFlow, of_equal_cuts_the_one_nearest_to_the_sink) {
  const FlowNetwork::Cut cut = cut_of(4, {{0, 1, 5}, {1, 2, 5}, {2, 3, 5}}, 3);
  EXPECT_EQ(cut.value, 5);
  EXPECT_EQ(cut.behind, (std::vector<bool>{false, false, false, true}));
}

TEST(MaxFlow, without_a_way_nothing_is_cut) {
  const FlowNetwork::Cut cut = cut_of(3, {{0, 1, 5}}, 2);
  EXPECT_EQ(cut.value, 0);
  EXPECT_EQ(cut.behind, (std::vector<bool>{false, false, true}));
}

TEST(MaxFlow, unlimited_edges_are_not_cut) {
  constexpr std::int64_t kUnlimited = FlowNetwork::kUnlimited;
  const FlowNetwork::Cut cut =
      cut_of(4, {{0, 1, kUnlimited}, {1, 2, 7}, {2, 3, kUnlimited}, {0, 3, 2}}, 3);
  EXPECT_EQ(cut.value, 9);
  EXPECT_TRUE(cut.behind[2]);
  EXPECT_FALSE(cut.behind[1]);
}

TEST(MaxFlow, a_path_of_unlimited_edges_is_shown) {
  constexpr std::int64_t kUnlimited = FlowNetwork::kUnlimited;
  const FlowNetwork::Cut cut =
      cut_of(5, {{0, 1, 1}, {0, 2, kUnlimited}, {2, 3, kUnlimited}, {3, 4, kUnlimited}}, 4);
  EXPECT_EQ(cut.value, kUnlimited);
  EXPECT_EQ(cut.unlimited_path, (std::vector<std::uint32_t>{0, 2, 3, 4}));
}

// Long chains must not need a deep stack.
TEST(MaxFlow, long_chain) {
  constexpr std::uint32_t kLength = 200'000;
  Edges edges;
  for (std::uint32_t i = 0; i + 1 < kLength; ++i)
    edges.emplace_back(i, i + 1, i == kLength / 2 ? 1 : 10);
  const FlowNetwork::Cut cut = cut_of(kLength, edges, kLength - 1);
  EXPECT_EQ(cut.value, 1);
  EXPECT_FALSE(cut.behind[kLength / 2]);
  EXPECT_TRUE(cut.behind[kLength / 2 + 1]);
}

// Against all cuts of small random networks.
TEST(MaxFlow, random_networks) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t vertices = 2 + random() % 7, sink = vertices - 1;
    Edges edges;
    for (std::uint32_t i = random() % 20; i-- > 0;)
      edges.emplace_back(random() % vertices, random() % vertices, random() % 10);
    const FlowNetwork::Cut cut = cut_of(vertices, edges, sink);
    std::int64_t best = FlowNetwork::kUnlimited;
    for (std::uint32_t set = 0; set < (1u << vertices); ++set) {
      std::vector<bool> behind(vertices);
      for (std::uint32_t v = 0; v < vertices; ++v) behind[v] = (set >> v & 1) != 0;
      if (!behind[0] && behind[sink]) best = std::min(best, capacity_across(edges, behind));
    }
    EXPECT_EQ(cut.value, best);
    EXPECT_EQ(capacity_across(edges, cut.behind), best);
    EXPECT_FALSE(cut.behind[0]);
  }
}

}  // namespace
}  // namespace fx
