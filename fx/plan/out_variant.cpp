#include "fx/plan/out_variant.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>

namespace fx {
namespace {

bool has_cpu_kernel(const Overload& overload) {
  return overload.handle.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

// Whether results could differ between calls with arguments of the same dtypes and sizes.
bool depends_on_more(const Overload& overload) {
  constexpr at::Tag kTags[] = {at::Tag::dynamic_output_shape, at::Tag::data_dependent_output,
                               at::Tag::inplace_view, at::Tag::nondeterministic_seeded};
  return std::any_of(std::begin(kTags), std::end(kTags),
                     [&](at::Tag tag) { return overload.handle.hasTag(tag); });
}

bool is_fresh_tensor(const c10::Argument& argument) {
  return argument.type()->kind() == c10::TypeKind::TensorType && !argument.alias_info();
}

bool is_out_variant_of(const Overload& functional, const Overload& other) {
  const c10::FunctionSchema& schema = functional.handle.schema();
  const c10::FunctionSchema& out = other.handle.schema();
  const auto& arguments = schema.arguments();
  const auto& out_arguments = out.arguments();
  if (!other.writes_out || out.returns().size() != schema.returns().size() ||
      out_arguments.size() != arguments.size() + schema.returns().size() || !has_cpu_kernel(other))
    return false;
  for (std::size_t i = 0; i < out_arguments.size(); ++i) {
    const c10::Argument& mine = out_arguments[i];
    if (i >= arguments.size()) {
      if (!mine.is_out() || mine.type()->kind() != c10::TypeKind::TensorType) return false;
    } else if (mine.is_out() || mine.name() != arguments[i].name() ||
               *mine.type() != *arguments[i].type() || other.rules[i].written) {
      return false;
    }
  }
  return true;
}

const Overload* find_overload(std::string_view base_name, std::string_view overload_name) {
  for (const Overload& overload : OpInfo::of_method(base_name).overloads)
    if (overload.handle.operator_name().overload_name == overload_name) return &overload;
  return nullptr;
}

}  // namespace

OutVariant find_out_variant(const Overload& functional) {
  const c10::OperatorName& name = functional.handle.operator_name();
  const auto& returns = functional.handle.schema().returns();
  if (!name.name.starts_with("aten::") || functional.mutates || functional.random ||
      returns.empty() || !std::all_of(returns.begin(), returns.end(), is_fresh_tensor) ||
      depends_on_more(functional) || !has_cpu_kernel(functional))
    return {};
  const std::string_view base_name = std::string_view(name.name).substr(6);
  // LibTorch has relu call clamp_min.
  if (base_name == "relu" && name.overload_name.empty())
    if (const Overload* clamp = find_overload("clamp_min", "out")) return {clamp, {Value(0)}};
  for (const Overload& other : OpInfo::of_method(base_name).overloads)
    if (is_out_variant_of(functional, other)) return {&other, {}};
  return {};
}

}  // namespace fx
