#include "fx/passes/compare.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <unordered_map>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"
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

}  // namespace

Value run_on_copies(GraphModule& module, const Values& inputs) {
  Values copies = inputs;
  const Isolation isolation(module, copies);
  return clone_tensors(Interpreter(module).run(std::move(copies)));
}

std::optional<NodeDifference> find_first_difference(GraphModule& original, GraphModule& transformed,
                                                    const Values& inputs, CompareOptions options) {
  auto values_of = [&](GraphModule& module) {
    Values copies = inputs;
    const Isolation isolation(module, copies);
    Recorder recorder(module);
    recorder.run(std::move(copies));
    return std::move(recorder.values);
  };
  const auto wanted = values_of(original);
  const auto found = values_of(transformed);
  // The output by its opcode, all others by name.
  auto key_of = [](const Node& node) {
    return node.is_output() ? std::string_view("output:") : node.name();
  };
  std::unordered_map<std::string_view, const std::pair<const Node*, Value>*> by_name;
  for (const auto& entry : found) by_name[key_of(*entry.first)] = &entry;
  for (const auto& [node, value] : wanted) {
    const auto other = by_name.find(key_of(*node));
    if (other == by_name.end()) continue;
    std::string difference = compare_values(value, other->second->second, options);
    if (difference.empty()) continue;
    std::string text =
        node->format_node() + "\n" + other->second->first->format_node() + "\n" + difference;
    return NodeDifference{std::string(node->name()), std::move(difference), std::move(text)};
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
