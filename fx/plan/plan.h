#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fx/base/error.h"
#include "fx/graph/bound_inputs.h"
#include "fx/graph/graph.h"
#include "fx/ops/builtins.h"
#include "fx/ops/call.h"
#include "fx/ops/value.h"

/// A graph made ready to run: everything that does not depend on the inputs is decided once.
namespace fx {

/// Index into the frame of a run. Slots are reused as soon as a value dies, so that a frame has as
/// many as values live at once.
using Slot = std::uint32_t;
constexpr Slot kNoSlot = ~Slot{0};

/// One argument of a step: a constant, a slot, or an aggregate of operands. Lists and dicts are
/// built anew in each run, also when all they hold is constant, since their holder may change them.
struct Operand {
  enum class Kind : std::uint8_t { kConstant, kSlot, kList, kTuple, kDict, kSlice };
  Kind kind = Kind::kConstant;
  bool last_use = false;  ///< the value dies here: it may be moved out of the slot
  Slot slot = kNoSlot;
  const Node* producer = nullptr;  ///< of a slot
  bool has_slots = false;          ///< here or inside
  Value constant;                  ///< unless has_slots
  std::vector<Operand> items;
  std::vector<Value> keys;  ///< of a dict
};

/// One overload with the arguments of a step laid out as its stack.
struct OperatorCall {
  struct Patch {
    std::uint32_t position;  ///< in the stack
    Operand operand;
  };

  const Overload* overload = nullptr;
  std::size_t num_returns = 0;
  std::vector<Value> stack;  ///< constants and defaults, converted once; None where patched
  /// For arithmetic: the same stack with its numbers as float32 instead of float64 or int64
  /// tensors, used when all tensors are float32 on the CPU. The result is the same, a conversion
  /// less.
  std::vector<Value> float_stack;
  std::vector<Patch> patches;
  /// Every patch is a slot that must hold a tensor: checked and moved without a conversion.
  bool direct = false;
  /// The tensors must share a device (two or more of them).
  bool one_device = false;
};

/// One node of the graph, ready to run.
struct Step {
  enum class Kind : std::uint8_t {
    kAttr,      ///< reads attribute `target` of the module
    kOperator,  ///< the first of `calls` whose patches fit; else as kFunction or kMethod
    kItem,      ///< element of a tuple at a constant index; else as kFunction
    kFunction,  ///< fx::call
    kMethod,    ///< fx::call_method
    kModule,    ///< calls submodule `target`
    kError,     ///< throws `error`
  };

  Kind kind = Kind::kError;
  const Node* node = nullptr;  ///< for messages: valid as long as the graph
  Slot result = kNoSlot;       ///< none when nobody reads the value
  Target target;
  const Function* function = nullptr;  ///< null for methods
  Builtin builtin = nullptr;
  std::vector<OperatorCall> calls;
  std::vector<Operand> args;
  std::vector<std::pair<Symbol, Operand>> kwargs;
  std::vector<Slot> releases;  ///< slots whose values die here
  ErrorCode error_code{};
  std::string error;
};

/// The executable form of a graph (see Executable): immutable, safe for any number of threads. It
/// belongs to the graph as it was when planned; later edits do not show. The graph must outlive it.
class Plan {
 public:
  /// Never fails on a broken graph: a step that cannot run says why when it is reached.
  /// O(nodes + arguments).
  explicit Plan(const Graph& graph);

  const InputSignature& signature() const noexcept { return signature_; }
  /// Where each placeholder's value goes; kNoSlot when nobody reads it.
  const std::vector<Slot>& input_slots() const noexcept { return input_slots_; }
  const std::vector<Step>& steps() const noexcept { return steps_; }
  /// What the graph returns; the constant None without an output node.
  const Operand& output() const noexcept { return output_; }
  /// Null without one.
  const Node* output_node() const noexcept { return output_node_; }
  /// When not empty, the output cannot be read: why.
  const std::string& output_error() const noexcept { return output_error_; }
  std::size_t num_slots() const noexcept { return num_slots_; }
  std::uint64_t graph_version() const noexcept { return graph_version_; }

  /// One line a step: "s0 = aten::add.Tensor(s0!, s1, alpha=1)"; "!" marks the last use of a value.
  std::string str() const;

 private:
  friend class Planner;

  InputSignature signature_;
  std::vector<Slot> input_slots_;
  std::vector<Step> steps_;
  Operand output_;
  const Node* output_node_ = nullptr;
  std::string output_error_;
  std::size_t num_slots_ = 0;
  std::uint64_t graph_version_ = 0;
};

/// "s0!", "[1, s2]".
std::string to_string(const Operand& operand);

}  // namespace fx
