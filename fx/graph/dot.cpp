#include "fx/graph/dot.h"

#include <unordered_map>

#include "fx/base/utf8.h"

namespace fx {
namespace {

// A string of DOT without its quotes. Backslashes start an escape in labels, so they are doubled;
// control bytes and bytes that are no UTF-8, which Graphviz refuses, are shown as \xNN.
void append_escaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
      ++i;
      continue;
    }
    if (text[i] == '"' || text[i] == '\\') out += '\\';
    out += text.substr(i, length);
    i += length;
  }
}

// At most `limit` bytes, cut between characters.
std::string shortened(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit > 3 ? limit - 3 : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string_view color(Opcode op) {
  switch (op) {
    case Opcode::kPlaceholder:
      return "#d5e8d4";
    case Opcode::kGetAttr:
      return "#fff2cc";
    case Opcode::kCallModule:
      return "#dae8fc";
    case Opcode::kOutput:
      return "#f8cecc";
    default:
      return "#f5f5f5";
  }
}

class Writer {
 public:
  Writer(const Graph& graph, const DotOptions& options) : graph_(graph), options_(options) {}

  std::string write() {
    out_ = "digraph \"";
    append_escaped(out_, options_.title);
    out_ += "\" {\n  node [shape=" + options_.shape +
            ", style=\"rounded,filled\", fontname=\"Helvetica\"];\n";
    for (const Node& node : graph_.nodes())
      if (!is_skipped(node)) append_node(node);
    for (const Node& node : graph_.nodes())
      for (const Node* input : node.all_input_nodes()) {
        if (is_skipped(node) || is_skipped(*input)) continue;
        out_ += "  ";
        append_id(*input);
        out_ += " -> ";
        append_id(node);
        out_ += ";\n";
      }
    return out_ + "}\n";
  }

 private:
  bool is_skipped(const Node& node) const { return options_.skip && options_.skip(node); }

  void append_id(const Node& node) {
    auto [found, fresh] = ids_.emplace(&node, ids_.size());
    out_ += "n" + std::to_string(found->second);
  }

  void append_line(std::string_view text) {
    append_escaped(out_, shortened(text, options_.max_line));
    out_ += "\\n";
  }

  void append_node(const Node& node) {
    out_ += "  ";
    append_id(node);
    out_ += " [fillcolor=\"";
    append_escaped(out_, options_.color ? options_.color(node) : std::string(color(node.op())));
    out_ += "\", label=\"";
    for (const std::string& line : options_.label ? options_.label(node) : usual_label(node))
      append_line(line);
    out_ += "\"];\n";
    if (options_.sources)
      for (const std::vector<std::string>& lines : options_.sources(node))
        append_source(node, lines);
  }

  void append_source(const Node& node, const std::vector<std::string>& lines) {
    const std::string id = "s" + std::to_string(num_sources_++);
    out_ += "  " + id + " [fillcolor=\"";
    out_ += color(Opcode::kGetAttr);
    out_ += "\", label=\"";
    for (const std::string& line : lines) append_line(line);
    out_ += "\"];\n  " + id + " -> ";
    append_id(node);
    out_ += ";\n";
  }

  std::vector<std::string> usual_label(const Node& node) const {
    std::vector<std::string> lines{std::string(node.name()),
                                   std::string(opcode_name(node.op())) + " " + node.target().str()};
    if (!node.type().empty()) lines.push_back(": " + node.type());
    if (!options_.arguments) return lines;
    std::string arguments = node.num_args() ? repr(node.args(), "%") : "";
    if (!node.kwargs().empty()) arguments += " " + repr(node.kwargs(), "%");
    if (!arguments.empty()) lines.push_back(std::move(arguments));
    return lines;
  }

  const Graph& graph_;
  const DotOptions& options_;
  std::unordered_map<const Node*, std::size_t> ids_;  // also of nodes a broken graph refers to
  std::size_t num_sources_ = 0;
  std::string out_;
};

}  // namespace

std::string to_dot(const Graph& graph, const DotOptions& options) {
  return Writer(graph, options).write();
}

}  // namespace fx
