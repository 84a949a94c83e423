#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/capture/recording.h"
#include "fx/capture/size_expr.h"

namespace fx {

/// Recordings of one program on inputs of several sizes, compared node by node and made one graph,
/// in which the numbers that vary are expressions of sizes.
class SizeGraph {
 public:
  /// A size of an input and what it was in each run.
  struct Symbol {
    std::string name;
    std::string input;
    std::int64_t dim;
    Samples samples;
  };
  /// Where a run differs from the first in a way that no expression covers.
  struct Difference {
    std::size_t run;
    std::string text;
    CallStack where;
  };

  /// The recordings must have sizes; they outlive this.
  SizeGraph(std::vector<Symbol> symbols, std::vector<Recording>& runs);

  /// Edits the graph of the first run. After a difference it is of no use any more.
  std::optional<Difference> generalise();
  /// Whether expressions were used that few runs do not tell from others.
  bool wants_more_runs() const noexcept { return solver_.guessed(); }
  /// Whether another run, on inputs with these sizes (one for each symbol), is what the graph does.
  bool holds_for(const Recording& other, const std::vector<std::int64_t>& sizes) const;

 private:
  using Versions = std::vector<const Argument*>;  // one for each run
  using Leaf = std::function<Argument(const Versions&)>;
  /// How a number that varies follows from sizes.
  struct Varying {
    enum class Form : std::uint8_t { kInt, kFloat, kReciprocal };  // of the expression
    SizeExpr expr;
    Form form;
  };
  struct InnerSize {
    std::size_t node;
    std::size_t dim;
  };
  struct Numbered {
    std::vector<const Node*> nodes;
    std::unordered_map<const Node*, std::size_t> index;
  };

  static Numbered number(const Graph& graph);
  static Argument walk(const Versions& versions, const Leaf& leaf);
  void compare_nodes(std::size_t index, const std::vector<const Numbered*>& runs,
                     const std::vector<const GraphModule::Constants*>& constants) const;
  Argument merge(std::size_t index, const Versions& versions);
  std::optional<Varying> solve(const Versions& versions);
  void learn_sizes(std::size_t index);
  Argument emit(const Varying& varying, Node& before);
  Argument emit(const SizeExpr& expr, Node& before);
  Node& size_node(std::size_t index);

  std::vector<Symbol> symbols_;
  std::vector<Recording>& runs_;
  std::vector<Numbered> numbered_;
  std::vector<std::pair<Args, Kwargs>> originals_;  // of the first run's nodes
  SizeSolver solver_;
  std::vector<InnerSize> inner_;  // what the solver knows besides the symbols
  std::map<std::pair<std::size_t, std::size_t>, Varying> varying_;  // by node and leaf
  std::size_t leaf_ = 0;
  std::map<std::size_t, Node*> size_nodes_;
  std::map<std::string, Node*> emitted_;
};

}  // namespace fx
