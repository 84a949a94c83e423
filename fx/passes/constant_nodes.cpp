#include "fx/passes/constant_nodes.h"

namespace fx {
namespace {

bool has_skipped(const GraphModule& module, const std::function<bool(const Node&)>& skip) {
  for (const Node& node : module.graph().nodes()) {
    if (node.is_placeholder() || node.is_output()) continue;
    if (skip(node)) return true;
    if (node.op() != Opcode::kCallModule) continue;
    const auto called = module.find_submodule(node.target().str());
    const auto* nested = dynamic_cast<const GraphModule*>(called.get());
    if (nested && has_skipped(*nested, skip)) return true;
  }
  return false;
}

}  // namespace

ConstantNodes::ConstantNodes(const GraphModule& module, const ConstantRules& rules)
    : module_(module), rules_(rules), aliases_(module.graph()) {
  for (const Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kGetAttr || !aliases_.reaches_output(node)) continue;
    const at::Tensor tensor = module_.find_tensor(node.target().str());
    if (tensor.defined() && tensor.has_storage())
      exposed_.insert(tensor.storage().unsafeGetStorageImpl());
  }
}

bool ConstantNodes::is_trainable(const at::Tensor& tensor) const {
  return tensor.requires_grad() && module_.is_training() && !rules_.fold_trainable;
}

bool ConstantNodes::may_fold(const Node& node) const {
  if (node.is_placeholder() || node.is_output()) return false;
  if (node.is_impure() || aliases_.is_written(node)) return false;
  if (rules_.skip && rules_.skip(node)) return false;
  if (node.meta().get<bool>("no_constant_fold")) return false;
  if (node.op() == Opcode::kGetAttr) {
    const at::Tensor tensor = module_.find_tensor(node.target().str());
    // The caller may write to an attribute whose memory the graph returns.
    if (tensor.defined() && tensor.has_storage() && !rules_.fold_outputs &&
        exposed_.contains(tensor.storage().unsafeGetStorageImpl()))
      return false;
    return tensor.defined() && !is_trainable(tensor);
  }
  if (node.op() == Opcode::kCallModule) {
    const auto called = module_.find_submodule(node.target().str());
    if (!called) return false;
    for (const at::Tensor& parameter : called->parameters())
      if (is_trainable(parameter)) return false;
    // Its own buffers may be written through get_attr or another call.
    if (aliases_.writes_attributes()) return false;
    const auto* nested = dynamic_cast<const GraphModule*>(called.get());
    if (nested && rules_.skip && has_skipped(*nested, rules_.skip)) return false;
  }
  return true;
}

}  // namespace fx
