#include "fx/passes/constant_fold.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <exception>
#include <unordered_set>

#include "fx/graph/argument_value.h"
#include "fx/graph/module_access.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/call.h"
#include "fx/ops/op_info.h"
#include "fx/ops/value_tensors.h"
#include "fx/passes/constant_nodes.h"

namespace fx {
namespace {

class Folder {
 public:
  Folder(GraphModule& module, const ConstantFoldOptions& options)
      : module_(module),
        graph_(module.graph()),
        options_(options),
        rules_{.fold_trainable = options.fold_trainable,
               .fold_outputs = options.fold_outputs,
               .skip = options.skip},
        constants_(module, rules_),
        interpreter_(module, /*garbage_collect_values=*/false) {}

  PassResult run() {
    find_constants();
    for (Node* node : graph_.nodes().to_vector())
      if (is_constant_[node->id()] && node->op() != Opcode::kGetAttr) replace_uses(*node);
    PassResult result;
    result.rewrites = erase_unused();
    result.changed = result.rewrites > 0;
    if (options_.remove_unused_attributes) result.changed |= module_.delete_unused_attributes();
    return result;
  }

 private:
  // Evaluates every constant node. A value stays in the interpreter's env as long as somebody may
  // need it.
  void find_constants() {
    is_constant_.resize(graph_.id_bound());
    stays_.resize(graph_.id_bound());
    unseen_users_.resize(graph_.id_bound());
    const at::NoGradGuard no_grad;
    for (Node& node : graph_.nodes()) {
      unseen_users_[node.id()] = node.num_users();
      is_constant_[node.id()] = may_fold(node) && evaluate(node);
      for (const Node* input : node.all_input_nodes()) {
        if (!is_constant_[input->id()]) continue;
        if (!is_constant_[node.id()]) stays_[input->id()] = true;
        if (--unseen_users_[input->id()] == 0 && !stays_[input->id()])
          interpreter_.env().erase(*input);
      }
    }
  }

  bool may_fold(const Node& node) const {
    for (const Node* input : node.all_input_nodes())
      if (!is_constant_[input->id()]) return false;
    return constants_.may_fold(node);
  }

  bool evaluate(Node& node) {
    try {
      if (estimated_bytes(node) > options_.max_bytes) return false;
      Value value = interpreter_.run_node(node);
      if (!is_storable(value)) return false;
      const std::int64_t bytes =
          node.op() == Opcode::kGetAttr ? 0 : new_bytes(value, inputs_of(node));
      if (bytes > options_.max_bytes) return false;
      // What the caller gets keeps its identity: new memory in every run stays new memory, and
      // memory of an attribute, which the caller may write to, is read again in every run.
      if (constants_.is_returned(node)) return false;
      interpreter_.store_value(node, std::move(value));
      return true;
    } catch (const std::exception&) {
      return false;  // fails in the run as well, where the error belongs
    }
  }

  static bool is_storable(const Value& value) {
    if (value.isTensor()) return value.toTensor().defined();
    if (is_sequence(value)) {
      const Values items = elements(value);
      return std::all_of(items.begin(), items.end(), is_storable);
    }
    return value.isNone() || value.isBool() || value.isInt() || value.isDouble() ||
           value.isComplexDouble() || value.isString() || value.isDevice();
  }

  Values inputs_of(const Node& node) const {
    Values values;
    for (const Node* input : node.all_input_nodes())
      values.push_back(interpreter_.env().at(*input));
    return values;
  }

  // What evaluating the node would allocate, found on the meta device without allocating; 0 when
  // there is no meta kernel.
  std::int64_t estimated_bytes(const Node& node) {
    const bool is_method = node.op() == Opcode::kCallMethod;
    if (!is_method && node.op() != Opcode::kCallFunction) return 0;
    const OpInfo& info =
        is_method ? OpInfo::of_method(node.target().str()) : OpInfo::of(*node.target().function());
    if (info.overloads.empty()) return 0;
    bool has_device = false;
    for (const Overload& overload : info.overloads)
      for (const ArgRule& rule : overload.rules) has_device |= rule.name == "device";
    Values inputs;
    auto read = [&](Node& input) -> Value {
      const Value& value = interpreter_.env().at(input);
      if (!value.isTensor() || value.toTensor().layout() != at::kStrided) return value;
      const at::Tensor& tensor = value.toTensor();
      return inputs.emplace_back(
          at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta)));
    };
    try {
      Values args;
      for (const Argument& arg : node.args()) args.push_back(value_of(arg, read));
      KwValues kwargs;
      for (const KwArg& kwarg : node.kwargs())
        if (!(kwarg.key == "device")) kwargs.push_back({kwarg.key, value_of(kwarg.value, read)});
      if (has_device) kwargs.push_back({Symbol("device"), Value(at::Device(at::kMeta))});
      const Value made = is_method
                             ? call_method(node.target().str(), std::move(args), std::move(kwargs))
                             : call(*node.target().function(), std::move(args), std::move(kwargs));
      return new_bytes(made, inputs);
    } catch (const std::exception&) {
      return 0;
    }
  }

  // Memory of `value` that it does not share with one of the inputs.
  static std::int64_t new_bytes(const Value& value, const Values& inputs) {
    std::unordered_set<const void*> known;
    for (const Value& input : inputs)
      for_each_tensor(input, [&](const at::Tensor& tensor) {
        if (tensor.defined() && tensor.has_storage())
          known.insert(tensor.storage().unsafeGetStorageImpl());
      });
    std::int64_t bytes = 0;
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      if (!tensor.has_storage())
        bytes += static_cast<std::int64_t>(tensor.numel() * tensor.element_size());
      else if (known.insert(tensor.storage().unsafeGetStorageImpl()).second)
        bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
    });
    return bytes;
  }

  // Gives every user that stays the value itself.
  void replace_uses(Node& node) {
    std::vector<Node*> staying;
    for (Node* user : node.users())
      if (!is_constant_[user->id()]) staying.push_back(user);
    if (staying.empty()) return;
    const auto at_node = graph_.inserting_before(node);
    const Argument replacement = argument_of(interpreter_.env().at(node), [&](const Value& value) {
      Node& attribute = graph_.get_attr(store(value.toTensor()));
      attribute.meta() = node.meta();
      set_tensor_meta(attribute, NestedTensorMeta(value));
      return Argument(attribute);
    });
    for (Node* user : staying) user->replace_input_with(node, replacement);
  }

  std::string store(const at::Tensor& tensor) {
    std::string path;
    do path = "_folded" + std::to_string(next_number_++);
    while (module_.attr_kind(path) != GraphOwner::AttrKind::kMissing);
    module_.set_constant(path, tensor.detach());
    return path;
  }

  // Constant nodes that lost all users, and the attributes read only by them.
  std::int64_t erase_unused() {
    std::int64_t calls = 0;
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      Node& node = *it;
      const bool folded = node.id() < is_constant_.size() && is_constant_[node.id()];
      if (!folded || node.num_users() > 0) continue;
      const bool is_call = node.op() != Opcode::kGetAttr;
      // An attribute that nobody read before is dead code, not ours.
      if (!is_call && !read_by_folded_.contains(&node)) continue;
      for (const Node* input : node.all_input_nodes()) read_by_folded_.insert(input);
      graph_.erase_node(node);
      calls += is_call;
    }
    return calls;
  }

  GraphModule& module_;
  Graph& graph_;
  const ConstantFoldOptions& options_;
  const ConstantRules rules_;
  const ConstantNodes constants_;
  Interpreter interpreter_;
  std::vector<bool> is_constant_;          // by node id
  std::vector<bool> stays_;                // by node id: used by a node that is not constant
  std::vector<std::size_t> unseen_users_;  // by node id
  std::unordered_set<const Node*> read_by_folded_;
  std::size_t next_number_ = 0;
};

}  // namespace

PassResult constant_fold(GraphModule& module, const ConstantFoldOptions& options) {
  return Folder(module, options).run();
}

}  // namespace fx
