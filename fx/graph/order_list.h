#pragma once

#include <cstdint>

namespace fx::detail {

/// Order maintenance for a circular doubly linked list: every element carries a label that grows
/// along the list, so that "a before b" is one comparison. Inserting between two elements whose
/// labels are adjacent relabels the smallest enclosing label range that is sparse enough (Bender,
/// Cole, Demaine, Farach-Colton, Zito: "Two simplified algorithms for maintaining order in a list",
/// 2002), which costs O(log n) amortised and O(1) for appending.
///
/// T has the fields prev_, next_ and order_; the sentinel has label 0 and all others labels in
/// [1, kMaxLabel].
constexpr std::uint64_t kMaxLabel = std::uint64_t{1} << 62;

template <typename T, typename Links>
class OrderList {
 public:
  /// Gives `node`, already linked in, a label between those of its neighbours.
  static void label(T& node, T& root) {
    T* before = Links::prev(node);
    T* after = Links::next(node);
    for (;;) {
      const std::uint64_t low = Links::order(*before);
      const std::uint64_t high = after == &root ? kMaxLabel : Links::order(*after);
      const std::uint64_t gap = high - low;
      if (gap >= 2) {
        // Appending takes fixed steps, so that the range is not halved each time.
        constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
        Links::order(node) = low + (after == &root && gap > 2 * kStep ? kStep : gap / 2);
        return;
      }
      relabel_around(node, root);
    }
  }

 private:
  static void relabel_around(T& node, T& root) {
    T* first = &node;
    T* last = &node;
    std::uint64_t count = 1;
    // The label the new node would have: that of a neighbour which has one.
    T* anchor = Links::prev(node) != &root ? Links::prev(node) : Links::next(node);
    const std::uint64_t center = Links::order(*anchor);
    double capacity = 1;
    for (int bits = 1; bits <= 62; ++bits) {
      const std::uint64_t size = std::uint64_t{1} << bits;
      const std::uint64_t base = center & ~(size - 1);
      const std::uint64_t end = base + (size - 1);
      while (Links::prev(*first) != &root && Links::order(*Links::prev(*first)) >= base) {
        first = Links::prev(*first);
        ++count;
      }
      while (Links::next(*last) != &root && Links::order(*Links::next(*last)) <= end) {
        last = Links::next(*last);
        ++count;
      }
      capacity *= 1.4;
      const std::uint64_t step = size / (count + 1);
      if (static_cast<double>(count) < capacity && step >= 2) {
        std::uint64_t label = base;
        for (T* n = first;; n = Links::next(*n)) {
          label += step;
          Links::order(*n) = label;
          if (n == last) break;
        }
        return;
      }
    }
  }
};

}  // namespace fx::detail
