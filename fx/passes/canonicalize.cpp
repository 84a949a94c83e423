#include "fx/passes/canonicalize.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "fx/analysis/effect_order.h"
#include "fx/base/error.h"

namespace fx {
namespace {

class Canonicalizer {
 public:
  explicit Canonicalizer(const Graph& graph) : graph_(graph), effects_(graph) {
    place_.resize(graph.id_bound());
    missing_.resize(graph.id_bound());
    position_.resize(graph.id_bound());
  }

  std::vector<Node*> order(bool group_getitems) {
    std::size_t count = 0;
    for (Node& node : graph_.nodes()) {
      position_[node.id()] = count++;
      for_each_successor(node, [this](const Node& next) { ++missing_[next.id()]; });
    }
    for (Node& node : graph_.nodes())
      if (missing_[node.id()] == 0) ready_.push(entry(node));
    std::vector<Node*> order;
    Node* output = nullptr;
    while (!ready_.empty()) {
      Node& node = *std::get<Node*>(ready_.top());
      ready_.pop();
      place_[node.id()] = ++next_place_;
      if (node.is_output())
        output = &node;
      else
        order.push_back(&node);
      for_each_successor(node, [this](Node& next) {
        if (--missing_[next.id()] == 0) ready_.push(entry(next));
      });
    }
    if (order.size() + (output ? 1 : 0) != count)
      throw LintError(ErrorCode::kLintOrder, "Canonicalization failed: the graph has a cycle");
    if (output) order.push_back(output);
    sink_attributes(order);
    return group_getitems ? grouped(order) : order;
  }

 private:
  // Opcode, key, place in the original, node; the smallest first.
  using Entry = std::tuple<int, std::string, std::size_t, Node*>;

  void for_each_successor(const Node& node, auto&& fn) const {
    for (Node* user : node.users()) fn(*user);
    for (Node* later : effects_.after(node)) fn(*later);
  }

  Entry entry(Node& node) const {
    const std::size_t position = position_[node.id()];
    switch (node.op()) {
      case Opcode::kPlaceholder:
        return {0, "", position, &node};
      case Opcode::kGetAttr:
        return {1, node.target().str(), position, &node};
      case Opcode::kOutput:
        return {3, "", position, &node};
      default:
        return {2, key(node), position, &node};
    }
  }

  // Target and arguments, with the places of nodes for the nodes.
  std::string key(const Node& node) const {
    auto placed = [this](Node& input) {
      // Of equal length, so that they sort like numbers.
      std::string text = std::to_string(place_[input.id()]);
      return Argument("%" + std::string(12 - std::min<std::size_t>(12, text.size()), '0') + text);
    };
    std::string out = node.target().str() + std::string(opcode_name(node.op()));
    for (const Argument& arg : node.args()) out += " " + repr(arg.map_nodes(placed));
    for (const KwArg& kwarg : node.kwargs())
      out += " " + kwarg.key.str() + "=" + repr(kwarg.value.map_nodes(placed));
    return out;
  }

  // Each right before the first that uses it.
  static void sink_attributes(std::vector<Node*>& order) {
    std::vector<Node*> sunk;
    std::vector<bool> done;
    for (Node* node : order) {
      if (node->op() == Opcode::kGetAttr && node->num_users() > 0) continue;
      for (Node* input : node->all_input_nodes()) {
        if (input->op() != Opcode::kGetAttr) continue;
        if (done.size() <= input->id()) done.resize(input->id() + 1);
        if (done[input->id()]) continue;
        done[input->id()] = true;
        sunk.push_back(input);
      }
      sunk.push_back(node);
    }
    order = std::move(sunk);
  }

  static std::vector<Node*> grouped(const std::vector<Node*>& order) {
    auto producer_of = [](const Node& node) -> Node* {
      return node.calls("operator.getitem") && node.num_args() == 2 ? node.args()[0].node_or_null()
                                                                    : nullptr;
    };
    auto index_of = [](const Node* node) {
      const Argument& index = node->args()[1];
      return index.kind() == Argument::Kind::kInt ? index.to_int() : INT64_MAX;
    };
    std::vector<Node*> out;
    auto emit = [&](Node& node, auto&& self) -> void {
      out.push_back(&node);
      std::vector<Node*> items;
      for (Node* user : node.users())
        if (producer_of(*user) == &node && !user->args()[1].has_nodes()) items.push_back(user);
      std::ranges::stable_sort(items, {}, index_of);
      for (Node* item : items) self(*item, self);
    };
    for (Node* node : order)
      if (!producer_of(*node) || node->args()[1].has_nodes()) emit(*node, emit);
    return out;
  }

  const Graph& graph_;
  const EffectOrder effects_;
  std::vector<std::size_t> place_;     // by node id: from 1 in the new order
  std::vector<std::size_t> missing_;   // by node id: what it still waits for
  std::vector<std::size_t> position_;  // by node id: in the old order
  std::size_t next_place_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace

std::shared_ptr<Graph> canonicalized(const Graph& graph, const CanonicalizeOptions& options,
                                     std::map<std::string, std::string>* renamed) {
  auto copy = std::make_shared<Graph>();
  ValueMap map;
  auto mapped = [&](Node& input) { return map.at(&input); };
  for (const Node* node : Canonicalizer(graph).order(options.group_getitems)) {
    Args args;
    for (const Argument& arg : node->args()) args.push_back(arg.map_nodes(mapped));
    Kwargs kwargs;
    for (const KwArg& kwarg : node->kwargs())
      kwargs.emplace_back(kwarg.key, kwarg.value.map_nodes(mapped));
    const bool keeps_name = node->is_placeholder() && options.keep_placeholder_names;
    Node& made = copy->create_node(node->op(), node->target(), std::move(args), std::move(kwargs),
                                   keeps_name ? node->name() : std::string_view(), node->type());
    made.meta() = node->meta();
    map.emplace(node, made);
    if (renamed && made.name() != node->name())
      renamed->insert_or_assign(std::string(node->name()), std::string(made.name()));
  }
  return copy;
}

std::map<std::string, std::string> canonicalize_graph(GraphModule& module,
                                                      const CanonicalizeOptions& options) {
  std::map<std::string, std::string> renamed;
  module.set_graph(canonicalized(module.graph(), options, &renamed));
  return renamed;
}

std::uint64_t canonical_hash(const Graph& graph) { return canonicalized(graph)->structural_hash(); }

}  // namespace fx
