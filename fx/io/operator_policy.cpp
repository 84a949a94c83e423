#include "fx/io/operator_policy.h"

#include <algorithm>
#include <array>

namespace fx::io {
namespace {

struct RefusedRow {
  std::string_view name;
  std::string_view reason;
};

constexpr std::array kRefused = {
#define FX_REFUSED_OPERATOR(name, reason) RefusedRow{name, reason},
#include "fx/io/refused_operators.def"
#undef FX_REFUSED_OPERATOR
};
static_assert(std::ranges::is_sorted(kRefused, {}, &RefusedRow::name));

/// Namespaces of LibTorch whose operators compute and nothing else.
constexpr std::array<std::string_view, 11> kNamespaces = {
    "_quantized", "aten",  "mkl",          "mkldnn",    "mkldnn_prepacked",
    "onednn",     "prims", "quantization", "quantized", "quantized_decomposed",
    "torchvision"};
static_assert(std::ranges::is_sorted(kNamespaces));

}  // namespace

std::optional<std::string> OperatorPolicy::refusal(std::string_view name) const {
  const std::string_view space = name.substr(0, name.find("::"));
  for (std::string_view allowed : allowed_)
    if (allowed == name ||
        (allowed.ends_with("::*") && allowed.substr(0, allowed.size() - 3) == space))
      return std::nullopt;
  auto row = std::ranges::lower_bound(kRefused, name, {}, &RefusedRow::name);
  if (row != kRefused.end() && row->name == name) return std::string(row->reason);
  if (!std::ranges::binary_search(kNamespaces, space))
    return "operators of namespace " + std::string(space) +
           " have to be allowed by name (LoadOptions::allow_operators)";
  return std::nullopt;
}

}  // namespace fx::io
