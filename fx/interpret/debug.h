#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "fx/interpret/interpreter.h"

/// Watching a graph run.
namespace fx {

/// One line for a value: tensors by dtype and shape, numbers and strings in full, aggregates item
/// by item.
std::string summarize(const Value& value);

/// The nodes that have a value, by name in the order in which they got it, as Python prints a dict:
/// "{x: tensor([1., 2.]), add: tensor([2., 3.])}".
std::string to_string(const Env& env);
std::ostream& operator<<(std::ostream& out, const Env& env);

/// While it lives, writes for every node its name, opcode and target, its resolved arguments and a
/// summary of its result:
///
///     add: call_function operator.add
///       args: (Tensor f32[2, 3], 1)
///       -> Tensor f32[2, 3]
class NodeLog {
 public:
  NodeLog(Interpreter& interpreter, std::ostream& out);
  NodeLog(const NodeLog&) = delete;
  NodeLog& operator=(const NodeLog&) = delete;
  ~NodeLog();

 private:
  HookHandle before_;
  HookHandle after_;
};

/// Called when a chosen node is about to run: a place for a debugger's breakpoint, or to look at
/// interpreter.env().
using Breakpoint =
    std::function<void(Interpreter&, Node&, const Values& args, const KwValues& kwargs)>;

/// Calls `callback` before each of the named nodes, with its resolved arguments.
HookHandle break_at(Interpreter& interpreter, std::vector<std::string> node_names,
                    Breakpoint callback);

/// Inserts a call of `function` (a wrapped function, which is marked as having side effects so that
/// no pass drops it) on the value of `node`, right after it: after the last placeholder for a
/// placeholder, before the output for an output, whose returned value is then observed. The values
/// that flow stay the same. Returns the new node.
Node& insert_observer(Node& node, std::string_view function, Args more_args = {});

/// Inserts a node that prints "label: value" to standard output when it runs; the label is the
/// node's name if empty.
Node& insert_print(Node& node, std::string_view label = {});

}  // namespace fx
