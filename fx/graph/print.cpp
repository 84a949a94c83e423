#include <algorithm>
#include <array>
#include <iostream>

#include "fx/base/text.h"
#include "fx/graph/graph.h"

namespace fx {
namespace {

// Python's str() of an argument: bare text and short device names, where repr() quotes. Text with
// control characters is quoted, so that a node stays one line.
void append_str(std::string& out, const Argument& argument) {
  auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (argument.kind() == Argument::Kind::kDevice)
    out += argument.to_device().str();
  else if (argument.kind() == Argument::Kind::kString &&
           std::ranges::none_of(argument.to_string(), is_control))
    out += argument.to_string();
  else
    append_repr(out, argument);
}

// torch.fx's _format_arg: nodes as %name, and str() of everything else, also of the keys of a dict.
void append_formatted(std::string& out, const Argument& argument) {
  auto append_items = [&out](std::span<const Argument> items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      append_formatted(out, items[i]);
    }
  };
  switch (argument.kind()) {
    case Argument::Kind::kNode:
      append_repr(out, argument, "%");
      break;
    case Argument::Kind::kList:
      out += '[';
      append_items(argument.items());
      out += ']';
      break;
    case Argument::Kind::kTuple:
      out += '(';
      append_items(argument.items());
      out += argument.items().size() == 1 ? ",)" : ")";
      break;
    case Argument::Kind::kDict: {
      out += '{';
      bool first = true;
      for (const DictItem& item : argument.dict_items()) {
        if (!first) out += ", ";
        first = false;
        append_str(out, item.first);
        out += ": ";
        append_formatted(out, item.second);
      }
      out += '}';
      break;
    }
    default:
      append_str(out, argument);
  }
}

std::string formatted(std::span<const Argument> args) {
  std::string out = "(";
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i) out += ", ";
    append_formatted(out, args[i]);
  }
  return out + (args.size() == 1 ? ",)" : ")");
}

std::string formatted(std::span<const KwArg> kwargs) {
  std::string out = "{";
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    if (i) out += ", ";
    out += kwargs[i].key.str() + ": ";
    append_formatted(out, kwargs[i].value);
  }
  return out + "}";
}

}  // namespace

std::string Node::format_node() const {
  const std::string name(this->name());
  if (op_ == Opcode::kOutput) {
    std::string out = "return";
    if (num_args() > 0) {
      out += ' ';
      append_str(out, args()[0]);
    }
    return out;
  }
  std::string out = "%" + name + " : ";
  if (!type().empty()) out += type() + " ";
  out += "[num_users=" + std::to_string(num_users_) + "] = " + std::string(opcode_name(op_)) +
         "[target=" + target_.str() + "]";
  if (op_ == Opcode::kPlaceholder) {
    if (num_args() > 0) {
      out += "(default=";
      append_str(out, args()[0]);
      out += ')';
    }
    return out;
  }
  if (op_ == Opcode::kGetAttr) return out;
  return out + "(args = " + formatted(args()) + ", kwargs = " + formatted(kwargs()) + ")";
}

std::string Graph::str() const {
  std::string out = "graph():";
  for (const Node& node : nodes()) {
    out += "\n    ";
    out += node.format_node();
  }
  return out;
}

std::string Graph::tabular() const {
  // Width counts code points, so that UTF-8 in attribute names does not shift the columns.
  auto width = [](const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  };
  constexpr std::size_t kColumns = 5;
  std::vector<std::array<std::string, kColumns>> rows;
  rows.reserve(size_ + 1);
  rows.push_back({"opcode", "name", "target", "args", "kwargs"});
  for (const Node& node : nodes())
    rows.push_back({std::string(opcode_name(node.op())), std::string(node.name()),
                    node.target().str(), repr(node.args()), repr(node.kwargs())});
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], width(row[c]));
  std::string out;
  auto append_row = [&](const std::array<std::string, kColumns>& row) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (c) out += "  ";
      out += row[c];
      if (c + 1 < kColumns) out.append(widths[c] - width(row[c]), ' ');
    }
    out += '\n';
  };
  append_row(rows[0]);
  for (std::size_t c = 0; c < kColumns; ++c) {
    if (c) out += "  ";
    out.append(widths[c], '-');
  }
  out += '\n';
  for (std::size_t r = 1; r < rows.size(); ++r) append_row(rows[r]);
  return out;
}

void Graph::print_tabular() const { print_tabular(std::cout); }
void Graph::print_tabular(std::ostream& out) const { out << tabular(); }

std::ostream& operator<<(std::ostream& out, const Graph& graph) { return out << graph.str(); }
std::ostream& operator<<(std::ostream& out, const Node& node) { return out << node.name(); }

}  // namespace fx
