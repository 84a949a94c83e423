#include "fx/passes/max_flow.h"

#include <algorithm>

namespace fx {

void FlowNetwork::add_edge(Vertex from, Vertex to, std::int64_t capacity) {
  const bool unlimited = capacity >= kUnlimited;
  const auto add = [&](Vertex at, Vertex towards, std::int64_t left, bool is_unlimited) {
    edges_.push_back({towards, first_[at], left, is_unlimited});
    first_[at] = static_cast<std::uint32_t>(edges_.size() - 1);
  };
  add(from, to, unlimited ? kUnlimited : capacity, unlimited);
  add(to, from, 0, false);
}

bool FlowNetwork::find_levels(Vertex source, Vertex sink) {
  level_.assign(first_.size(), kNone);
  level_[source] = 0;
  std::vector<Vertex> queue{source};
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (std::uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next) {
      const Edge& edge = edges_[e];
      if (edge.left == 0 || level_[edge.to] != kNone) continue;
      level_[edge.to] = level_[queue[i]] + 1;
      queue.push_back(edge.to);
    }
  return level_[sink] != kNone;
}

// Pushes what one path takes whose levels rise by one a step; 0 when there is none left. Without
// recursion, since paths are as long as programs.
std::int64_t FlowNetwork::push_along_a_path(Vertex source, Vertex sink) {
  std::vector<std::uint32_t> path;
  Vertex at = source;
  while (at != sink) {
    std::uint32_t& e = current_[at];
    while (e != kNone && (edges_[e].left == 0 || level_[edges_[e].to] != level_[at] + 1))
      e = edges_[e].next;
    if (e != kNone) {
      path.push_back(e);
      at = edges_[e].to;
      continue;
    }
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1].to;  // back, past the edge that led here
    current_[at] = edges_[path.back()].next;
    path.pop_back();
  }
  std::int64_t amount = kUnlimited;
  for (const std::uint32_t e : path) amount = std::min(amount, edges_[e].left);
  for (const std::uint32_t e : path) {
    if (!edges_[e].unlimited) edges_[e].left -= amount;
    if (!edges_[e ^ 1].unlimited) edges_[e ^ 1].left += amount;
  }
  return amount;
}

std::vector<FlowNetwork::Vertex> FlowNetwork::find_unlimited_path(Vertex source,
                                                                  Vertex sink) const {
  std::vector<Vertex> from(first_.size(), kNone), queue{source};
  from[source] = source;
  for (std::size_t i = 0; i < queue.size() && from[sink] == kNone; ++i)
    for (std::uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next)
      if (edges_[e].unlimited && from[edges_[e].to] == kNone) {
        from[edges_[e].to] = queue[i];
        queue.push_back(edges_[e].to);
      }
  if (from[sink] == kNone) return {};
  std::vector<Vertex> path{sink};
  while (path.back() != source) path.push_back(from[path.back()]);
  std::reverse(path.begin(), path.end());
  return path;
}

FlowNetwork::Cut FlowNetwork::min_cut(Vertex source, Vertex sink) {
  Cut cut;
  cut.unlimited_path = find_unlimited_path(source, sink);
  if (!cut.unlimited_path.empty()) {
    cut.value = kUnlimited;
    return cut;
  }
  while (find_levels(source, sink)) {
    current_ = first_;
    while (const std::int64_t amount = push_along_a_path(source, sink)) cut.value += amount;
  }
  // Behind the cut is what the sink can be reached from.
  cut.behind.assign(first_.size(), false);
  cut.behind[sink] = true;
  std::vector<Vertex> queue{sink};
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (std::uint32_t e = first_[queue[i]]; e != kNone; e = edges_[e].next) {
      const Vertex from = edges_[e].to;
      if (edges_[e ^ 1].left == 0 || cut.behind[from]) continue;
      cut.behind[from] = true;
      queue.push_back(from);
    }
  return cut;
}

}  // namespace fx
