#include "fx/analysis/effect_order.h"

#include <algorithm>

namespace fx {

EffectOrder::EffectOrder(const Graph& graph) {
  const AliasAnalysis aliases(graph);
  // Of each set of memory: who wrote last, and who read it since.
  std::vector<Node*> writer(aliases.num_sets(), nullptr);
  std::vector<std::vector<Node*>> readers(aliases.num_sets());
  Node* last_effect = nullptr;
  std::vector<Edge> edges;
  std::vector<AliasAnalysis::Set> touched;
  auto add = [&](Node* from, Node& to) {
    if (from && from != &to) edges.emplace_back(from, &to);
  };
  for (Node& node : graph.nodes()) {
    touched.clear();
    if (aliases.has_writes()) aliases.add_touched_sets(node, touched);
    for (const AliasAnalysis::Set set : touched) {
      add(writer[set], node);
      readers[set].push_back(&node);
    }
    for (const AliasAnalysis::Set set : aliases.writes(node)) {
      add(writer[set], node);
      for (Node* reader : readers[set]) add(reader, node);
      readers[set].clear();
      writer[set] = &node;
    }
    if (has_ordered_effect(node)) {
      add(last_effect, node);
      last_effect = &node;
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::pair(a.first->id(), a.second->id()) < std::pair(b.first->id(), b.second->id());
  });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (edges.empty()) return;
  before_ = grouped(edges, graph.id_bound(), /*by_second=*/true);
  after_ = grouped(edges, graph.id_bound(), /*by_second=*/false);
}

EffectOrder::Lists EffectOrder::grouped(const std::vector<Edge>& edges, std::uint32_t id_bound,
                                        bool by_second) {
  Lists lists;
  lists.begin.assign(id_bound + 2, 0);
  for (const auto& [first, second] : edges) ++lists.begin[(by_second ? second : first)->id() + 2];
  for (std::uint32_t id = 0; id < id_bound; ++id) lists.begin[id + 2] += lists.begin[id + 1];
  lists.nodes.resize(edges.size());
  for (const auto& [first, second] : edges) {
    Node* key = by_second ? second : first;
    lists.nodes[lists.begin[key->id() + 1]++] = by_second ? first : second;
  }
  lists.begin.pop_back();
  return lists;
}

}  // namespace fx
