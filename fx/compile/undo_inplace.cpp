#include "fx/compile/undo_inplace.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/analysis/alias.h"
#include "fx/graph/tensor_meta.h"
#include "fx/ops/op_info.h"

namespace fx::loops {
namespace {

// In-place operators "aten::<name>_" whose functional form computes the same in the dtype of the
// first argument, if the others do not raise it.
constexpr std::string_view kNames[] = {
    "abs",         "add",       "addcdiv",  "addcmul",    "ceil", "clamp",      "clamp_max",
    "clamp_min",   "cos",       "div",      "elu",        "exp",  "expm1",      "floor",
    "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "lerp", "log",        "log1p",
    "masked_fill", "mish",      "mul",      "neg",        "pow",  "reciprocal", "relu",
    "round",       "rsqrt",     "selu",     "sigmoid",    "silu", "sin",        "sqrt",
    "square",      "sub",       "tanh",     "trunc"};

// "aten::sub.Tensor" for "aten::sub_.Tensor"; empty for what is not in the list.
std::string functional_name(const Node& node) {
  if (node.op() != Opcode::kCallFunction) return {};
  const std::string& name = node.target().str();
  constexpr std::string_view kAten = "aten::";
  if (name.rfind(kAten, 0) != 0) return {};
  const std::size_t dot = std::min(name.find('.'), name.size());
  if (name[dot - 1] != '_') return {};
  const std::string base = name.substr(kAten.size(), dot - 1 - kAten.size());
  if (base == "fill" && name.substr(dot) == ".Scalar") return "aten::full_like";
  if (base == "zero") return "aten::zeros_like";
  if (!std::binary_search(std::begin(kNames), std::end(kNames), base)) return {};
  std::string overload = name.substr(dot);
  if (base == "pow") overload = overload == ".Tensor" ? ".Tensor_Tensor" : ".Tensor_Scalar";
  std::string functional = std::string(kAten) + base + overload;
  return OpInfo::of(*Function::get(functional)).overloads.empty() ? std::string() : functional;
}

bool is_empty_like(const Node& node) {
  return node.calls("aten::empty_like") && node.num_args() == 1 &&
         node.arg(0).kind() == Argument::Kind::kNode &&
         std::all_of(node.kwargs().begin(), node.kwargs().end(), [](const KwArg& kwarg) {
           return kwarg.value.is_none() || kwarg.key.str() == "memory_format";
         });
}

class InplaceUndoer {
 public:
  explicit InplaceUndoer(GraphModule& module) : graph_(module.graph()), aliases_(graph_) {}

  std::size_t run() {
    if (!aliases_.has_writes()) return 0;
    find_candidates();
    std::size_t count = 0;
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes()) nodes.push_back(&node);
    for (Node* node : nodes) {
      // Reads of the memory as it is now.
      const std::vector<Node*> inputs = node->all_input_nodes();
      for (Node* input : inputs) {
        const auto current = current_.find(aliases_.set_of(*input));
        if (current != current_.end() && current->second != input && current->second != node)
          node->replace_input_with(*input, *current->second);
      }
      const auto owned = sets_.find(aliases_.set_of(*node));
      if (owned == sets_.end() || !owned->second.good) continue;
      current_[owned->first] = node;
      const std::string name = functional_name(*node);
      if (name.empty()) continue;
      node->set_target(name);
      // What a fill overwrites is not read.
      if (name == "aten::full_like" || name == "aten::zeros_like")
        if (Node* like = node->arg(0).node_or_null(); like && is_empty_like(*like))
          node->update_arg(0, like->arg(0));
      ++count;
    }
    return count;
  }

 private:
  using Set = AliasAnalysis::Set;
  struct Memory {
    std::size_t makers = 0;
    std::size_t writers = 0;
    bool good = true;
  };

  // Memory that one node makes and only in-place operators of the list share.
  void find_candidates() {
    for (const Node& node : graph_.nodes()) {
      if (node.is_output()) continue;
      Memory& memory = sets_[aliases_.set_of(node)];
      const bool writes = !aliases_.writes(node).empty();
      if (aliases_.is_external(node) || !tensor_meta(node)) {
        memory.good = false;
      } else if (writes) {
        ++memory.writers;
        memory.good = memory.good && same_dtype(node);
      } else {
        ++memory.makers;
      }
    }
    // A writer may write to other memory than that of its result.
    for (const Node& node : graph_.nodes())
      for (const Set set : aliases_.writes(node))
        if (node.is_output() || set != aliases_.set_of(node)) sets_[set].good = false;
    for (auto& [set, memory] : sets_)
      memory.good = memory.good && memory.makers == 1 && memory.writers > 0;
  }

  bool same_dtype(const Node& node) const {
    if (functional_name(node).empty() || node.num_args() == 0) return false;
    const Node* self = node.arg(0).node_or_null();
    const TensorMeta* meta = self ? tensor_meta(*self) : nullptr;
    if (!meta || aliases_.set_of(*self) != aliases_.set_of(node) || meta->requires_grad)
      return false;
    const std::vector<Node*> inputs = node.all_input_nodes();
    for (const Node* input : inputs) {
      const TensorMeta* other = tensor_meta(*input);
      if (!other || other->requires_grad) return false;
      if (other->dtype != meta->dtype && other->dtype != c10::ScalarType::Bool) return false;
    }
    return c10::isFloatingType(meta->dtype) ||
           std::all_of(node.args().begin(), node.args().end(),
                       [](const Argument& arg) { return arg.kind() != Argument::Kind::kFloat; });
  }

  Graph& graph_;
  AliasAnalysis aliases_;
  std::unordered_map<Set, Memory> sets_;
  std::unordered_map<Set, Node*> current_;  // who made what the memory holds
};

}  // namespace

std::size_t undo_inplace(GraphModule& module) { return InplaceUndoer(module).run(); }

}  // namespace fx::loops
