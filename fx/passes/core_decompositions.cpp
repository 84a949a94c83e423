#include "fx/passes/core_decompositions.h"

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/ops/call.h"

namespace fx::core {
namespace {

bool is_narrow(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

// float32 for float16 and bfloat16 on the stack; the dtype that results have then, if there is any.
std::optional<at::ScalarType> widen(torch::jit::Stack& stack) {
  std::optional<at::ScalarType> narrow;
  bool has_wide = false;
  for (Value& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::ScalarType dtype = value.toTensor().scalar_type();
    if (!is_narrow(dtype)) {
      has_wide |= at::isFloatingType(dtype) && value.toTensor().dim() > 0;
      continue;
    }
    narrow = narrow ? at::promoteTypes(*narrow, dtype) : dtype;
    value = value.toTensor().to(at::kFloat);
  }
  return has_wide ? std::nullopt : narrow;
}

Value narrowed(const Value& value, at::ScalarType dtype) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.scalar_type() == at::kFloat ? Value(tensor.to(dtype)) : value;
  }
  if (!value.isTuple()) return value;
  Values items;
  for (const Value& item : elements(value)) items.push_back(narrowed(item, dtype));
  return c10::ivalue::Tuple::create(std::move(items));
}

}  // namespace

at::Tensor wide(const at::Tensor& x) {
  return x.defined() && is_narrow(x.scalar_type()) ? x.to(at::kFloat) : x;
}

at::Tensor floating(const at::Tensor& x) {
  return at::isIntegralType(x.scalar_type(), /*includeBool=*/true)
             ? x.to(at::typeMetaToScalarType(at::get_default_dtype()))
             : x;
}

void Entries::put(std::string_view name, bool wide, OnStack run) {
  const std::string full(name);
  const auto convert = [full, wide, run = std::move(run)](Values args, KwValues kwargs) -> Value {
    const OpInfo& info = OpInfo::of(*Function::get(full));
    torch::jit::Stack stack;
    select_and_bind(info, full, args, kwargs, stack);
    if (!wide) return run(stack);
    const std::optional<at::ScalarType> narrow = widen(stack);
    Value value = run(stack);
    return narrow ? narrowed(value, *narrow) : value;
  };
  if (!table_.emplace(full, convert).second) throw InternalError("two decompositions of " + full);
}

}  // namespace fx::core

namespace fx {

const DecompositionTable& core_aten_decompositions() {
  static const DecompositionTable kTable = [] {
    DecompositionTable table;
    core::Entries entries(table);
    core::add_activations(entries);
    core::add_pointwise(entries);
    core::add_reductions(entries);
    core::add_losses(entries);
    core::add_norms(entries);
    core::add_views(entries);
    core::add_indexing(entries);
    core::add_factories(entries);
    return table;
  }();
  return kTable;
}

}  // namespace fx
