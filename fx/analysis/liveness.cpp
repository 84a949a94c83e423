#include "fx/analysis/liveness.h"

#include <algorithm>

#include "fx/graph/last_uses.h"

namespace fx {

const Lifetime* Liveness::find(const Node& node) const {
  // Graph order is the order of comes_before.
  auto at = std::lower_bound(
      lifetimes.begin(), lifetimes.end(), node,
      [](const Lifetime& lifetime, const Node& n) { return lifetime.node->comes_before(n); });
  return at != lifetimes.end() && at->node == &node ? &*at : nullptr;
}

Liveness liveness(const Graph& graph) {
  Liveness result;
  const LastUses last_uses(graph);
  std::vector<std::size_t> position(graph.id_bound());
  result.lifetimes.reserve(graph.size());
  result.live.reserve(graph.size());
  std::size_t alive = 0;
  for (const Node& node : graph.nodes()) {
    const std::size_t at = result.lifetimes.size();
    position[node.id()] = at;
    result.lifetimes.push_back({&node, at, nullptr, at});
    result.live.push_back(++alive);
    result.peak = std::max(result.peak, alive);
    for (const Node* dead : last_uses.after(node)) {
      --alive;
      if (dead == &node) continue;
      Lifetime& lifetime = result.lifetimes[position[dead->id()]];
      lifetime.last_user = &node;
      lifetime.last_use = at;
    }
  }
  return result;
}

std::string Liveness::str() const {
  std::size_t width = 4;
  for (const Lifetime& lifetime : lifetimes) width = std::max(width, lifetime.node->name().size());
  auto padded = [&](std::string text) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
  };
  auto number = [](std::size_t value) {
    std::string text = std::to_string(value);
    return std::string(text.size() < 6 ? 6 - text.size() : 0, ' ') + text;
  };
  std::string out = "   pos  " + padded("node") + "  " + padded("last user") + "    live\n";
  for (std::size_t i = 0; i < lifetimes.size(); ++i)
    out += number(i) + "  " + padded(std::string(lifetimes[i].node->name())) + "  " +
           padded(lifetimes[i].last_user ? std::string(lifetimes[i].last_user->name()) : "-") +
           "  " + number(live[i]) + "\n";
  return out + "peak: " + std::to_string(peak) + " values\n";
}

}  // namespace fx
