#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fx/graph/graph.h"

namespace fx {

/// Which values of a graph may share memory, and which nodes may write to which memory.
/// Conservative: what it calls separate is separate in every run.
///
/// Values that may share memory form one set: a tensor and its views, a list and its elements, the
/// results of a module that may return its input. From alias annotations of the schemas
/// (`Tensor(a) -> Tensor(a)`), hidden_aliases.def for operators that lack them, and the attributes'
/// storages. Inputs of the graph may be views of each other and of attributes, so they are one set,
/// and whoever writes to it may write to every attribute.
///
/// Describes the graph as it was when made; later edits do not show.
class AliasAnalysis {
 public:
  using Set = std::uint32_t;

  /// O(nodes + arguments). Nested GraphModules that are impure are analysed as well.
  explicit AliasAnalysis(const Graph& graph);

  /// The set of the memory that the value of `node` may live in.
  Set set_of(const Node& node) const noexcept { return set_of_[node.id()]; }
  std::uint32_t num_sets() const noexcept { return static_cast<std::uint32_t>(flags_.size()); }
  bool may_alias(const Node& a, const Node& b) const noexcept;

  /// The sets that running `node` may write to; sorted. Empty for nearly all nodes.
  std::span<const Set> writes(const Node& node) const noexcept {
    return std::span(writes_).subspan(write_begin_[node.id()],
                                      write_begin_[node.id() + 1] - write_begin_[node.id()]);
  }
  /// Whether any node writes to memory that `value` may live in.
  bool is_written(const Node& value) const noexcept { return has(set_of(value), kWritten); }
  /// Whether the memory exists before and after the run: inputs, attributes and their views.
  bool is_external(const Node& value) const noexcept {
    return has(set_of(value), kInput | kAttribute);
  }
  /// Whether the value or a view made of it is returned, so that the caller may hold its memory.
  /// Unlike the sets this has a direction: returning a view of x says nothing of other views of x.
  bool reaches_output(const Node& value) const noexcept { return reaches_output_[value.id()]; }
  /// Whether running `node` may write to an attribute.
  bool writes_attribute(const Node& node) const noexcept;
  /// Whether anything is written at all.
  bool has_writes() const noexcept { return !writes_.empty(); }
  /// Whether inputs (attributes) may be written to.
  bool writes_inputs() const noexcept { return writes_inputs_; }
  bool writes_attributes() const noexcept { return writes_attributes_; }

  /// Appends the sets that running `node` may read or make views of, as far as any node writes to
  /// them; some may come twice. O(arguments), and for modules that read attributes O(their number).
  void add_touched_sets(const Node& node, std::vector<Set>& sets) const;

  /// Whether the order of two nodes could matter: one writes what the other reads or writes, or
  /// both have effects that are not memory (random numbers, assertions). Data dependencies do not
  /// count. O(inputs + writes).
  bool conflict(const Node& a, const Node& b) const;

 private:
  friend class AliasBuilder;
  enum Flag : std::uint8_t { kInput = 1, kAttribute = 2, kWritten = 4 };
  bool has(Set set, int flags) const noexcept { return (flags_[set] & flags) != 0; }
  bool writes_what_is_touched_by(const Node& writer, const Node& other) const;

  std::vector<Set> set_of_;                 // by node id
  std::vector<std::uint8_t> flags_;         // by set
  std::vector<Set> writes_;                 // grouped by node
  std::vector<std::uint32_t> write_begin_;  // by node id, one more at the end
  std::vector<Set> written_attributes_;     // sets that are kAttribute and kWritten
  std::vector<bool> reads_attributes_;      // by node id: call_module
  std::vector<bool> reaches_output_;        // by node id
  bool writes_inputs_ = false;
  bool writes_attributes_ = false;
};

/// Whether running `node` is seen in the order of other such nodes, beyond what it writes to
/// memory: it draws random numbers, asserts, prints, or nothing is known of it.
bool has_ordered_effect(const Node& node);

}  // namespace fx
