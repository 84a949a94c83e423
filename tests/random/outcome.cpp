#include "tests/random/outcome.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "fx/graph/tensor_copies.h"
#include "fx/interpret/compare.h"
#include "fx/interpret/interpreter.h"
#include "fx/interpret/value_map.h"

namespace fx::fuzz {
namespace {

// Attributes and copies of what they hold; puts that back at the end.
class KeepState {
 public:
  explicit KeepState(const GraphModule& module) {
    for (auto& [name, tensor] : state_of(module)) {
      at::Tensor data = tensor.detach();
      at::Tensor copy = data.clone();
      kept_.push_back({std::move(name), std::move(data), std::move(copy)});
    }
  }
  KeepState(const KeepState&) = delete;
  KeepState& operator=(const KeepState&) = delete;
  ~KeepState() { restore(); }

  bool holds(const at::Tensor& tensor) const {
    return std::ranges::any_of(kept_,
                               [&](const Kept& kept) { return kept.tensor.is_alias_of(tensor); });
  }

  void describe(Outcome& outcome) const {
    for (const Kept& kept : kept_) {
      outcome.attributes.insert(kept.name);
      if (!same_bits(kept.tensor, kept.copy))
        outcome.written.emplace(kept.name, kept.tensor.clone());
    }
  }

 private:
  struct Kept {
    std::string name;
    at::Tensor tensor;
    at::Tensor copy;
  };

  void restore() {
    const at::NoGradGuard no_grad;
    for (Kept& kept : kept_)
      if (!same_bits(kept.tensor, kept.copy)) kept.tensor.copy_(kept.copy);
  }

  std::vector<Kept> kept_;
};

// A caller's write to every tensor of the results that can be written to and is no attribute.
void write_to(const Value& value, Values& seen, const Value& all, const KeepState& state) {
  if (value.isTensor()) {
    at::Tensor tensor = value.toTensor();
    if (!tensor.defined() || at::has_internal_overlap(tensor) == at::MemOverlap::Yes ||
        state.holds(tensor))
      return;
    if (tensor.scalar_type() == at::kBool)
      tensor.logical_not_();
    else
      tensor.add_(1);
    seen.push_back(clone_tensors(all));
  } else if (is_sequence(value)) {
    for (const Value& item : elements(value)) write_to(item, seen, all, state);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) write_to(item.value(), seen, all, state);
  }
}

// Element-wise comparison of the bits behind one dtype; contiguous tensors.
template <typename T, typename Bits>
bool same_floats(const at::Tensor& a, const at::Tensor& b) {
  const auto* left = a.const_data_ptr<T>();
  const auto* right = b.const_data_ptr<T>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    Bits x, y;
    std::memcpy(&x, left + i, sizeof x);
    std::memcpy(&y, right + i, sizeof y);
    if (x != y && !(left[i] != left[i] && right[i] != right[i])) return false;
  }
  return true;
}

CompareOptions rounding(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return {.rtol = 1e-10, .atol = 1e-10};
    case at::kFloat:
      return {.rtol = 2e-5, .atol = 2e-5};
    default:
      return {.rtol = 1.6e-2, .atol = 1e-5};
  }
}

std::string tensor_difference(const at::Tensor& wanted, const at::Tensor& found,
                              Agreement agreement) {
  if (same_bits(wanted, found)) return {};
  if (agreement == Agreement::kRounding && wanted.is_floating_point())
    return compare_values(wanted, found, rounding(wanted.scalar_type()));
  if (wanted.sizes() == found.sizes() && wanted.numel() <= 12)
    return "wanted " + to_string(wanted) + ", found " + to_string(found);
  const std::string words = compare_values(wanted, found, {.rtol = 0, .atol = 0});
  return words.empty() ? "zeros of different signs" : words;
}

}  // namespace

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  if (left.numel() == 0 ||
      std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0)
    return true;
  switch (a.scalar_type()) {
    case at::kFloat:
      return same_floats<float, std::uint32_t>(left, right);
    case at::kDouble:
      return same_floats<double, std::uint64_t>(left, right);
    case at::kBFloat16:
      return same_floats<at::BFloat16, std::uint16_t>(left, right);
    case at::kHalf:
      return same_floats<at::Half, std::uint16_t>(left, right);
    default:
      return false;
  }
}

Values copies_of(const Values& values) {
  TensorCopies copies;
  Values out;
  out.reserve(values.size());
  for (const Value& value : values)
    out.push_back(map_tensors(value, [&](const at::Tensor& t) -> Value { return copies(t); }));
  return out;
}

std::vector<std::pair<std::string, at::Tensor>> state_of(const GraphModule& module) {
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (const auto& item : module.named_parameters()) found.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) found.emplace_back(item.key(), item.value());
  auto add_constants = [&](const std::string& prefix, const torch::nn::Module& part) {
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(&part))
      for (const auto& [path, tensor] : graph_module->constants())
        found.emplace_back(prefix + path, tensor);
  };
  add_constants("", module);
  for (const auto& item : module.named_modules("", /*include_self=*/false))
    add_constants(item.key() + ".", *item.value());
  return found;
}

Outcome run(GraphModule& module, const Values& inputs, const HowToRun& how) {
  const at::NoGradGuard no_grad;
  const KeepState state(module);
  Values copies = copies_of(inputs);
  auto once = [&] {
    if (how.random) at::manual_seed(2026);
    return how.runner == Runner::kInterpreter ? Interpreter(module).run(copies)
                                              : module.forward(copies);
  };
  Outcome outcome;
  if (how.twice) {
    Values all;
    const Value first = once();
    all.push_back(clone_tensors(first));
    for (const Value& input : copies) all.push_back(clone_tensors(input));
    write_to(first, all, first, state);
    all.push_back(clone_tensors(once()));
    outcome.results = c10::ivalue::Tuple::create(std::move(all));
  } else {
    outcome.results = clone_tensors(once());
  }
  for (const Value& input : copies) outcome.inputs.push_back(clone_tensors(input));
  state.describe(outcome);
  return outcome;
}

std::string difference(const Value& wanted, const Value& found, Agreement agreement) {
  if (wanted.isTensor() && found.isTensor())
    return tensor_difference(wanted.toTensor(), found.toTensor(), agreement);
  if ((wanted.isTuple() && found.isTuple()) || (wanted.isList() && found.isList())) {
    const Values left = elements(wanted), right = elements(found);
    if (left.size() != right.size()) return compare_values(wanted, found);
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::string words = difference(left[i], right[i], agreement);
      if (!words.empty()) return "item " + std::to_string(i) + ": " + words;
    }
    return {};
  }
  if (wanted.isGenericDict() && found.isGenericDict()) {
    const auto left = wanted.toGenericDict(), right = found.toGenericDict();
    if (left.size() != right.size()) return compare_values(wanted, found);
    for (const auto& item : left) {
      const auto other = right.find(item.key());
      if (other == right.end()) return "the key " + to_string(item.key()) + " is missing";
      const std::string words = difference(item.value(), other->value(), agreement);
      if (!words.empty()) return "key " + to_string(item.key()) + ": " + words;
    }
    return {};
  }
  return compare_values(wanted, found, {.rtol = 0, .atol = 0});
}

std::string difference(const Outcome& wanted, const Outcome& found, Agreement agreement) {
  std::string words = difference(wanted.results, found.results, agreement);
  if (!words.empty()) return "results differ: " + words;
  for (std::size_t i = 0; i < wanted.inputs.size(); ++i) {
    words = difference(wanted.inputs[i], found.inputs[i], agreement);
    if (!words.empty()) return "input " + std::to_string(i) + " after the run: " + words;
  }
  for (const auto& [name, tensor] : found.written)
    if (!wanted.written.contains(name)) return "the run writes to attribute " + name;
  if (!wanted.written.empty() && found.written.empty())
    return "the run no longer writes to attribute " + wanted.written.begin()->first;
  for (const auto& [name, tensor] : wanted.written) {
    if (!found.attributes.contains(name)) continue;
    const auto other = found.written.find(name);
    if (other == found.written.end()) return "the run no longer writes to attribute " + name;
    words = tensor_difference(tensor, other->second, agreement);
    if (!words.empty()) return "attribute " + name + " after the run: " + words;
  }
  return {};
}

}  // namespace fx::fuzz
