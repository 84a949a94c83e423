#include "fx/graph/node_source.h"

#include <functional>

#include "fx/graph/graph.h"

namespace fx {
namespace {

constexpr std::size_t kMaxShownLevels = 10;

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string json_list(const std::vector<NodeSource>& sources) {
  std::string out = "[";
  for (const NodeSource& source : sources) out += (out.size() == 1 ? "" : ", ") + source.to_json();
  return out + "]";
}

}  // namespace

NodeSource::NodeSource(const Node& node, std::string_view pass,
                       std::vector<NodeSourceAction> made_by)
    : name(node.name()),
      target(node.target().str()),
      graph_id(reinterpret_cast<std::uintptr_t>(&node.graph())),
      pass_name(pass),
      actions(std::move(made_by)),
      from_node(fx::from_node(node)) {}

std::string NodeSource::action_string() const {
  std::string out;
  for (const NodeSourceAction action : actions)
    out += std::string(out.empty() ? "" : "+") +
           (action == NodeSourceAction::kCreate ? "create" : "replace");
  return out;
}

std::string NodeSource::print_readable(std::size_t indent) const {
  if (indent >= kMaxShownLevels) return {};
  std::string out = std::string(indent * 4, ' ') + "(name=" + name + ", pass_name=" + pass_name +
                    ", action=" + action_string() + ", graph_id=" + std::to_string(graph_id) +
                    ")\n";
  for (const NodeSource& source : from_node) out += source.print_readable(indent + 1);
  return out;
}

std::string NodeSource::to_json() const {
  std::string out = "{\"name\": ";
  append_json_string(out, name);
  out += ", \"target\": ";
  append_json_string(out, target);
  out += ", \"graph_id\": " + std::to_string(graph_id) + ", \"pass_name\": ";
  append_json_string(out, pass_name);
  out += ", \"action\": ";
  append_json_string(out, action_string());
  return out + ", \"from_node\": " + json_list(from_node) + "}";
}

std::size_t NodeSource::hash() const { return std::hash<std::string>{}(to_json()); }

std::vector<NodeSource> from_node(const Node& node) {
  const auto* sources = node.meta().get<std::vector<NodeSource>>("from_node");
  return sources ? *sources : std::vector<NodeSource>();
}

std::string get_graph_provenance_json(const Graph& graph) {
  std::string out = "{";
  for (const Node& node : graph.nodes()) {
    const auto* sources = node.meta().get<std::vector<NodeSource>>("from_node");
    if (!sources) continue;
    if (out.size() > 1) out += ", ";
    append_json_string(out, node.name());
    out += ": " + json_list(*sources);
  }
  return out + "}";
}

}  // namespace fx
