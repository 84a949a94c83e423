#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fx {

/// The greedy algorithm of torch.fx's CapabilityBasedPartitioner on plain numbers: items come in
/// reverse topological order, each supported one starts a partition, and partitions are merged as
/// long as the graph of partitions and other items stays free of circles.
///
/// Two may merge if no path leads from one to the other through anything else. For that each item
/// and partition keeps the set of partitions that it reaches, and each partition also the set of
/// those that it reaches through something else, as bits: a test costs one look, and all candidates
/// are tested 64 at a time. O(n * live partitions / 64) for the items, and O(ancestors) for a merge
/// that makes them reach more.
class PartitionMerger {
 public:
  using Item = std::uint32_t;

  /// Adds the next item, whose number is that of the items before it. Its successors have been
  /// added before; they may repeat.
  /// @param horizontal also merge what no value joins: try all pairs with the new partition, or,
  ///   at an item that is not supported, with the oldest one; else the new one and its successors.
  void add(std::span<const Item> successors, bool supported, bool horizontal);

  struct Partition {
    std::uint32_t id;  ///< number among all partitions ever started
    std::vector<Item> items;
  };
  /// What is left, by id.
  std::vector<Partition> partitions() const;

 private:
  // A set of slots.
  class Bits {
   public:
    bool test(std::uint32_t bit) const {
      return bit / 64 < words_.size() && (words_[bit / 64] >> (bit % 64) & 1) != 0;
    }
    void set(std::uint32_t bit);
    void clear(std::uint32_t bit) {
      if (bit / 64 < words_.size()) words_[bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
    }
    void add(const Bits& other);
    bool contains(const Bits& other) const;
    // The first bit at or behind `from` that is set here and not in `except`, or kNone.
    std::uint32_t first_without(const Bits& except, std::uint32_t from) const;

   private:
    std::vector<std::uint64_t> words_;
  };

  // An item that is not supported, or a partition; named by the first item of it.
  struct Unit {
    std::vector<Item> successors;
    std::vector<Item> predecessors;
    Bits reaches;
    // Of partitions only:
    Bits reaches_through;  // partitions at the end of a path with something in between
    std::vector<Item> items;
    std::uint32_t slot = 0;  // its bit; older partitions have lower ones
    std::uint32_t id = 0;
  };

  static constexpr std::uint32_t kNone = UINT32_MAX;

  Item find(Item item);
  bool may_merge(Item a, Item b) const;
  // Merges two units; returns the one that is left.
  Item merge(Item self, Item other);
  Bits reached_beyond(Item from, Item except);
  void update_ancestors(Item merged, std::uint32_t dead_slot);
  Item merge_with_all(Item self, std::uint32_t from);
  void retry_oldest();

  std::vector<Item> parent_;  // union-find
  std::vector<Unit> units_;
  Bits live_;                  // slots in use
  std::vector<Item> by_slot_;  // the unit of each slot in use
  std::uint32_t next_id_ = 0;
  std::vector<std::uint32_t> mark_;  // by item: the last search that met it
  std::uint32_t search_ = 0;
  // Slots that changed since the oldest partition was tried with all others.
  std::vector<std::uint32_t> untried_;
  Item oldest_tried_ = kNone;
};

}  // namespace fx
