#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph.h"
#include "tests/random/choices.h"

namespace fx::fuzz {

/// Makes random edits of a graph, each one legal: what lint accepts before it accepts after.
class Editor {
 public:
  struct Options {
    /// Keeps the strict rules of lint (placeholders first, one output at the end).
    bool strict = false;
    /// Keeps what the graph computes, if nothing in it writes or draws random numbers.
    bool keep_meaning = false;
  };

  Editor(Choices& choices, std::shared_ptr<Graph> graph, Options options)
      : choices_(choices), graph_(std::move(graph)), options_(options) {}

  /// One edit. @return what it was, for messages; empty if the graph had no place for it
  std::string step();

  /// An edit that has to fail, and what is wrong if it does not or changes the graph.
  std::string refused_step();

  Graph& graph() noexcept { return *graph_; }
  const std::shared_ptr<Graph>& graph_ptr() const noexcept { return graph_; }

 private:
  using Edit = std::string (Editor::*)();

  // A node for which `wanted` holds, or null.
  Node* pick(auto&& wanted);
  bool is_fixed(const Node& node) const;
  // A place for new nodes: right before the node.
  Node* pick_place();
  Argument value(const Node& before, int depth = 0);
  Args values(const Node& before);

  // Those that keep the meaning.
  std::string rename();
  std::string annotate();
  std::string insert_alias();
  std::string copy_for_some_users();
  std::string move();
  std::string erase_unused();
  std::string eliminate_dead_code();
  std::string clone();
  // The others.
  std::string insert();
  std::string replace_uses();
  std::string replace_input();
  std::string change_args();
  std::string change_kwargs();
  std::string copy();
  std::string copy_graph();
  std::string retarget();

  Choices& choices_;
  std::shared_ptr<Graph> graph_;
  Options options_;
};

}  // namespace fx::fuzz
