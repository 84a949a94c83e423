#include "fx/graph/node_error.h"

#include <c10/util/Exception.h>

#include <exception>

namespace fx {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// The codes that this library gives to faults of the graph that is running. An error that already
// carries a node comes from a graph inside of this one: for this graph the node failed.
ErrorCode code_of_current_exception() {
  try {
    throw;
  } catch (const RunError& error) {
    const bool from_inside = dynamic_cast<const std::nested_exception*>(&error) != nullptr;
    switch (error.code()) {
      case ErrorCode::kMissingInput:
      case ErrorCode::kMissingValue:
      case ErrorCode::kMissingAttr:
      case ErrorCode::kDeviceMismatch:
        return from_inside ? ErrorCode::kNodeFailed : error.code();
      case ErrorCode::kCancelled:  // no fault of any node, however deep it was noticed
        return error.code();
      default:
        return ErrorCode::kNodeFailed;
    }
  } catch (...) {
    return ErrorCode::kNodeFailed;
  }
}

// The module that the node calls or comes from: "encoder.layer1 (EncoderLayer)".
std::string module_path(const Node& node) {
  if (node.op() == Opcode::kCallModule) return node.target().str();
  using ModuleStack = std::vector<std::pair<std::string, std::string>>;
  const auto* stack = node.meta().get<ModuleStack>("nn_module_stack");
  if (!stack || stack->empty()) return {};
  return stack->back().first + " (" + stack->back().second + ")";
}

std::string described(const Value& value) {
  try {
    return describe(value);
  } catch (...) {
    return "a value that cannot be described";
  }
}

}  // namespace

std::string current_exception_text() {
  try {
    throw;
  } catch (const Error& error) {
    return error.text();
  } catch (const c10::Error& error) {
    return trimmed(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return trimmed(error.what());
  } catch (...) {
    return "unknown exception";
  }
}

void rethrow_for_node(const Node& node, const NamedValues& inputs, std::string_view note) {
  std::string text = current_exception_text();
  text += "\n\nWhile executing " + node.format_node();
  for (const auto& [name, value] : inputs) text += "\n  " + name + ": " + described(value);
  if (const std::string module = module_path(node); !module.empty()) text += "\nModule: " + module;
  if (!note.empty()) text += "\n" + std::string(note);
  if (const std::string trace = node.stack_trace(); !trace.empty())
    text += "\nOriginal traceback:\n" + trimmed(trace);
  std::throw_with_nested(RunError(code_of_current_exception(), text));
}

void throw_missing_value(const Node& user, const Node& value) {
  throw RunError(ErrorCode::kMissingValue,
                 "Node " + std::string(user.name()) + " referenced nonexistent value " +
                     std::string(value.name()) + "! Run Graph.lint() to diagnose such issues");
}

}  // namespace fx
