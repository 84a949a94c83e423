#include "fx/passes/simplify.h"

#include "fx/passes/nested.h"
#include "fx/passes/operation.h"
#include "fx/passes/simplify_context.h"

namespace fx {
namespace detail {
namespace {

constexpr std::array<std::string_view, 17> kBoolResults = {
    "__contains__", "eq",    "ge", "greater", "greater_equal", "gt",          "isfinite",
    "isinf",        "isnan", "le", "less",    "less_equal",    "logical_and", "logical_not",
    "logical_or",   "lt",    "ne"};

// Results have the dtype of the first argument, whatever that is.
constexpr std::array<std::string_view, 22> kKeepDtype = {
    "bitwise_not", "ceil",      "clone",   "contiguous", "detach",    "expand", "floor", "neg",
    "permute",     "relu",      "reshape", "round",      "select",    "sign",   "slice", "squeeze",
    "t",           "transpose", "trunc",   "tril",       "unsqueeze", "view"};

struct Conversion {
  std::string_view method;
  c10::ScalarType dtype;
};
constexpr Conversion kConversions[] = {{"bfloat16", c10::kBFloat16}, {"bool", c10::kBool},
                                       {"byte", c10::kByte},         {"char", c10::kChar},
                                       {"double", c10::kDouble},     {"float", c10::kFloat},
                                       {"half", c10::kHalf},         {"int", c10::kInt},
                                       {"long", c10::kLong},         {"short", c10::kShort}};

bool is_default(const Argument& argument) {
  return argument.is_none() || (argument.kind() == Argument::Kind::kBool && !argument.to_bool());
}

bool knows_no_gradients(const GraphModule& module) {
  for (const at::Tensor& parameter : module.parameters())
    if (parameter.requires_grad()) return false;
  for (const Node& node : module.graph().nodes()) {
    const bool is_foreign = node.op() == Opcode::kCallModule ||
                            (node.op() == Opcode::kCallFunction &&
                             node.target().function()->kind() == FunctionKind::kWrapped);
    if (is_foreign) return false;
    if (!node.is_placeholder() && node.op() != Opcode::kGetAttr) continue;
    const TensorMeta* meta = tensor_meta(node);
    if (!meta || meta->requires_grad) return false;
  }
  return true;
}

}  // namespace

std::optional<c10::ScalarType> conversion_of(const Node& node) {
  const std::string_view name = operation_of(node);
  if (name == "to" || name == "_to_copy") {
    std::optional<c10::ScalarType> dtype;
    const auto take = [&](const Argument& argument) {
      if (argument.kind() == Argument::Kind::kDtype && !dtype)
        dtype = argument.to_dtype();
      else if (!is_default(argument))
        return false;
      return true;
    };
    for (std::size_t i = 1; i < node.num_args(); ++i)
      if (!take(node.args()[i])) return std::nullopt;
    for (const KwArg& kwarg : node.kwargs())
      if (!take(kwarg.value)) return std::nullopt;
    return dtype;
  }
  if (node.op() != Opcode::kCallMethod || node.num_args() != 1 || !node.kwargs().empty())
    return std::nullopt;
  for (const Conversion& conversion : kConversions)
    if (conversion.method == name) return conversion.dtype;
  return std::nullopt;
}

bool has_equal_options(const Node& a, const Node& b) {
  if (a.num_args() != b.num_args() || a.kwargs().size() != b.kwargs().size()) return false;
  for (std::size_t i = 1; i < a.num_args(); ++i)
    if (a.args()[i].has_nodes() || !(a.args()[i] == b.args()[i])) return false;
  for (std::size_t i = 0; i < a.kwargs().size(); ++i)
    if (a.kwargs()[i].value.has_nodes() || !(a.kwargs()[i] == b.kwargs()[i])) return false;
  return true;
}

Args with_input(const Node& node, const Argument& input) {
  Args args(node.args().begin(), node.args().end());
  args[0] = input;
  return args;
}

SimplifyContext::SimplifyContext(GraphModule& module, bool use_metadata)
    : graph_(module.graph()),
      use_metadata_(use_metadata),
      without_gradients_(use_metadata && knows_no_gradients(module)),
      aliases_(graph_) {}

bool SimplifyContext::is_plain(const Node& node) const {
  return !operation_of(node).empty() && node.num_args() > 0 && node.args()[0].is_node() &&
         !node.is_impure() && !aliases_.is_written(node);
}

Node* SimplifyContext::inner_of(const Node& node) const {
  Node* inner = node.args()[0].node_or_null();
  if (!inner || !is_plain(*inner)) return nullptr;
  return aliases_.is_written(*inner->args()[0].node_or_null()) ? nullptr : inner;
}

std::optional<c10::ScalarType> SimplifyContext::dtype_of(const Node& node, int depth) const {
  if (const TensorMeta* meta = use_metadata_ ? tensor_meta(node) : nullptr) return meta->dtype;
  if (const auto dtype = conversion_of(node)) return dtype;
  const std::string_view name = operation_of(node);
  // Functions and methods of tensors only: what Python's operators give depends on their operands.
  const bool is_builtin = node.op() == Opcode::kCallFunction &&
                          node.target().function()->kind() == FunctionKind::kBuiltin;
  if (name.empty() || is_builtin || node.has_kwarg("dtype")) return std::nullopt;
  if (contains(kBoolResults, name)) return c10::kBool;
  constexpr int kMaxDepth = 16;
  const Node* input = input_of(node);
  if (!input || depth > kMaxDepth || !contains(kKeepDtype, name)) return std::nullopt;
  for (const Argument& argument : node.args())
    if (argument.kind() == Argument::Kind::kDtype) return std::nullopt;
  return dtype_of(*input, depth + 1);
}

const TensorMeta* SimplifyContext::meta_of(const Node& node) const {
  const TensorMeta* meta = use_metadata_ ? tensor_meta(node) : nullptr;
  return meta && meta->layout == c10::Layout::Strided ? meta : nullptr;
}

bool SimplifyContext::may_stand_for(const Node& value, const Node& node) const {
  const TensorMeta* before = meta_of(value);
  const TensorMeta* after = meta_of(node);
  return before && after && before->dtype == after->dtype && before->shape == after->shape &&
         before->stride == after->stride && before->device == after->device &&
         !aliases_.is_written(value) && !aliases_.reaches_output(node);
}

void SimplifyContext::replace(Node& node, Node& value) {
  Node* inner = node.args()[0].node_or_null();
  node.replace_all_uses_with(value);
  graph_.erase_node(node);
  if (inner != &value) erase_if_unused(inner);
}

void SimplifyContext::rewire(Node& node, Args args) {
  Node* inner = node.args()[0].node_or_null();
  node.set_args(std::move(args));
  erase_if_unused(inner);
}

// Inputs stay, and what has effects, such as drawing random numbers.
void SimplifyContext::erase_if_unused(Node* node) {
  if (node && node->num_users() == 0 && !node->is_impure()) graph_.erase_node(*node);
}

void SimplifyContext::retarget(Node& node, std::string_view name, std::string_view overload,
                               Args args) {
  std::string target(name);
  if (node.op() == Opcode::kCallFunction) {
    switch (node.target().function()->kind()) {
      case FunctionKind::kOperator:
        target = "aten::" + target + (overload.empty() ? "" : "." + std::string(overload));
        break;
      case FunctionKind::kBuiltin:
        target = "operator." + target;
        break;
      default:
        target = "torch." + target;
    }
  }
  node.set_target(target);
  rewire(node, std::move(args));
}

namespace {

using Rule = bool (*)(SimplifyContext&, Node&);
constexpr Rule kRules[] = {
#define FX_SIMPLIFY_RULE(name, rewrite, reason) simplify_##name,
#include "fx/passes/simplify_rules.def"
#undef FX_SIMPLIFY_RULE
};

using Counts = std::array<std::int64_t, std::size(kRules)>;

bool sweep(GraphModule& module, const SimplifyOptions& options, Counts& counts) {
  SimplifyContext context(module, options.use_metadata);
  bool changed = false;
  for (Node& node : module.graph().nodes()) {
    if (!context.is_plain(node)) continue;
    for (std::size_t i = 0; i < std::size(kRules); ++i) {
      if (!kRules[i](context, node)) continue;
      ++counts[i];
      changed = true;
      break;
    }
  }
  return changed;
}

}  // namespace
}  // namespace detail

namespace {

constexpr SimplifyRule kRuleTexts[] = {
#define FX_SIMPLIFY_RULE(name, rewrite, reason) {#name, rewrite, reason},
#include "fx/passes/simplify_rules.def"
#undef FX_SIMPLIFY_RULE
};

}  // namespace

std::span<const SimplifyRule> simplify_rules() { return kRuleTexts; }

PassResult simplify(GraphModule& module, const SimplifyOptions& options) {
  detail::Counts counts{};
  for_each_graph_module(module, [&](GraphModule& nested) {
    while (detail::sweep(nested, options, counts)) {
    }
  });
  PassResult result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    result.rules.emplace_back(kRuleTexts[i].name, counts[i]);
    result.rewrites += counts[i];
  }
  result.changed = result.rewrites > 0;
  return result;
}

}  // namespace fx
