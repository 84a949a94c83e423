#include "fx/passes/annotate_types.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/module_types.h"
#include "fx/ops/op_info.h"
#include "fx/passes/nested.h"

namespace fx {
namespace {

constexpr std::string_view kTensor = "torch.Tensor";

// Classes of torch::nn that return more than one tensor.
constexpr std::string_view kTupleModules[] = {
    "torch.nn.AdaptiveLogSoftmaxWithLoss", "torch.nn.GRU", "torch.nn.LSTM", "torch.nn.LSTMCell",
    "torch.nn.MultiheadAttention",         "torch.nn.RNN"};
static_assert(std::is_sorted(std::begin(kTupleModules), std::end(kTupleModules)));

std::string python_type(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return std::string(kTensor);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return "int";
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return "float";
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return "bool";
    case c10::TypeKind::StringType:
      return "str";
    case c10::TypeKind::ListType: {
      const std::string element = python_type(*type.containedType(0));
      return element.empty() ? element : "List[" + element + "]";
    }
    default:
      return {};
  }
}

std::string return_type(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (schema.is_varret() || returns.empty()) return {};
  if (returns.size() == 1) return python_type(*returns[0].type());
  std::string out = "Tuple[";
  for (std::size_t i = 0; i < returns.size(); ++i) {
    const std::string item = python_type(*returns[i].type());
    if (item.empty()) return {};
    out += (i ? ", " : "") + item;
  }
  return out + "]";
}

// What all overloads agree on.
std::string return_type(const OpInfo& info) {
  std::string common;
  for (const Overload& overload : info.overloads) {
    const std::string type = return_type(overload.handle.schema());
    if (type.empty() || (!common.empty() && type != common)) return {};
    common = type;
  }
  return common;
}

// The parameters of "Tuple[int, List[int]]": {"int", "List[int]"}; the head goes to `head`.
std::vector<std::string> type_parameters(std::string_view type, std::string& head) {
  const auto open = type.find('[');
  head = type.substr(0, open);
  std::vector<std::string> out;
  if (open == std::string_view::npos || !type.ends_with(']')) return out;
  type = type.substr(open + 1, type.size() - open - 2);
  int depth = 0;
  std::string current;
  auto close = [&] {
    const auto begin = current.find_first_not_of(' ');
    if (begin != std::string::npos)
      out.push_back(current.substr(begin, current.find_last_not_of(' ') - begin + 1));
    current.clear();
  };
  for (const char c : type) {
    if (c == ',' && depth == 0) {
      close();
      continue;
    }
    depth += (c == '[') - (c == ']');
    current += c;
  }
  close();
  return out;
}

bool is_head(std::string_view head, std::string_view name) {
  const auto dot = head.rfind('.');
  if (dot != std::string_view::npos) head.remove_prefix(dot + 1);
  std::string lower(head);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return lower == name;
}

}  // namespace

std::string schema_type(const GraphModule& module, const Node& node) {
  const std::string& target = node.target().str();
  switch (node.op()) {
    case Opcode::kGetAttr:
      return module.find_tensor(target).defined() ? std::string(kTensor) : std::string();
    case Opcode::kCallFunction:
      return return_type(OpInfo::of(*node.target().function()));
    case Opcode::kCallMethod:
      return return_type(OpInfo::of_method(target));
    case Opcode::kCallModule: {
      const auto called = module.find_submodule(target);
      const ModuleType* type = called ? find_module_type(*called) : nullptr;
      if (!type || !type->is_leaf || !type->name.starts_with("torch.nn.")) return {};
      return std::binary_search(std::begin(kTupleModules), std::end(kTupleModules),
                                std::string_view(type->name))
                 ? std::string()
                 : std::string(kTensor);
    }
    default:
      return {};
  }
}

bool is_known_tensor(const GraphModule& module, const Node& node) {
  if (const auto* seen = node.meta().get<std::string>("type")) return *seen == "Tensor";
  if (node.type() == kTensor || node.type() == "Tensor") return true;
  return schema_type(module, node) == kTensor;
}

PassResult annotate_types(GraphModule& module, const AnnotateTypesOptions& options) {
  return rewrite_each_graph_module(module, [&](GraphModule& gm) {
    std::int64_t count = 0;
    for (Node& node : gm.graph().nodes()) {
      const bool is_wanted = node.op() == Opcode::kGetAttr      ? options.annotate_get_attrs
                             : node.op() == Opcode::kCallModule ? options.annotate_modules
                                                                : options.annotate_functionals;
      if (!is_wanted || !node.type().empty()) continue;
      const std::string type = schema_type(gm, node);
      if (type.empty()) continue;
      node.set_type(type);
      // A type alone does not count as an edit of the graph; setting the target does, so that the
      // PassManager looks at the node.
      node.set_target(node.target());
      ++count;
    }
    return count;
  });
}

std::int64_t annotate_getitem_nodes(Graph& graph) {
  std::int64_t count = 0;
  for (Node& node : graph.nodes()) {
    if (!node.calls("operator.getitem") || node.num_args() != 2) continue;
    const Node* sequence = node.args()[0].node_or_null();
    const Argument& index = node.args()[1];
    if (!sequence || sequence->type().empty() || index.kind() != Argument::Kind::kInt) continue;
    std::string head;
    const std::vector<std::string> items = type_parameters(sequence->type(), head);
    std::string type;
    if (is_head(head, "tuple") && !items.empty()) {
      std::int64_t place = index.to_int();
      const auto size = static_cast<std::int64_t>(items.size());
      if (size == 2 && items[1] == "...") {
        place = 0;
      } else if (place < 0) {
        place += size;
      }
      if (place < 0 || place >= size)
        throw PassError(ErrorCode::kBadExtract,
                        "Index " + std::to_string(index.to_int()) + " of node " +
                            str_repr(node.name()) + " out of range for the type " +
                            str_repr(sequence->type()) + " of " + str_repr(sequence->name()));
      type = items[static_cast<std::size_t>(place)];
    } else if (is_head(head, "list") && items.size() == 1) {
      type = items[0];
    }
    if (type.empty() || node.type() == type) continue;
    node.set_type(type);
    ++count;
  }
  return count;
}

}  // namespace fx
