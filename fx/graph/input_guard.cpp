#include "fx/graph/input_guard.h"

#include <ATen/core/Tensor.h>

#include <map>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

using Dim = InputGuard::Dim;

std::string dim_text(const Dim& dim) {
  if (dim.size) return std::to_string(*dim.size);
  return dim.symbol.empty() ? "?" : dim.symbol;
}

std::string range_text(const Dim& dim) {
  return (dim.min ? std::to_string(*dim.min) : "0") + " to " +
         (dim.max ? std::to_string(*dim.max) : "any size");
}

/// The extent a symbol got, and where from.
struct Bound {
  std::int64_t size;
  std::string where;
};

void check_input(const InputGuard& guard, const Value& value,
                 std::map<std::string, Bound>& symbols) {
  const auto fail = [&](ErrorCode code, const std::string& what) {
    throw RunError(code, "input " + str_repr(guard.input) + ": " + what + "; found " +
                             describe(value) + ", wanted " + guard.str());
  };
  if (!value.isTensor() || !value.toTensor().defined())
    fail(ErrorCode::kWrongType, "the graph was captured with a tensor here");
  const at::Tensor& tensor = value.toTensor();
  if (tensor.scalar_type() != guard.dtype) fail(ErrorCode::kWrongType, "the dtype differs");
  if (tensor.dim() != static_cast<std::int64_t>(guard.dims.size()))
    fail(ErrorCode::kShapeMismatch, "the number of dimensions differs");
  for (std::size_t d = 0; d < guard.dims.size(); ++d) {
    const Dim& dim = guard.dims[d];
    const std::int64_t size = tensor.size(static_cast<std::int64_t>(d));
    const std::string where = "dimension " + std::to_string(d);
    if (dim.size && size != *dim.size)
      fail(ErrorCode::kShapeMismatch, where + " must be " + std::to_string(*dim.size));
    if ((dim.min && size < *dim.min) || (dim.max && size > *dim.max))
      fail(ErrorCode::kShapeMismatch,
           where + " (" + dim_text(dim) + ") must be " + range_text(dim));
    if (dim.symbol.empty()) continue;
    const auto [bound, is_new] =
        symbols.try_emplace(dim.symbol, Bound{size, where + " of " + str_repr(guard.input)});
    if (!is_new && bound->second.size != size)
      fail(ErrorCode::kShapeMismatch, where + " (" + dim.symbol + ") must be " +
                                          std::to_string(bound->second.size) + ", as " +
                                          bound->second.where);
  }
}

}  // namespace

std::string InputGuard::str() const {
  std::string out(short_dtype_name(dtype));
  out += '[';
  for (std::size_t d = 0; d < dims.size(); ++d) out += (d ? ", " : "") + dim_text(dims[d]);
  return out + "]";
}

InputGuard exact_guard(std::string input, const at::Tensor& tensor) {
  InputGuard guard{std::move(input), tensor.scalar_type(), {}};
  for (std::int64_t size : tensor.sizes()) guard.dims.push_back({size, {}, {}, {}});
  return guard;
}

void check_inputs(const std::vector<InputGuard>& guards, const std::vector<std::string>& names,
                  const Values& args, const KwValues& kwargs) {
  std::map<std::string, Bound> symbols;
  for (const InputGuard& guard : guards) {
    const Value* value = find(kwargs, guard.input);
    for (std::size_t i = 0; !value && i < names.size() && i < args.size(); ++i)
      if (names[i] == guard.input) value = &args[i];
    if (value) check_input(guard, *value, symbols);
  }
}

}  // namespace fx
