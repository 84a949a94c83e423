#include "fx/interpret/compare.h"

#include <ATen/ATen.h>

#include <cmath>

#include "fx/graph/node_error.h"
#include "fx/interpret/value_map.h"

namespace fx {
namespace {

bool close(double a, double b, CompareOptions options) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= options.atol + options.rtol * std::fabs(a);
}

std::string compare_tensors(const at::Tensor& a, const at::Tensor& b, CompareOptions options) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? "" : "one is undefined";
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.device() != b.device())
    return "found " + describe(b) + ", wanted " + describe(a);
  if (a.is_meta()) return {};
  at::NoGradGuard no_grad;
  if (!a.is_floating_point() && !a.is_complex())
    return at::equal(a, b) ? std::string()
                           : std::to_string(a.ne(b).sum().item<std::int64_t>()) + " of " +
                                 std::to_string(a.numel()) + " elements differ";
  if (at::allclose(b, a, options.rtol, options.atol, /*equal_nan=*/true)) return {};
  return "the largest absolute difference is " +
         std::to_string((a - b).abs().nan_to_num(INFINITY).max().item<double>());
}

std::string compare_items(const Values& a, const Values& b, CompareOptions options) {
  if (a.size() != b.size())
    return "found " + std::to_string(b.size()) + " items, wanted " + std::to_string(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::string reason = compare_values(a[i], b[i], options);
    if (!reason.empty()) return "item " + std::to_string(i) + ": " + reason;
  }
  return {};
}

// Steps an interpreter and keeps the value of the node, which may be gone from env by then.
class Stepper {
 public:
  Stepper(Interpreter& interpreter, const Values& inputs) : interpreter_(interpreter) {
    Values cloned;
    for (const Value& input : inputs) cloned.push_back(clone_tensors(input));
    interpreter_.start(std::move(cloned));
    hook_ = interpreter_.register_node_post_hook(
        [this](Node&, const Value& output) { value_ = output; });
  }
  Stepper(const Stepper&) = delete;
  Stepper& operator=(const Stepper&) = delete;
  ~Stepper() { hook_.remove(); }

  Node* step() { return interpreter_.step(); }
  const Value& value() const { return value_; }

 private:
  Interpreter& interpreter_;
  HookHandle hook_;
  Value value_;
};

}  // namespace

std::string compare_values(const Value& expected, const Value& actual, CompareOptions options) {
  if (expected.isTensor() && actual.isTensor())
    return compare_tensors(expected.toTensor(), actual.toTensor(), options);
  if ((expected.isList() && actual.isList()) || (expected.isTuple() && actual.isTuple()))
    return compare_items(elements(expected), elements(actual), options);
  if (expected.isDouble() && actual.isDouble())
    return close(expected.toDouble(), actual.toDouble(), options)
               ? std::string()
               : "found " + to_string(actual) + ", wanted " + to_string(expected);
  if (expected.isGenericDict() && actual.isGenericDict()) {
    const auto a = expected.toGenericDict(), b = actual.toGenericDict();
    if (a.size() != b.size()) return "found " + describe(actual) + ", wanted " + describe(expected);
    for (const auto& item : a) {
      const auto found = b.find(item.key());
      if (found == b.end()) return "the key " + to_string(item.key()) + " is missing";
      std::string reason = compare_values(item.value(), found->value(), options);
      if (!reason.empty()) return "key " + to_string(item.key()) + ": " + reason;
    }
    return {};
  }
  if (const Slice* a = as_slice(expected))
    if (const Slice* b = as_slice(actual))
      return compare_items({a->start, a->stop, a->step}, {b->start, b->stop, b->step}, options);
  if (is_ellipsis(expected) && is_ellipsis(actual)) return {};
  if (expected.tagKind() != actual.tagKind())
    return "found " + describe(actual) + ", wanted " + describe(expected);
  const bool same = expected.isCapsule() ? expected.is(actual) : expected == actual;
  return same ? std::string() : "found " + to_string(actual) + ", wanted " + to_string(expected);
}

std::optional<Difference> first_difference(Interpreter& expected, Interpreter& actual,
                                           const Values& inputs, CompareOptions options) {
  Stepper first(expected, inputs);
  Stepper second(actual, inputs);
  while (Node* node = first.step()) {
    const std::string name(node->name());
    Node* other = nullptr;
    try {
      other = second.step();
    } catch (...) {
      return Difference{name, "failed: " + current_exception_text(), first.value(), {}};
    }
    if (!other || other->name() != name)
      return Difference{
          name, "found " + (other ? "node " + std::string(other->name()) : "the end") + " instead",
          first.value(), other ? second.value() : Value()};
    std::string reason = compare_values(first.value(), second.value(), options);
    if (!reason.empty()) return Difference{name, std::move(reason), first.value(), second.value()};
  }
  if (Node* more = second.step())
    return Difference{std::string(more->name()), "a node too many", {}, second.value()};
  return std::nullopt;
}

}  // namespace fx
