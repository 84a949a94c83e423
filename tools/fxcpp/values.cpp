#include "tools/fxcpp/values.h"

#include <ATen/ATen.h>

#include "tools/fxcpp/compare.h"

namespace fx::cli {
namespace {

Json element_json(const at::Tensor& t) {
  if (t.scalar_type() == at::kBool) return t.item<bool>();
  if (c10::isComplexType(t.scalar_type())) {
    const auto value = t.item<c10::complex<double>>();
    return Json::array({json_number(value.real()), json_number(value.imag())});
  }
  if (c10::isIntegralType(t.scalar_type(), false)) return t.item<std::int64_t>();
  return json_number(t.item<double>());
}

Json nested_json(const at::Tensor& t) {
  if (t.dim() == 0) return element_json(t);
  Json list = Json::array();
  for (std::int64_t i = 0; i < t.size(0); ++i) list.push_back(nested_json(t[i]));
  return list;
}

std::string kind_text(const Value& value) {
  const std::string text = describe(value);
  return text.substr(0, text.find(' '));
}

}  // namespace

ValueStats stats_of(const Value& value) {
  ValueStats stats;
  if (!value.isTensor() || !value.toTensor().defined()) {
    stats.dtype = kind_text(value);
    return stats;
  }
  const at::Tensor& tensor = value.toTensor();
  stats.dtype = std::string(short_dtype_name(tensor.scalar_type()));
  stats.shape = index_text(tensor.sizes().vec());
  if (tensor.numel() == 0 || c10::isComplexType(tensor.scalar_type()) || tensor.is_sparse())
    return stats;
  const at::Tensor wide =
      (tensor.is_quantized() ? tensor.dequantize() : tensor).detach().to(at::kDouble).reshape({-1});
  const at::Tensor finite_mask = wide.isfinite();
  stats.nan_count = wide.isnan().sum().item<std::int64_t>();
  stats.inf_count = wide.isinf().sum().item<std::int64_t>();
  const at::Tensor finite =
      stats.nan_count + stats.inf_count > 0 ? wide.masked_select(finite_mask) : wide;
  if (finite.numel() == 0) return stats;
  stats.min = finite.min().item<double>();
  stats.max = finite.max().item<double>();
  stats.mean = finite.mean().item<double>();
  return stats;
}

bool is_small(const Value& value) {
  return !value.isTensor() || value.toTensor().numel() <= kSmallTensor;
}

Json value_json(const Value& value) {
  const ValueStats stats = stats_of(value);
  Json json{{"dtype", stats.dtype}};
  if (!value.isTensor()) {
    json["value"] = to_string(value);
    return json;
  }
  json["shape"] = value.toTensor().sizes().vec();
  if (stats.min) {
    json["min"] = *stats.min;
    json["max"] = *stats.max;
    json["mean"] = *stats.mean;
  }
  json["nan_count"] = stats.nan_count;
  json["inf_count"] = stats.inf_count;
  if (is_small(value) && !value.toTensor().is_sparse())
    json["values"] = nested_json(value.toTensor().detach().resolve_conj());
  return json;
}

}  // namespace fx::cli
