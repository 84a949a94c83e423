#include <any>

#include "fx/base/text.h"
#include "fx/graph/text.h"
#include "fx/graph/text_literals.h"

namespace fx {
namespace {

void append_target(std::string& out, std::string_view target) {
  if (text::is_plain_target(target))
    out += target;
  else
    text::append_quoted(out, target);
}

void append_key(std::string& out, std::string_view key) {
  if (is_identifier(key))
    out += key;
  else
    text::append_quoted(out, key);
}

void append_call(std::string& out, const Node& node) {
  out += "(args = ";
  text::append_tuple(out, node.args());
  out += ", kwargs = {";
  bool first = true;
  for (const KwArg& kwarg : node.kwargs()) {
    if (!first) out += ", ";
    first = false;
    append_key(out, kwarg.key.str());
    out += ": ";
    text::append_argument(out, kwarg.value);
  }
  out += "})";
}

// "return value": an output as Graph::output makes it, under its usual name.
bool is_plain_return(const Node& node) {
  return node.is_output() && node.name() == "output" && node.target() == "output" &&
         node.num_args() == 1 && node.kwargs().empty() && node.type().empty();
}

void append_node(std::string& out, const Node& node) {
  if (is_plain_return(node)) {
    out += "return ";
    text::append_argument(out, node.args()[0]);
    return;
  }
  out += '%';
  out += node.name();
  if (!node.type().empty()) {
    out += " : ";
    if (text::is_plain_type(node.type()))
      out += node.type();
    else
      text::append_quoted(out, node.type());
  }
  out += " = ";
  out += opcode_name(node.op());
  out += "[target=";
  append_target(out, node.target().str());
  out += ']';
  const bool bare = node.num_args() == 0 && node.kwargs().empty() &&
                    (node.is_placeholder() || node.op() == Opcode::kGetAttr);
  if (bare) return;
  if (node.is_placeholder() && node.num_args() == 1 && node.kwargs().empty()) {
    out += "(default=";
    text::append_argument(out, node.args()[0]);
    out += ')';
    return;
  }
  append_call(out, node);
}

// The value of a meta entry as an argument, if it has a text form.
std::optional<Argument> text_form(const std::any& value) {
  if (const auto* v = std::any_cast<std::string>(&value)) return Argument(*v);
  if (const auto* v = std::any_cast<bool>(&value)) return Argument(*v);
  if (const auto* v = std::any_cast<std::int64_t>(&value)) return Argument(*v);
  if (const auto* v = std::any_cast<double>(&value)) return Argument(*v);
  if (const auto* v = std::any_cast<Argument>(&value))
    if (!v->has_nodes()) return *v;
  return std::nullopt;
}

}  // namespace

std::string to_text(const Graph& graph, const TextOptions& options) {
  std::string out(text::kMagic);
  out += ' ';
  out += std::to_string(text::kVersion);
  out += '\n';
  for (const Node& node : graph.nodes()) {
    append_node(out, node);
    out += '\n';
    if (!options.meta) continue;
    for (const Meta::Entry& entry : node.meta()) {
      std::optional<Argument> value = text_form(entry.second);
      if (!value) continue;
      out += "  .";
      append_key(out, entry.first);
      out += " = ";
      text::append_argument(out, *value);
      out += '\n';
    }
  }
  return out;
}

std::string argument_text(const Argument& argument) {
  std::string out;
  text::append_argument(out, argument);
  return out;
}

}  // namespace fx
