#include "fx/analysis/flops.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>

#include "fx/graph/subgraphs.h"
#include "fx/graph/tensor_meta.h"

namespace fx {
namespace {

using Sizes = std::vector<std::int64_t>;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

std::uint64_t numel(const Sizes& sizes) {
  std::uint64_t count = 1;
  for (std::int64_t size : sizes) count = times(count, static_cast<std::uint64_t>(size));
  return count;
}

/// "linear" of "aten::linear", "aten::linear.out" and "torch.nn.functional.linear".
std::string_view base_name(std::string_view target) {
  if (const std::size_t colon = target.find("::"); colon != std::string_view::npos) {
    target.remove_prefix(colon + 2);
    return target.substr(0, target.find('.'));
  }
  return target.substr(target.rfind('.') + 1);
}

enum class Rule : std::uint8_t {
  kNone,
  kProduct,      ///< (a, b): the last dimension of a is summed over
  kAddProduct,   ///< (c, a, b)
  kConvolution,  ///< (input, weight)
  kTransposed,   ///< (input, weight)
  kEitherConv,   ///< (input, weight, ...), argument 6 says whether transposed
  kAttention,    ///< (query, key, value)
  kRecurrent     ///< (input, state, weights)
};

struct RuleRow {
  std::string_view name;
  Rule rule;
};

constexpr std::array kRules = {
    RuleRow{"_convolution", Rule::kEitherConv},
    RuleRow{"_scaled_dot_product_flash_attention_for_cpu", Rule::kAttention},
    RuleRow{"addmm", Rule::kAddProduct},
    RuleRow{"addmv", Rule::kAddProduct},
    RuleRow{"baddbmm", Rule::kAddProduct},
    RuleRow{"bmm", Rule::kProduct},
    RuleRow{"conv1d", Rule::kConvolution},
    RuleRow{"conv2d", Rule::kConvolution},
    RuleRow{"conv3d", Rule::kConvolution},
    RuleRow{"conv_transpose1d", Rule::kTransposed},
    RuleRow{"conv_transpose2d", Rule::kTransposed},
    RuleRow{"conv_transpose3d", Rule::kTransposed},
    RuleRow{"convolution", Rule::kEitherConv},
    RuleRow{"dot", Rule::kProduct},
    RuleRow{"gru", Rule::kRecurrent},
    RuleRow{"linear", Rule::kProduct},
    RuleRow{"lstm", Rule::kRecurrent},
    RuleRow{"matmul", Rule::kProduct},
    RuleRow{"mkldnn_convolution", Rule::kConvolution},
    RuleRow{"mm", Rule::kProduct},
    RuleRow{"mv", Rule::kProduct},
    RuleRow{"rnn_relu", Rule::kRecurrent},
    RuleRow{"rnn_tanh", Rule::kRecurrent},
    RuleRow{"scaled_dot_product_attention", Rule::kAttention},
};
static_assert(std::ranges::is_sorted(kRules, {}, &RuleRow::name));

Rule rule_of(std::string_view name) {
  const auto row = std::ranges::lower_bound(kRules, name, {}, &RuleRow::name);
  return row != kRules.end() && row->name == name ? row->rule : Rule::kNone;
}

class Counter {
 public:
  explicit Counter(const SizesOf& sizes_of) : sizes_of_(sizes_of) {}

  struct Sum {
    std::uint64_t total = 0;
    std::map<std::string, std::uint64_t> operators;
    std::size_t unknown = 0;
    bool has_loops = false;

    void add(const Sum& other, std::uint64_t count) {
      total = plus(total, times(other.total, count));
      for (const auto& [name, flops] : other.operators)
        operators[name] = plus(operators[name], times(flops, count));
      unknown += other.unknown;
      has_loops |= other.has_loops;
    }
  };

  Sum count(const GraphModule& module) {
    Sum sum;
    for (const Node& node : module.graph().nodes()) {
      if (const HigherOrderOp* op = higher_order_of(node)) {
        count_graphs(module, node, *op, sum);
      } else if (node.op() == Opcode::kCallModule) {
        count_module(module, node, sum);
      } else if (node.op() == Opcode::kCallFunction || node.op() == Opcode::kCallMethod) {
        const Rule rule = rule_of(base_name(node.target().str()));
        if (rule == Rule::kNone) continue;
        add(sum, node.target().str(), flops_of(module, node, rule));
      }
    }
    return sum;
  }

 private:
  static void add(Sum& sum, const std::string& name, std::optional<std::uint64_t> flops) {
    if (!flops) {
      ++sum.unknown;
      return;
    }
    sum.total = plus(sum.total, *flops);
    sum.operators[name] = plus(sum.operators[name], *flops);
  }

  std::optional<Sizes> sizes(const GraphModule& module, const Node& node) const {
    if (sizes_of_) {
      if (auto known = sizes_of_(node)) return known;
    } else if (const TensorMeta* meta = tensor_meta(node)) {
      return meta->shape;
    }
    if (node.op() != Opcode::kGetAttr) return std::nullopt;
    const at::Tensor tensor = module.find_tensor(node.target().str());
    if (!tensor.defined()) return std::nullopt;
    return tensor.sizes().vec();
  }

  std::optional<Sizes> sizes(const GraphModule& module, const Argument& argument) const {
    const Node* node = argument.node_or_null();
    return node == nullptr ? std::nullopt : sizes(module, *node);
  }

  static const Argument* argument(const Node& node, std::size_t index, const char* name) {
    if (index < node.num_args()) return &node.args()[index];
    return node.find_kwarg(name);
  }

  std::optional<std::uint64_t> flops_of(const GraphModule& module, const Node& node,
                                        Rule rule) const {
    const auto of = [&](std::size_t index, const char* name) -> std::optional<Sizes> {
      const Argument* found = argument(node, index, name);
      return found == nullptr ? std::nullopt : sizes(module, *found);
    };
    const auto out = sizes(module, node);
    switch (rule) {
      case Rule::kProduct:
      case Rule::kAddProduct: {
        const auto left = rule == Rule::kProduct ? of(0, "self") : of(1, "mat1");
        const auto input = left || rule != Rule::kProduct ? left : of(0, "input");
        if (!out || !input || input->empty()) return std::nullopt;
        return times(2 * numel(*out), static_cast<std::uint64_t>(input->back()));
      }
      case Rule::kConvolution:
      case Rule::kTransposed:
      case Rule::kEitherConv: {
        const Argument* flag = argument(node, 6, "transposed");
        const bool transposed =
            rule == Rule::kTransposed || (rule == Rule::kEitherConv && flag != nullptr &&
                                          flag->kind() == Argument::Kind::kBool && flag->to_bool());
        const auto input = of(0, "input"), weight = of(1, "weight");
        if (!weight || weight->empty() || (*weight)[0] == 0) return std::nullopt;
        const auto& places = transposed ? input : out;
        if (!places) return std::nullopt;
        return times(2 * numel(*places), numel(*weight) / static_cast<std::uint64_t>((*weight)[0]));
      }
      case Rule::kAttention: {
        const auto query = of(0, "query"), key = of(1, "key"), value = of(2, "value");
        if (!query || !key || !value || query->size() < 2 || key->size() < 2 || value->empty())
          return std::nullopt;
        const auto keys = static_cast<std::uint64_t>((*key)[key->size() - 2]);
        // Each row of the query meets each key, and each product its value.
        const std::uint64_t rows = numel({query->begin(), query->end() - 1});
        return times(times(2 * rows, keys),
                     static_cast<std::uint64_t>(query->back() + value->back()));
      }
      case Rule::kRecurrent: {
        const auto input = of(0, "input");
        const Argument* weights = argument(node, 2, "params");
        if (!input || input->empty() || weights == nullptr ||
            (weights->kind() != Argument::Kind::kList && weights->kind() != Argument::Kind::kTuple))
          return std::nullopt;
        std::uint64_t elements = 0;
        for (const Argument& item : weights->items()) {
          const auto weight = sizes(module, item);
          if (!weight) return std::nullopt;
          if (weight->size() == 2) elements = plus(elements, numel(*weight));
        }
        return times(2 * numel({input->begin(), input->end() - 1}), elements);
      }
      case Rule::kNone:
        break;
    }
    return 0;
  }

  /// torch.nn's layers with one matrix, and modules that are graphs.
  void count_module(const GraphModule& module, const Node& node, Sum& sum) {
    const auto called = module.find_submodule(node.target().str());
    if (!called) return;
    if (const auto* graph = dynamic_cast<const GraphModule*>(called.get())) {
      sum.add(count(*graph), 1);
      return;
    }
    const auto parameters = called->named_parameters(false);
    const at::Tensor* weight = parameters.find("weight");
    if (weight == nullptr || !weight->defined() || weight->dim() < 2) {
      for (const at::Tensor& parameter : called->parameters())
        if (parameter.defined() && parameter.dim() > 1) return add(sum, called->name(), {});
      return;
    }
    const std::string name = called->name();
    const bool transposed = name.find("ConvTranspose") != std::string::npos;
    if (!transposed && name.find("Conv") == std::string::npos &&
        name.find("Linear") == std::string::npos)
      return;
    const auto places = transposed ? sizes(module, node.arg(0)) : sizes(module, node);
    if (!places || weight->size(0) == 0) return add(sum, name, {});
    add(sum, name,
        times(2 * numel(*places), static_cast<std::uint64_t>(weight->numel() / weight->size(0))));
  }

  void count_graphs(const GraphModule& module, const Node& node, const HigherOrderOp& op,
                    Sum& sum) {
    using Kind = HigherOrderOp::Kind;
    std::vector<Sum> parts;
    for (const Node* graph : subgraph_nodes(node)) {
      const auto found = module.find_submodule(graph->target().str());
      if (const auto* nested = dynamic_cast<const GraphModule*>(found.get()))
        parts.push_back(count(*nested));
      else
        ++sum.unknown;
    }
    if (op.kind == Kind::kCond) {
      const auto most = std::ranges::max_element(parts, {}, &Sum::total);
      if (most != parts.end()) sum.add(*most, 1);
      return;
    }
    std::uint64_t steps = 1;
    sum.has_loops |= op.kind == Kind::kWhileLoop;
    if (op.kind == Kind::kScan || op.kind == Kind::kMap || op.kind == Kind::kAssociativeScan) {
      const std::size_t rows = op.first_operand + (op.kind == Kind::kScan ? 1 : 0);
      std::optional<Sizes> first;
      if (rows < node.num_args() &&
          (node.args()[rows].kind() == Argument::Kind::kList ||
           node.args()[rows].kind() == Argument::Kind::kTuple) &&
          !node.args()[rows].items().empty())
        first = sizes(module, node.args()[rows].items()[0]);
      if (first && !first->empty())
        steps = static_cast<std::uint64_t>(first->front());
      else
        ++sum.unknown;
    }
    for (const Sum& part : parts) sum.add(part, steps);
  }

  const SizesOf& sizes_of_;
};

}  // namespace

FlopCount count_flops(const GraphModule& module, const SizesOf& sizes_of) {
  const Counter::Sum sum = Counter(sizes_of).count(module);
  FlopCount result{
      sum.total, {sum.operators.begin(), sum.operators.end()}, sum.unknown, sum.has_loops};
  std::ranges::stable_sort(result.operators, std::greater<>(),
                           &std::pair<std::string, std::uint64_t>::second);
  return result;
}

}  // namespace fx
