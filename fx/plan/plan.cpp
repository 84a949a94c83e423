#include "fx/plan/plan.h"

#include <algorithm>

#include "fx/graph/argument_value.h"
#include "fx/graph/last_uses.h"
#include "fx/graph/node_error.h"
#include "fx/ops/device_check.h"
#include "fx/plan/operator_call.h"

namespace fx {
namespace {

// Marks the operands after which nothing reads their slot: for each dying slot the last one in the
// order of evaluation.
class LastUseMarker {
 public:
  explicit LastUseMarker(const std::vector<Slot>& dying) : dying_(dying) {}

  // Call with the operands from last to first.
  void mark(Operand& operand) {
    for (auto item = operand.items.rbegin(); item != operand.items.rend(); ++item) mark(*item);
    operand.last_use = false;
    if (operand.kind != Operand::Kind::kSlot) return;
    auto found = std::find(dying_.begin(), dying_.end(), operand.slot);
    if (found == dying_.end()) return;
    operand.last_use = true;
    dying_.erase(found);
  }

 private:
  std::vector<Slot> dying_;
};

}  // namespace

/// Walks the graph once, handing out slots as values are made and taking them back as they die.
class Planner {
 public:
  Planner(Plan& plan, const Graph& graph)
      : plan_(plan), graph_(graph), last_uses_(graph), slots_(graph.id_bound(), kUndefined) {}

  void run() {
    plan_.signature_ = InputSignature(graph_);
    plan_.graph_version_ = graph_.version();
    // All inputs are there from the start, wherever their placeholders stand.
    for (const auto& parameter : plan_.signature_.parameters) {
      const bool read = !dies_at_once(*parameter.node);
      input_slots_.push_back(read ? take_slot() : kNoSlot);
    }
    plan_.input_slots_ = input_slots_;
    std::size_t next_input = 0;
    plan_.steps_.reserve(graph_.size());
    for (const Node& node : graph_.nodes()) {
      if (node.is_placeholder()) {
        slots_[node.id()] = input_slots_[next_input++];
        continue;
      }
      if (node.is_output()) {
        plan_output(node);
        break;
      }
      plan_.steps_.push_back(plan_step(node));
    }
    plan_.num_slots_ = num_slots_;
  }

 private:
  // A value that does not exist (yet), as opposed to kNoSlot: one that nobody reads.
  static constexpr Slot kUndefined = kNoSlot - 1;

  bool dies_at_once(const Node& node) const {
    for (const Node* dead : last_uses_.after(node))
      if (dead == &node) return true;
    return false;
  }

  Slot take_slot() {
    if (free_.empty()) return num_slots_++;
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }

  Operand operand_of(const Argument& argument) {
    Operand operand;
    operand.has_slots = argument.has_nodes();
    if (!operand.has_slots) operand.constant = value_of(argument);
    auto add_items = [&](std::span<const Argument> items) {
      for (const Argument& item : items) operand.items.push_back(operand_of(item));
    };
    switch (argument.kind()) {
      case Argument::Kind::kNode: {
        const Node& input = argument.node();
        const bool here = &input.graph() == &graph_ && !input.is_erased();
        operand.kind = Operand::Kind::kSlot;
        operand.producer = &input;
        operand.slot = here ? slots_[input.id()] : kUndefined;
        if (operand.slot >= kUndefined && !missing_) missing_ = &input;
        break;
      }
      case Argument::Kind::kList:
        operand.kind = Operand::Kind::kList;
        add_items(argument.items());
        break;
      case Argument::Kind::kDict:
        operand.kind = Operand::Kind::kDict;
        for (const DictItem& item : argument.dict_items()) {
          operand.keys.push_back(value_of(item.first));
          operand.items.push_back(operand_of(item.second));
        }
        break;
      case Argument::Kind::kTuple:
      case Argument::Kind::kSlice:
        // Immutable as long as nothing inside is mutable: still built anew, tuples may hold lists.
        operand.kind = argument.kind() == Argument::Kind::kTuple ? Operand::Kind::kTuple
                                                                 : Operand::Kind::kSlice;
        add_items(argument.items());
        break;
      default:
        break;
    }
    return operand;
  }

  void read_arguments(const Node& node, Step& step) {
    missing_ = nullptr;
    step.args.reserve(node.num_args());
    for (const Argument& argument : node.args()) step.args.push_back(operand_of(argument));
    for (const KwArg& argument : node.kwargs())
      step.kwargs.emplace_back(argument.key, operand_of(argument.value));
  }

  Step plan_step(const Node& node) {
    Step step;
    step.node = &node;
    step.target = node.target();
    read_arguments(node, step);
    switch (node.op()) {
      case Opcode::kGetAttr:
        step.kind = Step::Kind::kAttr;
        break;
      case Opcode::kCallModule:
        step.kind = Step::Kind::kModule;
        break;
      case Opcode::kCallFunction:
        plan_function(step);
        break;
      case Opcode::kCallMethod:
        plan_method(step);
        break;
      default:
        step.kind = Step::Kind::kError;
        break;
    }
    if (missing_) {
      step.kind = Step::Kind::kError;
      step.calls.clear();
      set_missing(node, step.error_code, step.error);
    }
    release(node, step);
    if (!dies_at_once(node)) step.result = take_slot();
    slots_[node.id()] = step.result;
    return step;
  }

  void plan_function(Step& step) {
    step.kind = Step::Kind::kFunction;
    step.function = step.target.function();
    if (!step.function) {
      step.kind = Step::Kind::kError;
      step.error_code = ErrorCode::kNotRunnable;
      step.error = "the target " + step.target.str() + " is no function";
      return;
    }
    const FunctionKind kind = step.function->kind();
    if (kind == FunctionKind::kBuiltin || kind == FunctionKind::kTorch)
      step.builtin = find_builtin(step.function->name());
    if (missing_ || kind == FunctionKind::kWrapped) return;
    if (step.builtin)
      plan_builtin(step);
    else if (kind != FunctionKind::kBuiltin)
      set_calls(step, plan_operator_calls(OpInfo::of(*step.function), step.args, step.kwargs,
                                          wants_one_device(*step.function)));
  }

  // A built-in whose operands turn out to be tensors is an operator.
  static void plan_builtin(Step& step) {
    static const Function* const getitem = Function::get("operator.getitem");
    if (step.function == getitem && step.kwargs.empty() && step.args.size() == 2 &&
        step.args[0].kind == Operand::Kind::kSlot && step.args[1].constant.isInt()) {
      step.kind = Step::Kind::kItem;
      return;
    }
    const Function* of_tensors = tensor_function_of(step.function->name());
    if (!of_tensors || !step.kwargs.empty()) return;
    auto calls = plan_operator_calls(OpInfo::of(*of_tensors), step.args, step.kwargs,
                                     wants_one_device(*step.function));
    // Only a tensor makes it one: constants and other values are the built-in's own matter.
    std::erase_if(calls,
                  [](const OperatorCall& call) { return !call.direct || call.patches.empty(); });
    set_calls(step, std::move(calls));
  }

  static void set_calls(Step& step, std::vector<OperatorCall> calls) {
    if (calls.empty()) return;
    step.calls = std::move(calls);
    step.kind = Step::Kind::kOperator;
  }

  void plan_method(Step& step) {
    step.kind = Step::Kind::kMethod;
    if (missing_ || step.args.empty() || step.args[0].kind != Operand::Kind::kSlot ||
        !is_operator_method(step.target.str()))
      return;
    const OpInfo& info = OpInfo::of_method(step.target.str());
    if (info.overloads.empty()) return;
    std::vector<Operand> args = step.args;
    if (!spread_list(info.overloads[0], args)) return;
    set_calls(step, plan_operator_calls(info, args, step.kwargs,
                                        wants_one_device_method(step.target.str())));
  }

  // view(2, 3) means view([2, 3]): joins constant ints. False when the values decide what is meant.
  static bool spread_list(const Overload& first, std::vector<Operand>& args) {
    if (args.size() < 2 || !gathers_ints(first)) return true;
    const auto is_int = [](const Operand& operand) { return operand.constant.isInt(); };
    if (!is_int(args[1])) return args[1].kind != Operand::Kind::kSlot;
    if (!std::all_of(args.begin() + 1, args.end(), is_int)) return false;
    c10::List<std::int64_t> list;
    for (std::size_t i = 1; i < args.size(); ++i) list.push_back(args[i].constant.toInt());
    args.resize(2);
    args[1] = Operand();
    args[1].constant = std::move(list);
    return true;
  }

  void plan_output(const Node& node) {
    Step step;
    read_arguments(node, step);
    plan_.output_node_ = &node;
    if (missing_) {
      ErrorCode code{};
      set_missing(node, code, plan_.output_error_);
      return;
    }
    if (step.args.empty()) {
      plan_.output_error_ = kEmptyOutput;
      return;
    }
    plan_.output_ = std::move(step.args[0]);
    LastUseMarker marker(dying_slots(node));
    marker.mark(plan_.output_);
  }

  void set_missing(const Node& node, ErrorCode& code, std::string& text) const {
    try {
      throw_missing_value(node, *missing_);
    } catch (const Error& error) {
      code = error.code();
      text = error.text();
    }
  }

  std::vector<Slot> dying_slots(const Node& node) const {
    std::vector<Slot> dying;
    for (const Node* dead : last_uses_.after(node))
      if (dead != &node && slots_[dead->id()] < kUndefined) dying.push_back(slots_[dead->id()]);
    return dying;
  }

  void release(const Node& node, Step& step) {
    step.releases = dying_slots(node);
    if (step.releases.empty()) return;
    LastUseMarker marker(step.releases);
    for (auto kwarg = step.kwargs.rbegin(); kwarg != step.kwargs.rend(); ++kwarg)
      marker.mark(kwarg->second);
    for (auto arg = step.args.rbegin(); arg != step.args.rend(); ++arg) marker.mark(*arg);
    for (OperatorCall& call : step.calls) {
      LastUseMarker of_call(step.releases);
      for (auto patch = call.patches.rbegin(); patch != call.patches.rend(); ++patch) {
        of_call.mark(patch->operand);
        // LibTorch takes optional tensors off the stack: the slot keeps them for the error message.
        if (call.overload->rules[patch->position].conversion == Conversion::kOptionalTensor)
          patch->operand.last_use = false;
      }
    }
    free_.insert(free_.end(), step.releases.begin(), step.releases.end());
  }

  Plan& plan_;
  const Graph& graph_;
  LastUses last_uses_;
  std::vector<Slot> slots_;  // by node id
  std::vector<Slot> input_slots_;
  std::vector<Slot> free_;
  Slot num_slots_ = 0;
  const Node* missing_ = nullptr;  // the first unreadable value of the current node
};

Plan::Plan(const Graph& graph) { Planner(*this, graph).run(); }

}  // namespace fx
