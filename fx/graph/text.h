#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fx/graph/graph.h"

/// The .fx text form of a graph (docs/text-format.md): exact, readable, stable under git. It looks
/// like torch.fx's str(graph), with everything that one leaves out: quotes, signed zeros, names of
/// outputs.
namespace fx {

struct TextOptions {
  /// Also the metadata that has a text form: values of type std::string, bool, std::int64_t,
  /// double, and fx::Argument without nodes, each on a line of its own below the node.
  bool meta = false;
};

/// The graph as text. parse_text gives an equal graph back, and its text is the same again: all
/// nodes with their names, types and arguments of every kind. O(size of the text). Never throws on
/// a broken graph, though arguments that are erased or belong to another graph do not parse.
std::string to_text(const Graph& graph, const TextOptions& options = {});

struct ParseOptions {
  /// Also accepts a graph that lint refuses: nodes used before their definition. Without it that is
  /// an error with the line at fault.
  bool any_order = false;
};

/// Reads what to_text writes, and what people write by hand: comments from `#` to the end of the
/// line, blank lines, free spacing, and torch.fx's "[num_users=2]", which is ignored. Linear in the
/// text; any bytes are safe input.
/// @throws ParseError with line, column, what was wanted and found, and the line.
std::shared_ptr<Graph> parse_text(std::string_view text, const ParseOptions& options = {});

/// One argument in the text form, nodes as %name. `parse_argument` reads it back.
std::string argument_text(const Argument& argument);
/// @param graph resolves %names; without it they are an error.
/// @throws ParseError
Argument parse_argument(std::string_view text, const Graph* graph = nullptr);

}  // namespace fx
