#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/ops/value.h"

namespace fx {

/// The values of a running graph: a map from node to value that iterates in insertion order
/// (torch.fx's Interpreter.env). All nodes belong to one graph, that of the first one set.
///
/// A table indexed by Node::id() whose used entries form a list: set, find and erase cost O(1)
/// without hashing. What an Interpreter keeps here between and after runs may change with versions;
/// prefer the hooks for watching.
class Env {
 private:
  struct Slot {
    Node* node = nullptr;  // null: no value
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
    Value value;
  };

 public:
  /// One entry while iterating: `for (auto [node, value] : env)`.
  struct Entry {
    Node& node;
    const Value& value;
  };

  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Entry;

    iterator() = default;
    Entry operator*() const { return {*slots_[at_].node, slots_[at_].value}; }
    iterator& operator++() {
      at_ = slots_[at_].next;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }

   private:
    friend class Env;
    iterator(const Slot* slots, std::uint32_t at) : slots_(slots), at_(at) {}
    const Slot* slots_ = nullptr;
    std::uint32_t at_ = 0;
  };
  using const_iterator = iterator;

  Env() = default;
  /// `{{&x, 0}, {&add, 100}}`.
  Env(std::initializer_list<std::pair<Node*, Value>> values);
  Env(const Env&) = default;
  Env& operator=(const Env&) = default;
  Env(Env&& other) noexcept;
  Env& operator=(Env&& other) noexcept;

  /// Sets or replaces; a replaced value keeps its place in the order. Amortised O(1).
  /// @throws GraphError kForeignNode for a node of another graph.
  void set(Node& node, Value value);
  /// The value of a node, created as None when there is none (Python's env[node]).
  Value& operator[](Node& node);

  /// Null when there is no value.
  const Value* find(const Node& node) const noexcept {
    const bool here = node.id() < slots_.size() && slots_[node.id()].node == &node;
    return here ? &slots_[node.id()].value : nullptr;
  }
  Value* find(const Node& node) noexcept {
    return const_cast<Value*>(std::as_const(*this).find(node));
  }
  /// By node name, a helper: the keys are nodes. O(1).
  const Value* find(std::string_view name) const noexcept;
  /// @throws RunError kMissingValue naming the node.
  const Value& at(const Node& node) const;
  const Value& at(std::string_view name) const;

  bool contains(const Node& node) const noexcept { return find(node) != nullptr; }
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  /// Whether there was a value. The value is destroyed at once.
  bool erase(const Node& node) noexcept;
  /// O(size).
  void clear() noexcept;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// Setting a value invalidates iterators; erasing another entry does not.
  iterator begin() const noexcept { return {slots_.data(), slots_.empty() ? 0 : slots_[0].next}; }
  iterator end() const noexcept { return {slots_.data(), 0}; }
  /// Names of the nodes that have a value, in insertion order.
  std::vector<std::string> names() const;

 private:
  Slot& slot_for(Node& node);

  // Slot 0 belongs to the sentinel of the graph and is the head of the circular list.
  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace fx
