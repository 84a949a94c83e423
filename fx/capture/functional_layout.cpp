#include "fx/capture/functional_layout.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fx/base/error.h"
#include "fx/ops/value.h"

namespace fx {
namespace {

namespace functional = at::functionalization::impl;

using Dims = std::vector<std::int64_t>;

// Dimensions from the outermost in memory to the innermost.
Dims memory_order(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  Dims order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  // One of a single element lies nowhere.
  std::erase_if(order, [&](std::int64_t dim) { return sizes[static_cast<std::size_t>(dim)] == 1; });
  // Of equal strides the first dimension is outside.
  std::ranges::sort(order, {}, [&](std::int64_t dim) {
    return std::pair(-strides[static_cast<std::size_t>(dim)], dim);
  });
  for (std::size_t dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] == 1) order.push_back(static_cast<std::int64_t>(dim));
  return order;
}

bool has_strides(const at::Tensor& tensor, const Dims& strides) {
  if (tensor.numel() == 0) return true;
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (tensor.sizes()[i] > 1 && tensor.strides()[i] != strides[i]) return false;
  return true;
}

at::Tensor in_dense_order(const at::Tensor& tensor, const Dims& strides) {
  const Dims order = memory_order(tensor.sizes(), strides);
  if (std::ranges::is_sorted(order)) return tensor.clone(at::MemoryFormat::Contiguous);
  Dims inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return tensor.permute(order).clone(at::MemoryFormat::Contiguous).permute(inverse);
}

void replace(const at::Tensor& wrapper, const at::Tensor& content) {
  functional::replace_(wrapper, content);
  functional::commit_update(wrapper);
  functional::sync(wrapper);
}

// As bernoulli_ draws: its functional form is contiguous, and that of native_dropout is not.
at::Tensor draw_bernoulli(const at::Tensor& self, double p) {
  // What native_dropout draws with is 1 - q, which is to be p: exactly, or next above, where random
  // numbers of 53 bits cannot tell.
  double q = 1 - p;
  if (1 - q < p) q = std::nextafter(q, 0.);
  const at::Tensor like =
      at::isFloatingType(self.scalar_type()) ? self : at::zeros_like(self, at::kFloat);
  return std::get<1>(at::native_dropout(like, q, /*train=*/true)).to(self.scalar_type());
}

// As normal_ draws into memory with gaps: one by one. Into contiguous memory it draws blocks, so
// that what it draws into here is transposed.
at::Tensor draw_normal_with_gaps(const at::Tensor& self, double mean, double std) {
  const std::int64_t half = self.numel() / 2, rest = self.numel() % 2;
  std::vector<at::Tensor> parts;
  if (half > 0)
    parts.push_back(at::normal_functional(at::zeros({half, 2}, self.options()).t(), mean, std)
                        .t()
                        .reshape({2 * half}));
  if (rest > 0) parts.push_back(at::normal_functional(at::zeros({1}, self.options()), mean, std));
  return at::cat(parts).view(self.sizes());
}

// Where all memory of the tensor is its own, clones have its order.
bool is_in_order(const at::Tensor& tensor) {
  return std::ranges::is_sorted(memory_order(tensor.sizes(), tensor.strides()));
}

// The argument that an operator fills from nothing or from its other arguments (out=), or null.
const c10::IValue* filled_argument(const c10::FunctionSchema& schema,
                                   c10::ArrayRef<c10::IValue> args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.alias_info() && argument.alias_info()->isWrite() && argument.is_out() &&
        args[i].isTensor())
      return &args[i];
  }
  return nullptr;
}

}  // namespace

at::Tensor functional_content(const at::Tensor& tensor) {
  if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return tensor;
  functional::sync(tensor);
  return functional::from_functional_tensor(tensor);
}

WrittenLayouts::WrittenLayouts(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> args) {
  if (op.hasTag(at::Tag::inplace_view)) return;
  const auto add = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !functional::isFunctionalTensor(tensor)) return;
    const at::Tensor content = functional_content(tensor);
    if (content.layout() != at::kStrided) return;
    written_.emplace_back(tensor, Layout{content.sizes().vec(), content.strides().vec(),
                                         content.is_non_overlapping_and_dense()});
  };
  for (std::size_t i = 0; i < args.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    if (args[i].isTensor()) add(args[i].toTensor());
    if (args[i].isTensorList())
      for (const at::Tensor& tensor : args[i].toTensorVector()) add(tensor);
  }
}

void WrittenLayouts::keep() const {
  for (const auto& [tensor, layout] : written_) {
    const at::Tensor content = functional_content(tensor);
    if (content.sizes() != layout.sizes || has_strides(content, layout.strides)) continue;
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::Functionalize);
    replace(tensor, layout.is_dense ? in_dense_order(content, layout.strides)
                                    : at::copy(at::empty_strided(layout.sizes, layout.strides,
                                                                 content.options()),
                                               content));
  }
}

bool draw_in_memory_order(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  const c10::FunctionSchema& schema = op.schema();
  const auto args = torch::jit::last(*stack, schema.arguments().size());
  const auto written = [&](std::size_t i) -> at::Tensor {
    if (!args[i].isTensor() || !functional::isFunctionalTensor(args[i].toTensor())) return {};
    at::Tensor content = functional_content(args[i].toTensor());
    return content.layout() != at::kStrided || content.is_contiguous() ? at::Tensor() : content;
  };
  if (const c10::IValue* out = filled_argument(schema, args)) {
    if (!written(static_cast<std::size_t>(out - args.begin())).defined()) return false;
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CPU))
      throw PassError(ErrorCode::kNotFunctional,
                      "functionalize: " + toString(op.operator_name()) + " draws into a " +
                          describe(*out) +
                          " that is not contiguous, in the order of its memory, and no functional "
                          "operator does: let it make a new tensor, and copy that");
    // Made of operators that write in place.
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    return true;
  }
  const bool is_bernoulli =
      schema.name() == "aten::bernoulli_" && schema.overload_name() == "float";
  const bool is_normal = schema.name() == "aten::normal_";
  if ((!is_bernoulli && !is_normal) || !args.back().isNone()) return false;
  const at::Tensor self = written(0);
  if (!self.defined()) return false;
  const double first = args[1].toDouble();
  if (is_bernoulli && !(first >= 0 && first <= 1)) return false;
  if (is_normal && (self.is_non_overlapping_and_dense() || !is_in_order(self))) return false;
  const at::Tensor wrapper = args[0].toTensor();
  const WrittenLayouts layouts(op, args);
  {
    const c10::impl::ExcludeDispatchKeyGuard plain(c10::DispatchKey::Functionalize);
    replace(wrapper, is_bernoulli ? draw_bernoulli(self, first)
                                  : draw_normal_with_gaps(self, first, args[2].toDouble()));
  }
  layouts.keep();
  torch::jit::drop(*stack, schema.arguments().size());
  stack->emplace_back(wrapper);
  return true;
}

}  // namespace fx
