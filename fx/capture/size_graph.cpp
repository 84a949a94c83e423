#include "fx/capture/size_graph.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace fx {
namespace {

using Kind = Argument::Kind;

// Two runs differ; `run` is the first that does.
struct Differs {
  std::size_t run;
  std::string text;
};

std::vector<Samples> samples_of(const std::vector<SizeGraph::Symbol>& symbols) {
  std::vector<Samples> out;
  for (const SizeGraph::Symbol& symbol : symbols) out.push_back(symbol.samples);
  return out;
}

bool same_constant(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.layout() != b.layout() ||
      a.device() != b.device() || a.is_meta() || a.layout() != at::kStrided)
    return false;
  const at::NoGradGuard no_grad;
  return a.numel() == 0 || at::equal(a, b);
}

std::string call_text(const Node& node) {
  return node.target().str() + " (%" + std::string(node.name()) + ")";
}

// What a number is in the first run and in that one.
template <typename T>
[[noreturn]] void differ(std::size_t run, const T& first, const T& other) {
  throw Differs{run, "takes " + std::to_string(other) + ", in the example " +
                         std::to_string(first) + ", and no expression of the sizes gives both"};
}

}  // namespace

SizeGraph::SizeGraph(std::vector<Symbol> symbols, std::vector<Recording>& runs)
    : symbols_(std::move(symbols)), runs_(runs), solver_(samples_of(symbols_)) {
  for (const Recording& run : runs_) numbered_.push_back(number(*run.graph));
  for (const Node* node : numbered_[0].nodes)
    originals_.emplace_back(Args(node->args().begin(), node->args().end()),
                            Kwargs(node->kwargs().begin(), node->kwargs().end()));
}

SizeGraph::Numbered SizeGraph::number(const Graph& graph) {
  Numbered out;
  for (const Node& node : graph.nodes()) {
    out.index.emplace(&node, out.nodes.size());
    out.nodes.push_back(&node);
  }
  return out;
}

std::optional<SizeGraph::Difference> SizeGraph::generalise() {
  std::vector<const Numbered*> numbered;
  std::vector<const GraphModule::Constants*> constants;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    numbered.push_back(&numbered_[r]);
    constants.push_back(&runs_[r].constants);
  }
  for (std::size_t i = 0; i < numbered_[0].nodes.size(); ++i) {
    Node& node = *const_cast<Node*>(numbered_[0].nodes[i]);
    try {
      compare_nodes(i, numbered, constants);
      leaf_ = 0;
      Args args;
      for (std::size_t a = 0; a < node.num_args(); ++a) {
        Versions versions;
        for (const Numbered* run : numbered) versions.push_back(&run->nodes[i]->args()[a]);
        args.push_back(merge(i, versions));
      }
      Kwargs kwargs;
      for (std::size_t k = 0; k < node.kwargs().size(); ++k) {
        Versions versions;
        for (const Numbered* run : numbered) versions.push_back(&run->nodes[i]->kwargs()[k].value);
        kwargs.emplace_back(node.kwargs()[k].key, merge(i, versions));
      }
      if (varying_.lower_bound({i, 0}) != varying_.end())
        node.set_args_kwargs(std::move(args), std::move(kwargs));
    } catch (const Differs& differs) {
      const auto stack = runs_[0].stacks.find(&node);
      return Difference{differs.run, call_text(node) + " " + differs.text,
                        stack == runs_[0].stacks.end() ? CallStack() : stack->second};
    }
    learn_sizes(i);
  }
  return std::nullopt;
}

void SizeGraph::compare_nodes(std::size_t index, const std::vector<const Numbered*>& runs,
                              const std::vector<const GraphModule::Constants*>& constants) const {
  const Node& first = *runs[0]->nodes[index];
  const auto& [args, kwargs] = originals_[index];
  for (std::size_t r = 1; r < runs.size(); ++r) {
    if (index >= runs[r]->nodes.size()) throw Differs{r, "is not reached"};
    const Node& other = *runs[r]->nodes[index];
    if (other.op() != first.op() || other.target() != first.target())
      throw Differs{r, "is not what runs: it is " + call_text(other)};
    const bool same_keys = std::ranges::equal(
        kwargs, other.kwargs(), [](const KwArg& a, const KwArg& b) { return a.key == b.key; });
    if (other.num_args() != args.size() || !same_keys)
      throw Differs{r, "takes other arguments: " + other.format_node()};
    if (first.op() != Opcode::kGetAttr) continue;
    const auto find = [&](const GraphModule::Constants& in) {
      return std::ranges::find_if(
          in, [&](const auto& constant) { return constant.first == first.target().str(); });
    };
    const auto mine = find(*constants[0]), its = find(*constants[r]);
    if ((mine == constants[0]->end()) != (its == constants[r]->end()) ||
        (mine != constants[0]->end() && !same_constant(mine->second, its->second)))
      throw Differs{r, "is a tensor with other contents, filled outside of the dispatcher"};
  }
}

Argument SizeGraph::walk(const Versions& versions, const Leaf& leaf) {
  const Argument& first = *versions[0];
  for (std::size_t r = 1; r < versions.size(); ++r)
    if (first.is_aggregate() &&
        (versions[r]->kind() != first.kind() ||
         (first.kind() != Kind::kDict && versions[r]->items().size() != first.items().size())))
      throw Differs{r, "takes lists of other lengths"};
  if (!first.is_aggregate() || first.kind() == Kind::kDict) return leaf(versions);
  std::vector<Argument> items;
  for (std::size_t i = 0; i < first.items().size(); ++i) {
    Versions parts;
    for (const Argument* version : versions) parts.push_back(&version->items()[i]);
    items.push_back(walk(parts, leaf));
  }
  switch (first.kind()) {
    case Kind::kList:
      return Argument::list(std::move(items));
    case Kind::kTuple:
      return Argument::tuple(std::move(items));
    default:
      return Argument::slice(items[0], items[1], items[2]);
  }
}

Argument SizeGraph::merge(std::size_t index, const Versions& versions) {
  return walk(versions, [&](const Versions& leaves) -> Argument {
    const std::size_t leaf = leaf_++;
    const Argument& first = *leaves[0];
    for (std::size_t r = 1; r < leaves.size(); ++r) {
      if (first.is_node() && leaves[r]->is_node()) {
        if (numbered_[0].index.at(&first.node()) != numbered_[r].index.at(&leaves[r]->node()))
          throw Differs{r, "takes another value: " + call_text(leaves[r]->node())};
      } else if (*leaves[r] != first) {
        if (const auto varying = solve(leaves)) {
          varying_.emplace(std::pair(index, leaf), *varying);
          return emit(*varying, *const_cast<Node*>(numbered_[0].nodes[index]));
        }
        if (first.kind() == Kind::kInt && leaves[r]->kind() == Kind::kInt)
          differ(r, first.to_int(), leaves[r]->to_int());
        if (first.kind() == Kind::kFloat && leaves[r]->kind() == Kind::kFloat)
          differ(r, first.to_double(), leaves[r]->to_double());
        throw Differs{r, "takes other arguments"};
      }
    }
    return first;
  });
}

// Floats are sizes or 1 by a size; what else they may come from is not looked for.
std::optional<SizeGraph::Varying> SizeGraph::solve(const Versions& versions) {
  using Form = Varying::Form;
  for (const Form form : {Form::kInt, Form::kFloat, Form::kReciprocal}) {
    Samples samples;
    for (const Argument* version : versions) {
      if (version->kind() != (form == Form::kInt ? Kind::kInt : Kind::kFloat)) break;
      if (form == Form::kInt) {
        samples.push_back(version->to_int());
        continue;
      }
      const double value = version->to_double();
      const double whole = form == Form::kFloat ? value : std::round(1 / value);
      if (!(std::abs(whole) < 1e15) || whole != std::round(whole) ||
          (form == Form::kReciprocal && 1 / whole != value))
        break;
      samples.push_back(static_cast<std::int64_t>(whole));
    }
    if (samples.size() < versions.size()) continue;
    if (auto expr = solver_.solve(samples)) return Varying{std::move(*expr), form};
  }
  return std::nullopt;
}

// Sizes of what a node gives are candidates for numbers further down.
void SizeGraph::learn_sizes(std::size_t index) {
  std::vector<const std::vector<std::int64_t>*> sizes;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const auto found = runs_[r].sizes.find(numbered_[r].nodes[index]);
    if (found == runs_[r].sizes.end()) return;
    if (r > 0 && found->second.size() != sizes[0]->size()) return;
    sizes.push_back(&found->second);
  }
  for (std::size_t dim = 0; dim < sizes[0]->size(); ++dim) {
    Samples samples;
    for (const auto* of_run : sizes) samples.push_back((*of_run)[dim]);
    if (solver_.add_size(samples)) inner_.push_back({index, dim});
  }
}

Node& SizeGraph::size_node(std::size_t index) {
  Node*& made = size_nodes_[index];
  if (made) return *made;
  Graph& graph = *runs_[0].graph;
  if (index >= symbols_.size()) {
    const InnerSize& inner = inner_[index - symbols_.size()];
    Node& node = *const_cast<Node*>(numbered_[0].nodes[inner.node]);
    const auto here = graph.inserting_after(node);
    made = &graph.call_function("aten::sym_size.int", {node, static_cast<std::int64_t>(inner.dim)});
    return *made;
  }
  const Symbol& symbol = symbols_[index];
  Node* input = nullptr;
  Node* first = nullptr;
  for (Node& node : graph.nodes()) {
    if (node.is_placeholder() && node.target().str() == symbol.input) input = &node;
    const bool is_symbol =
        std::ranges::any_of(size_nodes_, [&](const auto& each) { return each.second == &node; });
    if (!node.is_placeholder() && !is_symbol && !first) first = &node;
  }
  const auto here = graph.inserting_before(*first);
  made = &graph.call_function("aten::sym_size.int", {*input, symbol.dim}, {}, symbol.name);
  return *made;
}

Argument SizeGraph::emit(const Varying& varying, Node& before) {
  const Argument value = emit(varying.expr, before);
  if (varying.form == Varying::Form::kInt) return value;
  Graph& graph = *runs_[0].graph;
  const auto here = graph.inserting_before(before);
  if (varying.form == Varying::Form::kFloat) return graph.call_function("builtins.float", {value});
  return graph.call_function("operator.truediv", {Argument(1), value});
}

Argument SizeGraph::emit(const SizeExpr& expr, Node& before) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < solver_.num_sizes(); ++i) names.push_back("s" + std::to_string(i));
  const std::string key = expr.str(names);
  if (const auto found = emitted_.find(key); found != emitted_.end()) return *found->second;
  for (const SizeExpr::Term& term : expr.terms)
    for (const std::size_t index : term.sizes) size_node(index);
  Graph& graph = *runs_[0].graph;
  const auto here = graph.inserting_before(before);
  Argument sum;
  for (const SizeExpr::Term& term : expr.terms) {
    Argument product;
    for (const std::size_t index : term.sizes)
      product = product.is_none()
                    ? Argument(size_node(index))
                    : Argument(graph.call_function("operator.mul", {product, size_node(index)}));
    const std::int64_t factor = !sum.is_none() && term.factor < 0 ? -term.factor : term.factor;
    if (product.is_none())
      product = factor;
    else if (factor != 1)
      product = graph.call_function("operator.mul", {product, Argument(factor)});
    sum = sum.is_none() ? product
                        : Argument(graph.call_function(
                              term.factor < 0 ? "operator.sub" : "operator.add", {sum, product}));
  }
  if (expr.divisor != 1)
    sum = graph.call_function("operator.floordiv", {sum, Argument(expr.divisor)});
  emitted_.emplace(key, &sum.node());
  return sum;
}

bool SizeGraph::holds_for(const Recording& other, const std::vector<std::int64_t>& sizes) const {
  const Numbered its = number(*other.graph);
  if (its.nodes.size() != numbered_[0].nodes.size()) return false;
  std::vector<std::int64_t> all = sizes;
  for (const InnerSize& inner : inner_) {
    const auto found = other.sizes.find(its.nodes[inner.node]);
    if (found == other.sizes.end() || found->second.size() <= inner.dim) return false;
    all.push_back(found->second[inner.dim]);
  }
  const auto holds = [&](const Varying& varying, const Argument& value) {
    const std::int64_t wanted = varying.expr.evaluate(all);
    switch (varying.form) {
      case Varying::Form::kInt:
        return value == Argument(wanted);
      case Varying::Form::kFloat:
        return value == Argument(static_cast<double>(wanted));
      default:
        return wanted != 0 && value == Argument(1 / static_cast<double>(wanted));
    }
  };
  try {
    for (std::size_t i = 0; i < its.nodes.size(); ++i) {
      compare_nodes(i, {&numbered_[0], &its}, {&runs_[0].constants, &other.constants});
      std::size_t leaf = 0;
      const auto compare = [&](const Versions& leaves) -> Argument {
        const auto varying = varying_.find({i, leaf++});
        const Argument &mine = *leaves[0], &value = *leaves[1];
        const bool same = varying != varying_.end() ? holds(varying->second, value)
                          : mine.is_node() && value.is_node()
                              ? numbered_[0].index.at(&mine.node()) == its.index.at(&value.node())
                              : mine == value;
        if (!same) throw Differs{1, {}};
        return mine;
      };
      const auto& [args, kwargs] = originals_[i];
      for (std::size_t a = 0; a < args.size(); ++a)
        walk({&args[a], &its.nodes[i]->args()[a]}, compare);
      for (std::size_t k = 0; k < kwargs.size(); ++k)
        walk({&kwargs[k].value, &its.nodes[i]->kwargs()[k].value}, compare);
    }
  } catch (const Differs&) {
    return false;
  }
  return true;
}

}  // namespace fx
