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

bool is_matrix(const Value& value) { return value.isTensor() && value.toTensor().dim() == 2; }

// What LibTorch's operators of no kernel of their own call, by reading them.
OutVariant find_inner(std::string_view name, std::string_view overload,
                      const torch::jit::Stack& arguments) {
  const auto variant = [](std::string_view inner, std::vector<OutVariant::Arg> args,
                          Values extra) -> OutVariant {
    return {find_overload(inner, "out"), /*all_args=*/false, std::move(args), std::move(extra)};
  };
  if (name == "relu" && overload.empty()) return variant("clamp_min", {{0}}, {Value(0)});
  if ((name == "softmax" || name == "log_softmax") && overload == "int" && arguments[2].isNone())
    return variant(name == "softmax" ? "_softmax" : "_log_softmax", {{0}, {1}}, {Value(false)});
  if (name == "matmul" && is_matrix(arguments[0]) && is_matrix(arguments[1]))
    return variant("mm", {{0}, {1}}, {});
  if (name == "linear" && is_matrix(arguments[0]) && is_matrix(arguments[1]) &&
      arguments[2].isTensor() && arguments[2].toTensor().defined())
    return variant("addmm", {{2}, {0}, {.index = 1, .transposed = true}}, {Value(1), Value(1)});
  return {};
}

}  // namespace

OutVariant find_out_variant(const Overload& functional, const torch::jit::Stack& arguments) {
  const c10::OperatorName& name = functional.handle.operator_name();
  const auto& returns = functional.handle.schema().returns();
  if (!name.name.starts_with("aten::") || functional.mutates || functional.random ||
      returns.empty() || !std::all_of(returns.begin(), returns.end(), is_fresh_tensor) ||
      depends_on_more(functional))
    return {};
  const std::string_view base_name = std::string_view(name.name).substr(6);
  if (OutVariant inner = find_inner(base_name, name.overload_name, arguments); inner.overload)
    return inner;
  if (!has_cpu_kernel(functional)) return {};
  for (const Overload& other : OpInfo::of_method(base_name).overloads)
    if (is_out_variant_of(functional, other)) return {.overload = &other};
  return {};
}

}  // namespace fx
