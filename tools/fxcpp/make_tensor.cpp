#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "fx/base/error.h"
#include "fx/ops/value.h"
#include "tools/fxcpp/input_spec.h"

namespace fx::cli {
namespace {

[[noreturn]] void fail(const InputSpec& spec, std::size_t at, const std::string& what) {
  throw UsageError(ErrorCode::kBadInputSpec,
                   "input: " + what + "\n    " + spec.text + "\n    " + std::string(at, ' ') + "^");
}

std::string shape_text(const std::vector<std::int64_t>& sizes) {
  std::string out = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

/// A type that all values of `dtype` go through exactly.
at::ScalarType wide_type(at::ScalarType dtype) {
  if (c10::isComplexType(dtype)) return at::kComplexDouble;
  return c10::isFloatingType(dtype) ? at::kDouble : at::kLong;
}

at::Tensor from_values(const TensorSpec& tensor, const std::vector<std::int64_t>& sizes) {
  at::Tensor wide = at::empty(sizes, wide_type(tensor.dtype));
  at::Tensor flat = wide.view({-1});
  for (std::size_t i = 0; i < tensor.values.size(); ++i)
    flat[static_cast<std::int64_t>(i)].fill_(tensor.values[i]);
  return wide.to(tensor.dtype);
}

at::Tensor filled(const TensorSpec& tensor, const std::vector<std::int64_t>& sizes,
                  std::uint64_t seed) {
  using Fill = TensorSpec::Fill;
  const at::ScalarType dtype = tensor.dtype;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  // Sixteen-bit inputs get the values of the 32-bit ones, rounded.
  const at::ScalarType drawn =
      c10::isComplexType(dtype) || dtype == at::kDouble ? dtype : at::kFloat;
  switch (tensor.fill == Fill::kDefault ? default_fill(dtype) : tensor.fill) {
    case Fill::kZeros:
      return at::zeros(sizes, dtype);
    case Fill::kOnes:
      return at::ones(sizes, dtype);
    case Fill::kRandn:
      return at::randn(sizes, generator, drawn).to(dtype);
    case Fill::kRand:
      return at::rand(sizes, generator, drawn)
          .mul_(tensor.hi - tensor.lo)
          .add_(tensor.lo)
          .to(dtype);
    case Fill::kRandint:
      return at::randint(tensor.int_lo, tensor.int_hi, sizes, generator, at::kLong).to(dtype);
    case Fill::kFull:
      return at::full({}, tensor.values[0], wide_type(dtype)).to(dtype).expand(sizes).contiguous();
    default:
      return from_values(tensor, sizes);
  }
}

}  // namespace

std::vector<std::int64_t> resolve_sizes(const InputSpec& spec, const TensorSpec& tensor,
                                        const Dims& dims) {
  std::vector<std::int64_t> sizes;
  for (const TensorSpec::Dim& dim : tensor.dims) {
    if (dim.symbol.empty()) {
      sizes.push_back(dim.value);
      continue;
    }
    const auto bound = dims.find(dim.symbol);
    if (bound == dims.end())
      fail(spec, dim.at,
           "the symbol " + dim.symbol + " has no value: give --dim " + dim.symbol + "=SIZE");
    sizes.push_back(bound->second);
  }
  return sizes;
}

at::Tensor make_tensor(const InputSpec& spec, const TensorSpec& tensor,
                       std::vector<std::int64_t> sizes, std::uint64_t seed) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 42;
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(tensor.dtype));
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes) || bytes > kMaxBytes)
      fail(spec, 0, "a tensor of sizes " + shape_text(sizes) + " is too large");
  if (tensor.fill == TensorSpec::Fill::kValues) {
    std::int64_t elements = 1;
    for (std::int64_t size : sizes) elements *= size;
    if (elements != static_cast<std::int64_t>(tensor.values.size()))
      fail(spec, tensor.fill_at,
           std::to_string(elements) + " values wanted for " + shape_text(sizes) + ", found " +
               std::to_string(tensor.values.size()));
  }
  try {
    return filled(tensor, sizes, seed);
  } catch (const c10::Error&) {
    fail(spec, 0, "no memory for a tensor of sizes " + shape_text(sizes));
  }
}

}  // namespace fx::cli
