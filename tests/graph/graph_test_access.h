#pragma once

#include "fx/graph/graph.h"

namespace fx {

/// Breaks a graph on purpose, past all checks: a graph so broken can come from a bug only, and lint
/// has to find it.
class GraphTestAccess {
 public:
  static void set_opcode(Node& node, int value) { node.op_ = static_cast<Opcode>(value); }
  static void set_graph(Node& node, Graph& graph) { node.graph_ = &graph; }
  static void set_target(Node& node, Target target) { node.target_ = target; }
  /// Both nodes carry the name of `other`.
  static void steal_name(Node& node, Node& other) { node.name_ = other.name_; }
  static void drop_name(Node& node) { node.name_ = nullptr; }
  static void mark_erased(Node& node, bool erased) { node.erased_ = erased; }
  /// Changes an argument without telling the producers.
  static void poke_arg(Node& node, std::size_t index, Argument value) {
    node.args_.mutable_view()[index] = std::move(value);
  }
  /// Takes the first user out of the producer's list, but leaves the user's edge.
  static void forget_first_user(Node& node) {
    node.first_use_ = node.first_use_->next;
    if (node.first_use_) node.first_use_->prev = nullptr;
    --node.num_users_;
  }
  static std::uint64_t order(const Node& node) { return node.order_; }
};

}  // namespace fx
