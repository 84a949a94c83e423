#include "fx/interpret/debug.h"

#include <algorithm>
#include <iostream>

#include "fx/ops/call.h"
#include "fx/ops/effects.h"

namespace fx {
namespace {

constexpr std::string_view kPrintFunction = "fx.print_value";

std::string joined(const Values& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + summarize(values[i]);
  return out;
}

std::string tuple_text(const Values& values) {
  return "(" + joined(values) + (values.size() == 1 ? ",)" : ")");
}

Value print_value(Values args, KwValues) {
  std::cout << args[1].toStringRef() << ": " << to_string(args[0]) << std::endl;
  return {};
}

}  // namespace

std::string summarize(const Value& value) {
  if (value.isTensor()) return describe(value);
  if (value.isTuple()) return tuple_text(elements(value));
  if (value.isList()) return "[" + joined(elements(value)) + "]";
  if (value.isGenericDict()) {
    std::string out;
    for (const auto& item : value.toGenericDict())
      out += (out.empty() ? "" : ", ") + to_string(item.key()) + ": " + summarize(item.value());
    return "{" + out + "}";
  }
  return to_string(value);
}

std::string to_string(const Env& env) {
  std::string out = "{";
  for (auto [node, value] : env)
    out += (out.size() > 1 ? ", " : "") + std::string(node.name()) + ": " + to_string(value);
  return out + "}";
}

std::ostream& operator<<(std::ostream& out, const Env& env) { return out << to_string(env); }

NodeLog::NodeLog(Interpreter& interpreter, std::ostream& out) {
  before_ = interpreter.register_node_pre_hook(
      [&out](Node& node, const Values& args, const KwValues& kwargs) {
        out << node.name() << ": " << opcode_name(node.op()) << ' ' << node.target().str()
            << "\n  args: " << tuple_text(args) << '\n';
        if (kwargs.empty()) return;
        out << "  kwargs: {";
        for (std::size_t i = 0; i < kwargs.size(); ++i)
          out << (i ? ", " : "") << kwargs[i].key.str() << ": " << summarize(kwargs[i].value);
        out << "}\n";
      });
  after_ = interpreter.register_node_post_hook(
      [&out](Node&, const Value& output) { out << "  -> " << summarize(output) << '\n'; });
}

NodeLog::~NodeLog() {
  before_.remove();
  after_.remove();
}

HookHandle break_at(Interpreter& interpreter, std::vector<std::string> node_names,
                    Breakpoint callback) {
  std::sort(node_names.begin(), node_names.end());
  return interpreter.register_node_pre_hook(
      [&interpreter, names = std::move(node_names), callback = std::move(callback)](
          Node& node, const Values& args, const KwValues& kwargs) {
        if (std::binary_search(names.begin(), names.end(), node.name()))
          callback(interpreter, node, args, kwargs);
      });
}

Node& insert_observer(Node& node, std::string_view function, Args more_args) {
  Graph& graph = node.graph();
  const Target target = Target::function(function);
  has_side_effect(*target.function());
  Args args{node.is_output() ? (node.num_args() ? node.arg(0) : Argument()) : Argument(node)};
  args.insert(args.end(), more_args.begin(), more_args.end());
  if (node.is_output()) {
    auto at = graph.inserting_before(node);
    return graph.call_function(target, std::move(args));
  }
  Node* after = &node;
  if (node.is_placeholder())
    while (after->next() && after->next()->is_placeholder()) after = after->next();
  auto at = graph.inserting_after(*after);
  return graph.call_function(target, std::move(args));
}

Node& insert_print(Node& node, std::string_view label) {
  static const bool registered = [] {
    register_wrapped_function(kPrintFunction, print_value);
    return true;
  }();
  static_cast<void>(registered);
  return insert_observer(node, kPrintFunction, {label.empty() ? node.name() : label});
}

}  // namespace fx
