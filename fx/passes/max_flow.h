#pragma once

#include <cstdint>
#include <vector>

namespace fx {

/// A network of directed edges with capacities, for its smallest cut. Dinic 1970: O(V^2 E), and
/// far less on the nearly acyclic networks of programs.
class FlowNetwork {
 public:
  using Vertex = std::uint32_t;
  /// More than any sum of the others: an edge that no cut takes.
  static constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

  explicit FlowNetwork(std::size_t vertices) : first_(vertices, kNone) {}

  /// Capacities are 0 or more; those below kUnlimited must sum up to less than that.
  void add_edge(Vertex from, Vertex to, std::int64_t capacity);

  struct Cut {
    /// The sum of the edges that are cut; kUnlimited if no cut spares the unlimited ones.
    std::int64_t value = 0;
    /// By vertex: whether it is on the side of the sink. Of all smallest cuts the one nearest to
    /// the sink.
    std::vector<bool> behind;
    /// Where there is no cut: the vertices of a path of unlimited edges, source to sink.
    std::vector<Vertex> unlimited_path;
  };
  /// The smallest cut. Uses the network up: call it once.
  Cut min_cut(Vertex source, Vertex sink);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Edges come in pairs: edge i and its opposite i ^ 1.
  struct Edge {
    Vertex to;
    std::uint32_t next;  // of the same vertex
    std::int64_t left;   // what may still flow
    bool unlimited;
  };

  bool find_levels(Vertex source, Vertex sink);
  std::int64_t push_along_a_path(Vertex source, Vertex sink);
  std::vector<Vertex> find_unlimited_path(Vertex source, Vertex sink) const;

  std::vector<std::uint32_t> first_;  // by vertex
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> level_;    // by vertex: steps from the source
  std::vector<std::uint32_t> current_;  // by vertex: edges before it lead nowhere
};

}  // namespace fx
