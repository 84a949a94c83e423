#include "tools/fxcpp/weights.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <set>

#include "fx/ops/value.h"

namespace fx::cli {
namespace {

/// Adds tensors to a summary and remembers the memory they lie in.
class Collector {
 public:
  void add(const std::string& name, const at::Tensor& tensor, const std::string& kind,
           WeightTotal& total) {
    if (!tensor.defined() || !names_.insert(name).second) return;
    WeightRow row;
    row.name = name;
    row.kind = kind;
    row.dtype = std::string(short_dtype_name(tensor.scalar_type()));
    row.shape = tensor.sizes().vec();
    row.elements = static_cast<std::uint64_t>(tensor.numel());
    row.bytes = row.elements * tensor.element_size();
    ++total.tensors;
    const bool has_storage = tensor.has_storage() && tensor.storage().nbytes() > 0;
    const void* storage = has_storage ? tensor.storage().unsafeGetStorageImpl() : nullptr;
    const auto [first, is_new] =
        has_storage ? storages_.try_emplace(storage, name) : std::pair(storages_.end(), true);
    if (!is_new) row.shared_with = first->second;
    const bool same_elements =
        has_storage && !elements_.emplace(storage, tensor.storage_offset(), tensor.numel()).second;
    if (!same_elements) total.elements += row.elements;
    if (is_new) total.bytes += has_storage ? tensor.storage().nbytes() : row.bytes;
    summary.rows.push_back(std::move(row));
  }

  WeightSummary summary;

 private:
  std::set<std::string> names_;
  std::map<const void*, std::string> storages_;
  std::set<std::tuple<const void*, std::int64_t, std::int64_t>> elements_;
};

using ModuleStack = std::vector<std::pair<std::string, std::string>>;

}  // namespace

WeightSummary summarize_weights(const GraphModule& module) {
  Collector collector;
  WeightSummary& summary = collector.summary;
  for (const auto& item : module.named_parameters())
    collector.add(item.key(), item.value(), "parameter", summary.parameters);
  for (const auto& item : module.named_buffers())
    collector.add(item.key(), item.value(), "buffer", summary.buffers);
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kGetAttr)
      collector.add(node.target().str(), module.find_tensor(node.target().str()), "constant",
                    summary.constants);
  return std::move(summary);
}

std::vector<ModuleRow> module_tree(const GraphModule& module, std::size_t depth) {
  std::map<std::string, ModuleRow> rows;  // sorting by path would part children from parents
  std::vector<std::string> order;
  auto row_of = [&](const std::string& path, const std::string& type) -> ModuleRow* {
    const std::size_t level =
        path.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(path, '.'));
    if (level > depth) return nullptr;
    auto [it, added] = rows.try_emplace(path);
    if (added) {
      it->second.path = path;
      it->second.depth = level;
      order.push_back(path);
    }
    if (it->second.type.empty()) it->second.type = type;
    return &it->second;
  };
  row_of("", "");
  for (const Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kCallFunction && node.op() != Opcode::kCallModule &&
        node.op() != Opcode::kCallMethod)
      continue;
    ++row_of("", "")->calls;
    const auto* stack = node.meta().get<ModuleStack>("nn_module_stack");
    if (stack == nullptr) continue;
    for (const auto& [path, type] : *stack) {
      const std::string plain = path.substr(0, path.find('@'));
      if (ModuleRow* row = row_of(plain, type); row != nullptr && !plain.empty()) ++row->calls;
    }
  }
  for (const WeightRow& weight : summarize_weights(module).rows) {
    if (weight.kind != "parameter" || !weight.shared_with.empty()) continue;
    row_of("", "")->parameters += weight.elements;
    for (std::size_t dot = weight.name.find('.'); dot != std::string::npos;
         dot = weight.name.find('.', dot + 1))
      if (ModuleRow* row = row_of(weight.name.substr(0, dot), ""))
        row->parameters += weight.elements;
  }
  // In order of first use, children right behind their parents.
  std::vector<ModuleRow> tree;
  auto append = [&](const auto& self, const std::string& parent) -> void {
    tree.push_back(rows.at(parent));
    for (const std::string& path : order) {
      if (path.empty()) continue;
      const std::size_t dot = path.rfind('.');
      const std::string above = dot == std::string::npos ? "" : path.substr(0, dot);
      if (above == parent) self(self, path);
    }
  };
  append(append, "");
  return tree;
}

}  // namespace fx::cli
