#include "tests/opinfo/sample.h"

#include <ATen/ATen.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "fx/graph/text.h"
#include "fx/ops/tolerance.h"

namespace fx::opinfo {
namespace {

using nlohmann::json;

/// Numbers that double holds exactly; complex numbers as pairs, 64-bit integers as they are.
at::Tensor comparable(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.resolve_conj().resolve_neg();
  if (plain.is_complex()) return at::view_as_real(plain.to(at::kComplexDouble).contiguous());
  if (plain.scalar_type() == at::kLong) return plain;
  if (plain.scalar_type() == at::kUInt64) return plain.contiguous().view(at::kLong);
  if (plain.is_floating_point()) return plain.to(at::kFloat).to(at::kDouble);
  return plain.to(at::kLong);
}

std::string element(const at::Tensor& tensor, std::int64_t index) {
  std::ostringstream out;
  out.precision(9);
  out << tensor.reshape({-1})[index].item();
  return out.str();
}

// Where `actual` is no further from the truth than `wanted`, as the judge has it.
at::Tensor as_near(const at::Tensor& actual, const at::Tensor& wanted, const Judge& judge) {
  const Value& truth = *judge.truth;
  if (!truth.isTensor() || truth.toTensor().sizes() != wanted.sizes() ||
      truth.toTensor().scalar_type() != at::kDouble)
    return at::zeros_like(wanted, at::kBool);
  const at::Tensor error = (actual - truth.toTensor()).abs();
  const at::Tensor allowed = (wanted - truth.toTensor()).abs();
  if (judge.times_as_far == 0) return error <= allowed;
  return error <= at::maximum(allowed, allowed.max() * judge.times_as_far);
}

std::string tensor_difference(const at::Tensor& actual, const at::Tensor& wanted,
                              const Judge& judge) {
  std::ostringstream out;
  if (actual.scalar_type() != wanted.scalar_type()) {
    out << "dtype " << actual.scalar_type() << " instead of " << wanted.scalar_type();
    return out.str();
  }
  if (actual.sizes() != wanted.sizes()) {
    out << "sizes " << actual.sizes() << " instead of " << wanted.sizes();
    return out.str();
  }
  if (wanted.numel() == 0) return {};
  if (judge.strides)
    for (std::int64_t d = 0; d < wanted.dim(); ++d)
      if (wanted.size(d) > 1 && actual.stride(d) != wanted.stride(d)) {
        out << "strides " << actual.strides() << " instead of " << wanted.strides();
        return out.str();
      }
  if (!judge.values) return {};
  const Tolerance allowed = default_tolerance(wanted.scalar_type());
  at::Tensor a = comparable(actual), w = comparable(wanted);
  if (wanted.scalar_type() == at::kDouble) a = actual, w = wanted;
  at::Tensor same = a == w;
  if (a.is_floating_point()) {
    const at::Tensor close = (a - w).abs() <= allowed.atol + allowed.rtol * w.abs();
    same = same.logical_or(close.logical_and(a.isfinite()).logical_and(w.isfinite()))
               .logical_or(a.isnan().logical_and(w.isnan()));
  }
  if (judge.truth && wanted.is_floating_point()) same = same.logical_or(as_near(a, w, judge));
  const at::Tensor bad = same.logical_not().reshape({-1}).nonzero().reshape({-1});
  if (bad.numel() == 0) return {};
  const auto index = bad[0].item<std::int64_t>();
  out << bad.numel() << " of " << a.numel() << " numbers; the " << index
      << "-th: " << element(a, index) << " instead of " << element(w, index);
  return out.str();
}

Value output_value(const json& item, const Storages& storages) {
  if (item.contains("storage")) return storages.make(json::array({item}))[0];
  const auto number = [](const json& hex) {
    return std::strtod(hex.get<std::string>().c_str(), nullptr);
  };
  if (item.contains("float")) return number(item.at("float"));
  if (item.contains("complex"))
    return c10::complex<double>(number(item.at("complex")[0]), number(item.at("complex")[1]));
  const json& value = item.at("value");
  if (value.is_boolean()) return value.get<bool>();
  return value.get<std::int64_t>();
}

}  // namespace

Storages::Storages(const std::string& path) {
  for (auto& [name, bytes] : load_safetensors(path).tensors) bytes_[name] = bytes;
}

Values Storages::make(const json& items) const {
  std::vector<at::Tensor> memories;
  Values out;
  for (const json& item : items) {
    const at::Tensor bytes = item.contains("shares")
                                 ? memories.at(item.at("shares").get<std::size_t>())
                                 : bytes_.at(item.at("storage").get<std::string>()).clone();
    memories.push_back(bytes);
    const c10::ScalarType type =
        parse_argument("torch." + item.at("dtype").get<std::string>()).to_dtype();
    at::Tensor tensor = at::empty({0}, type);
    tensor.set_(bytes.storage(), item.at("offset").get<std::int64_t>(),
                item.at("sizes").get<std::vector<std::int64_t>>(),
                item.at("strides").get<std::vector<std::int64_t>>());
    if (item.value("conj", false)) tensor = at::_conj(tensor);
    if (item.value("neg", false)) tensor = at::_neg_view(tensor);
    out.emplace_back(std::move(tensor));
  }
  return out;
}

Sample::Sample(const json& line, const Storages& source)
    : op(line.at("op").get<std::string>()),
      number(line.at("sample").get<std::int64_t>()),
      judge_values(line.at("judge") == "values"),
      graphs(line.at("graphs").get<std::map<std::string, std::string>>()),
      error(line.value("error", "")),
      input_items(line.at("inputs")),
      storages(&source) {
  for (const json& item : line.at("outputs")) outputs.push_back(output_value(item, source));
}

std::string difference(const Value& actual, const Value& wanted, const Judge& judge) {
  if (actual.isTensor() && wanted.isTensor())
    return tensor_difference(actual.toTensor(), wanted.toTensor(), judge);
  if (actual.tagKind() != wanted.tagKind())
    return describe(actual) + " instead of " + describe(wanted);
  if (to_string(actual) == to_string(wanted) || !judge.values) return {};
  return to_string(actual) + " instead of " + to_string(wanted);
}

}  // namespace fx::opinfo
