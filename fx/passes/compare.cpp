#include "fx/passes/compare.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cstdio>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/isolation.h"

namespace fx {
namespace {

// Keeps the values of all nodes, by name.
class Recorder : public Interpreter {
 public:
  explicit Recorder(GraphModule& module) : Interpreter(module, /*garbage_collect_values=*/true) {}

  void record_value(Node& node, const Value& value) override {
    // A copy, since a later node may write to it.
    values.emplace_back(&node, clone_tensors(value));
  }

  std::vector<std::pair<const Node*, Value>> values;
};

std::string tensors_differ(const at::Tensor& a, const at::Tensor& b, Tolerance tolerance) {
  if (a.defined() != b.defined()) return "only one tensor is defined";
  if (!a.defined()) return {};
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type() || a.device() != b.device())
    return "wanted " + TensorMeta(a).to_string() + ", found " + TensorMeta(b).to_string();
  const at::Tensor x = a.detach().to_dense();
  const at::Tensor y = b.detach().to_dense();
  const at::Tensor close = at::isclose(y, x, tolerance.rtol, tolerance.atol, /*equal_nan=*/true);
  if (close.all().item<bool>()) return {};
  const at::Tensor far = close.logical_not();
  const auto count = far.sum().item<std::int64_t>();
  const auto first = far.flatten().nonzero()[0].item<std::int64_t>();
  const auto number = [&](const at::Tensor& t) {
    return float_repr(t.flatten()[first].to(at::kDouble).item<double>());
  };
  if (x.is_complex()) return std::to_string(count) + " complex elements differ";
  return std::to_string(count) + " of " + std::to_string(x.numel()) +
         " elements differ, the first at flat index " + std::to_string(first) + ": wanted " +
         number(x) + ", found " + number(y);
}

}  // namespace

Value run_on_copies(GraphModule& module, const Values& inputs) {
  Values copies = inputs;
  const Isolation isolation(module, copies);
  return clone_tensors(Interpreter(module).run(std::move(copies)));
}

std::string describe_difference(const Value& expected, const Value& actual, Tolerance tolerance) {
  if (expected.isTensor() && actual.isTensor())
    return tensors_differ(expected.toTensor(), actual.toTensor(), tolerance);
  if (expected.isTensor() || actual.isTensor())
    return "wanted " + describe(expected) + ", found " + describe(actual);
  if (is_sequence(expected) && is_sequence(actual)) {
    const Values wanted = elements(expected);
    const Values found = elements(actual);
    if (wanted.size() != found.size())
      return "wanted " + std::to_string(wanted.size()) + " values, found " +
             std::to_string(found.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (std::string text = describe_difference(wanted[i], found[i], tolerance); !text.empty())
        return "[" + std::to_string(i) + "] " + text;
    return {};
  }
  if (expected.isGenericDict() && actual.isGenericDict()) {
    const auto wanted = expected.toGenericDict();
    const auto found = actual.toGenericDict();
    if (wanted.size() != found.size())
      return "wanted " + std::to_string(wanted.size()) + " entries, found " +
             std::to_string(found.size());
    for (const auto& entry : wanted) {
      if (!found.contains(entry.key())) return "missing key " + to_string(entry.key());
      if (std::string text = describe_difference(entry.value(), found.at(entry.key()), tolerance);
          !text.empty())
        return "[" + to_string(entry.key()) + "] " + text;
    }
    return {};
  }
  if (expected.tagKind() != actual.tagKind())
    return "wanted " + describe(expected) + ", found " + describe(actual);
  if (expected.isCapsule() || expected == actual) return {};
  return "wanted " + to_string(expected) + ", found " + to_string(actual);
}

std::optional<NodeDifference> find_first_difference(GraphModule& original, GraphModule& transformed,
                                                    const Values& inputs, Tolerance tolerance) {
  auto values_of = [&](GraphModule& module) {
    Values copies = inputs;
    const Isolation isolation(module, copies);
    Recorder recorder(module);
    recorder.run(std::move(copies));
    return std::move(recorder.values);
  };
  const auto wanted = values_of(original);
  const auto found = values_of(transformed);
  auto compare = [&](const Node& a, const Value& value, const Node& b,
                     const Value& other) -> std::optional<NodeDifference> {
    std::string difference = describe_difference(value, other, tolerance);
    if (difference.empty()) return std::nullopt;
    std::string text = a.format_node() + "\n" + b.format_node() + "\n" + difference;
    return NodeDifference{std::string(a.name()), std::move(difference), std::move(text)};
  };
  for (const auto& [node, value] : wanted) {
    for (const auto& [other, other_value] : found) {
      const bool same = node->is_output() ? other->is_output() : other->name() == node->name();
      if (!same) continue;
      if (auto difference = compare(*node, value, *other, other_value)) return difference;
      break;
    }
  }
  return std::nullopt;
}

Values random_inputs(const Graph& graph, std::uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  Values inputs;
  for (const Node* node : graph.placeholders()) {
    const TensorMeta* meta = tensor_meta(*node);
    if (!meta)
      throw PassError(ErrorCode::kBadPassOption, "random_inputs: placeholder " +
                                                     str_repr(node->name()) +
                                                     " has no tensor_meta; run shape_prop first");
    const at::TensorOptions options = at::TensorOptions().dtype(meta->dtype);
    at::Tensor value;
    if (meta->dtype == at::kBool)
      value = at::randint(2, meta->shape, generator, at::kLong).to(at::kBool);
    else if (at::isIntegralType(meta->dtype, /*includeBool=*/false))
      value = at::randint(8, meta->shape, generator, at::kLong).to(meta->dtype);
    else if (at::isComplexType(meta->dtype))
      value = at::randn(meta->shape, generator, options);
    else
      value = at::randn(meta->shape, generator, at::kFloat).to(meta->dtype);
    inputs.emplace_back(value.to(meta->device));
  }
  return inputs;
}

}  // namespace fx
