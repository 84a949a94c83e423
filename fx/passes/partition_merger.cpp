#include "fx/passes/partition_merger.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace fx {

void PartitionMerger::Bits::set(std::uint32_t bit) {
  if (bit / 64 >= words_.size()) words_.resize(bit / 64 + 1);
  words_[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

void PartitionMerger::Bits::add(const Bits& other) {
  if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
  for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

bool PartitionMerger::Bits::contains(const Bits& other) const {
  for (std::size_t i = 0; i < other.words_.size(); ++i)
    if (other.words_[i] & ~(i < words_.size() ? words_[i] : 0)) return false;
  return true;
}

std::uint32_t PartitionMerger::Bits::first_without(const Bits& except, std::uint32_t from) const {
  for (std::size_t i = from / 64; i < words_.size(); ++i) {
    std::uint64_t word = words_[i] & ~(i < except.words_.size() ? except.words_[i] : 0);
    if (i == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (word)
      return static_cast<std::uint32_t>(i * 64) +
             static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return kNone;
}

PartitionMerger::Item PartitionMerger::find(Item item) {
  while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
  return item;
}

bool PartitionMerger::may_merge(Item a, Item b) const {
  const Unit &x = units_[a], &y = units_[b];
  return !x.reaches_through.test(y.slot) && !y.reaches_through.test(x.slot);
}

// What `from` reaches with something in between that is not `except`.
PartitionMerger::Bits PartitionMerger::reached_beyond(Item from, Item except) {
  Bits bits;
  for (const Item next : units_[from].successors)
    if (const Item root = find(next); root != except && root != from)
      bits.add(units_[root].reaches);
  return bits;
}

PartitionMerger::Item PartitionMerger::merge(Item self, Item other) {
  // torch.fx keeps the number of the larger one.
  const std::uint32_t id =
      units_[self].items.size() < units_[other].items.size() ? units_[other].id : units_[self].id;
  const auto leads_to = [&](Item from, Item to) {
    return units_[from].reaches.test(units_[to].slot);  // directly, since they may merge
  };
  Bits through = leads_to(self, other) ? reached_beyond(self, other) : units_[self].reaches_through;
  through.add(leads_to(other, self) ? reached_beyond(other, self) : units_[other].reaches_through);

  Bits reaches = units_[self].reaches;
  reaches.add(units_[other].reaches);
  reaches.clear(units_[self].slot);
  reaches.clear(units_[other].slot);
  // Whoever reached one of them now reaches what the other does; mostly that is nothing new.
  const bool self_is_older = units_[self].slot < units_[other].slot;
  const Unit& older = units_[self_is_older ? self : other];
  const Unit& younger = units_[self_is_older ? other : self];
  const bool is_news = !younger.predecessors.empty() ||
                       (!older.predecessors.empty() && !older.reaches.contains(reaches));
  const std::uint32_t slot = older.slot, dead = younger.slot;

  // The lists of the smaller one go to the larger one.
  auto size = [&](Item item) {
    return units_[item].items.size() + units_[item].successors.size() +
           units_[item].predecessors.size();
  };
  const Item root = size(self) >= size(other) ? self : other;
  const Item gone = root == self ? other : self;
  Unit &to = units_[root], &from = units_[gone];
  parent_[gone] = root;
  auto append = [](std::vector<Item>& list, std::vector<Item>& more) {
    list.insert(list.end(), more.begin(), more.end());
    more = {};
  };
  append(to.items, from.items);
  append(to.successors, from.successors);
  append(to.predecessors, from.predecessors);
  to.reaches = std::move(reaches);
  to.reaches_through = std::move(through);
  from.reaches = {};
  from.reaches_through = {};
  to.slot = slot;
  to.id = id;
  by_slot_[slot] = root;
  live_.clear(dead);
  while (!by_slot_.empty() && !live_.test(static_cast<std::uint32_t>(by_slot_.size() - 1)))
    by_slot_.pop_back();
  untried_.push_back(slot);
  if (is_news) update_ancestors(root, dead);
  return root;
}

void PartitionMerger::update_ancestors(Item merged, std::uint32_t dead_slot) {
  const std::uint32_t slot = units_[merged].slot;
  std::vector<Item> ancestors;
  mark_.resize(parent_.size());
  ++search_;
  mark_[merged] = search_;
  auto visit = [&](Item item) {
    for (const Item previous : units_[item].predecessors) {
      const Item root = find(previous);
      if (mark_[root] == search_) continue;
      mark_[root] = search_;
      ancestors.push_back(root);
    }
  };
  visit(merged);
  for (std::size_t i = 0; i < ancestors.size(); ++i) visit(ancestors[i]);
  for (const Item item : ancestors) {
    Unit& unit = units_[item];
    unit.reaches.clear(dead_slot);
    unit.reaches.set(slot);
    unit.reaches.add(units_[merged].reaches);
  }
  for (const Item item : ancestors) {
    Unit& unit = units_[item];
    if (unit.items.empty()) continue;  // not a partition
    unit.reaches_through.add(units_[merged].reaches);
    // A path through one of the two to the other is no path through something else any more.
    if (unit.reaches_through.test(slot) || unit.reaches_through.test(dead_slot)) {
      unit.reaches_through.clear(dead_slot);
      unit.reaches_through.clear(slot);
      for (const Item next : unit.successors)
        if (const Item root = find(next);
            root != merged && root != item && units_[root].reaches.test(slot)) {
          unit.reaches_through.set(slot);
          break;
        }
    }
    untried_.push_back(unit.slot);
  }
}

// Tries all partitions from slot `from` on, oldest first.
PartitionMerger::Item PartitionMerger::merge_with_all(Item self, std::uint32_t from) {
  for (;;) {
    const std::uint32_t slot = live_.first_without(units_[self].reaches_through, from);
    if (slot == kNone) return self;
    from = slot + 1;
    const Item other = by_slot_[slot];
    if (other != self && may_merge(self, other)) self = merge(self, other);
  }
}

// The oldest partition with all others; those that it was tried with before and that did not change
// since would be refused again.
void PartitionMerger::retry_oldest() {
  const std::uint32_t first = live_.first_without({}, 0);
  if (first == kNone) return;
  const Item oldest = by_slot_[first];
  const bool is_new = oldest_tried_ != oldest ||
                      std::find(untried_.begin(), untried_.end(), first) != untried_.end();
  if (is_new) {
    untried_.clear();
    oldest_tried_ = merge_with_all(oldest, first + 1);
  } else {
    std::vector<std::uint32_t> slots = std::exchange(untried_, {});
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    for (const std::uint32_t slot : slots) {
      if (slot == first || !live_.test(slot) || !may_merge(oldest, by_slot_[slot])) continue;
      // What it could not merge with before it may be able to now.
      untried_.clear();
      oldest_tried_ = merge_with_all(merge(oldest, by_slot_[slot]), slot + 1);
      break;
    }
  }
}

void PartitionMerger::add(std::span<const Item> successors, bool supported, bool horizontal) {
  const auto item = static_cast<Item>(parent_.size());
  parent_.push_back(item);
  units_.emplace_back();
  mark_.push_back(0);
  Unit& unit = units_.back();
  ++search_;
  for (const Item next : successors) {
    const Item root = find(next);
    if (mark_[root] == search_) continue;
    mark_[root] = search_;
    unit.successors.push_back(root);
    Unit& successor = units_[root];
    successor.predecessors.push_back(item);
    unit.reaches.add(successor.reaches);
    if (supported) unit.reaches_through.add(successor.reaches);
  }
  for (const Item root : unit.successors)
    if (!units_[root].items.empty()) unit.reaches.set(units_[root].slot);
  if (!supported) {
    if (horizontal) retry_oldest();
    return;
  }
  unit.items.push_back(item);
  unit.id = next_id_++;
  unit.slot = static_cast<std::uint32_t>(by_slot_.size());
  by_slot_.push_back(item);
  live_.set(unit.slot);
  untried_.push_back(unit.slot);
  if (horizontal) {
    merge_with_all(item, 0);
    return;
  }
  Item self = item;
  const std::vector<Item> joined = unit.successors;
  for (const Item next : joined) {
    const Item other = find(next);
    self = find(self);
    if (other != self && !units_[other].items.empty() && may_merge(self, other))
      self = merge(self, other);
  }
}

std::vector<PartitionMerger::Partition> PartitionMerger::partitions() const {
  std::vector<Partition> out;
  for (const Unit& unit : units_)
    if (!unit.items.empty()) out.push_back({unit.id, unit.items});
  std::sort(out.begin(), out.end(),
            [](const Partition& a, const Partition& b) { return a.id < b.id; });
  for (Partition& partition : out) std::sort(partition.items.begin(), partition.items.end());
  return out;
}

}  // namespace fx
