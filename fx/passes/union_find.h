#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace fx {

/// Disjoint sets of the numbers below a bound (torch.fx.experimental.optimization.UnionFind).
/// find and join are nearly O(1): path halving, union by size (Tarjan 1975).
class UnionFind {
 public:
  /// @param count number of elements that are there from the start, each a set of its own.
  explicit UnionFind(std::size_t count = 0) { grow(count); }

  std::size_t size() const noexcept { return parents_.size(); }
  /// Adds one element, a set of its own, and returns it.
  std::size_t make_set() {
    grow(size() + 1);
    return size() - 1;
  }
  /// Makes elements up to `count`, each a set of its own.
  void grow(std::size_t count) {
    const std::size_t from = size();
    if (count <= from) return;
    parents_.resize(count);
    std::iota(parents_.begin() + static_cast<std::ptrdiff_t>(from), parents_.end(), from);
    sizes_.resize(count, 1);
  }
  /// The element that stands for the set of `element`.
  std::size_t find(std::size_t element) {
    while (parents_[element] != element) element = parents_[element] = parents_[parents_[element]];
    return element;
  }
  /// Makes one set of two. Returns the element that stands for it.
  std::size_t join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return a;
    if (sizes_[a] < sizes_[b]) std::swap(a, b);
    parents_[b] = a;
    sizes_[a] += sizes_[b];
    return a;
  }
  bool same(std::size_t a, std::size_t b) { return find(a) == find(b); }

 private:
  std::vector<std::size_t> parents_;
  std::vector<std::size_t> sizes_;
};

}  // namespace fx
