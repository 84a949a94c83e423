#include "tools/fxcpp/compare.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace fx::cli {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
/// Elements that are held in double precision at once.
constexpr std::int64_t kPiece = std::int64_t{1} << 20;

std::vector<std::int64_t> unravel(std::int64_t flat, at::IntArrayRef sizes) {
  std::vector<std::int64_t> index(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    index[i] = flat % sizes[i];
    flat /= sizes[i];
  }
  return index;
}

/// Three digits that are not below `value`, so that a tolerance printed is one that passes.
std::string rounded_up(double value) {
  if (value <= 0) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  for (double steps = std::ceil(value / unit);; ++steps) {
    const std::string text = short_number(steps * unit);
    if (std::strtod(text.c_str(), nullptr) >= value) return text;
  }
}

std::string shape_text(at::IntArrayRef sizes) { return index_text(sizes.vec()); }

/// Goes over the elements and keeps the worst.
class Scan {
 public:
  Scan(Comparison& result, at::IntArrayRef sizes) : result_(result), sizes_(sizes) {}

  /// @param shown what messages give as values (of complex numbers the absolute value).
  void element(std::int64_t at, double difference, double magnitude, bool equal, double actual,
               double expected) {
    const auto& [rtol, atol] = result_.tolerance;
    double abs = equal ? 0 : difference;
    if (std::isnan(abs)) abs = kInf;
    const double rel = abs == 0 ? 0 : magnitude > 0 ? abs / magnitude : kInf;
    const double allowed = atol + (std::isfinite(magnitude) ? rtol * magnitude : 0);
    if (abs > allowed) ++result_.mismatches;
    if (abs > atol)
      result_.needed_rtol =
          std::max(result_.needed_rtol,
                   magnitude > 0 && std::isfinite(magnitude) ? (abs - atol) / magnitude : kInf);
    const double needed = abs - (std::isfinite(magnitude) ? rtol * magnitude : 0);
    result_.needed_atol = std::max(result_.needed_atol, abs == kInf ? kInf : needed);
    if (abs > max_abs_) {
      max_abs_ = abs;
      max_abs_at_ = at;
    }
    if (rel > max_rel_) {
      max_rel_ = rel;
      max_rel_at_ = at;
    }
    const double excess = abs - allowed;
    if (excess > worst_ || std::isnan(worst_)) {
      worst_ = excess;
      worst_at_ = at;
      result_.worst_actual = actual;
      result_.worst_expected = expected;
    }
  }

  void finish() {
    result_.max_abs = {std::max(max_abs_, 0.0), unravel(max_abs_at_, sizes_)};
    result_.max_rel = {std::max(max_rel_, 0.0), unravel(max_rel_at_, sizes_)};
    result_.worst_index = unravel(worst_at_, sizes_);
  }

 private:
  Comparison& result_;
  at::IntArrayRef sizes_;
  double max_abs_ = -1, max_rel_ = -1, worst_ = -kInf;
  std::int64_t max_abs_at_ = 0, max_rel_at_ = 0, worst_at_ = 0;
};

void scan_real(const at::Tensor& actual, const at::Tensor& expected, std::int64_t offset,
               Scan& scan) {
  const at::Tensor a = actual.to(at::kDouble), e = expected.to(at::kDouble);
  const double* pa = a.const_data_ptr<double>();
  const double* pe = e.const_data_ptr<double>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const bool equal = pa[i] == pe[i] || (std::isnan(pa[i]) && std::isnan(pe[i]));
    scan.element(offset + i, std::abs(pa[i] - pe[i]), std::abs(pe[i]), equal, pa[i], pe[i]);
  }
}

void scan_integers(const at::Tensor& actual, const at::Tensor& expected, std::int64_t offset,
                   Scan& scan) {
  const at::Tensor a = actual.to(at::kLong), e = expected.to(at::kLong);
  const auto* pa = a.const_data_ptr<std::int64_t>();
  const auto* pe = e.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const auto x = static_cast<double>(pa[i]), y = static_cast<double>(pe[i]);
    // Large neighbours are the same double; they must not pass for equal.
    const double difference = std::max(std::abs(x - y), pa[i] == pe[i] ? 0.0 : 1.0);
    scan.element(offset + i, difference, std::abs(y), pa[i] == pe[i], x, y);
  }
}

void scan_complex(const at::Tensor& actual, const at::Tensor& expected, std::int64_t offset,
                  Scan& scan) {
  const at::Tensor a = actual.to(at::kComplexDouble).resolve_conj();
  const at::Tensor e = expected.to(at::kComplexDouble).resolve_conj();
  const auto* pa = a.const_data_ptr<c10::complex<double>>();
  const auto* pe = e.const_data_ptr<c10::complex<double>>();
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const bool nans = (std::isnan(pa[i].real()) || std::isnan(pa[i].imag())) &&
                      (std::isnan(pe[i].real()) || std::isnan(pe[i].imag()));
    scan.element(offset + i, std::abs(pa[i] - pe[i]), std::abs(pe[i]), pa[i] == pe[i] || nans,
                 std::abs(pa[i]), std::abs(pe[i]));
  }
}

Comparison compare_tensors(const at::Tensor& actual, const at::Tensor& expected,
                           const ToleranceFlags& flags) {
  Comparison result;
  result.tolerance = flags.of(expected.scalar_type());
  if (actual.scalar_type() != expected.scalar_type()) {
    result.reason = "dtype " + std::string(short_dtype_name(actual.scalar_type())) + " found, " +
                    std::string(short_dtype_name(expected.scalar_type())) + " expected";
    return result;
  }
  if (actual.sizes() != expected.sizes()) {
    result.reason = "shape " + shape_text(actual.sizes()) + " found, " +
                    shape_text(expected.sizes()) + " expected";
    return result;
  }
  result.elements = actual.numel();
  if (result.elements == 0) {
    result.pass = true;
    return result;
  }
  const at::ScalarType dtype = actual.scalar_type();
  const bool quantized = actual.is_quantized();
  const at::Tensor a = (quantized ? actual.dequantize() : actual).detach().cpu().reshape({-1});
  const at::Tensor e = (quantized ? expected.dequantize() : expected).detach().cpu().reshape({-1});
  Scan scan(result, actual.sizes());
  for (std::int64_t offset = 0; offset < a.numel(); offset += kPiece) {
    const std::int64_t length = std::min(kPiece, a.numel() - offset);
    const at::Tensor x = a.narrow(0, offset, length), y = e.narrow(0, offset, length);
    if (c10::isComplexType(dtype))
      scan_complex(x, y, offset, scan);
    else if (c10::isFloatingType(dtype) || quantized)
      scan_real(x, y, offset, scan);
    else
      scan_integers(x, y, offset, scan);
  }
  scan.finish();
  result.pass = result.mismatches == 0;
  return result;
}

}  // namespace

Tolerance ToleranceFlags::of(at::ScalarType dtype) const {
  const Tolerance defaults = default_tolerance(dtype);
  return {rtol.value_or(defaults.rtol), atol.value_or(defaults.atol)};
}

Comparison compare(const Value& actual, const Value& expected, const ToleranceFlags& tolerance) {
  if (actual.isTensor() && expected.isTensor())
    return compare_tensors(actual.toTensor(), expected.toTensor(), tolerance);
  Comparison result;
  result.elements = 1;
  if (is_sequence(actual) && is_sequence(expected)) {
    const Values a = elements(actual), e = elements(expected);
    result.pass = a.size() == e.size();
    for (std::size_t i = 0; result.pass && i < a.size(); ++i)
      result = compare(a[i], e[i], tolerance);
    return result;
  }
  const std::string found = to_string(actual), wanted = to_string(expected);
  result.pass = found == wanted;
  if (!result.pass) result.reason = found + " found, " + wanted + " expected";
  return result;
}

std::string index_text(const std::vector<std::int64_t>& index) {
  std::string out;
  for (std::int64_t i : index) out += (out.empty() ? "" : ", ") + std::to_string(i);
  return "[" + out + "]";
}

Json comparison_json(const Comparison& c) {
  Json json;
  json["verdict"] = c.pass ? "pass" : "fail";
  if (!c.reason.empty()) json["reason"] = c.reason;
  json["elements"] = c.elements;
  json["mismatches"] = c.mismatches;
  json["rtol"] = json_number(c.tolerance.rtol);
  json["atol"] = json_number(c.tolerance.atol);
  json["max_abs_error"] = json_number(c.max_abs.value);
  json["max_abs_error_index"] = c.max_abs.index;
  json["max_rel_error"] = json_number(c.max_rel.value);
  json["max_rel_error_index"] = c.max_rel.index;
  json["worst_index"] = c.worst_index;
  json["worst_actual"] = json_number(c.worst_actual);
  json["worst_expected"] = json_number(c.worst_expected);
  json["needed_rtol"] = json_number(c.needed_rtol);
  json["needed_atol"] = json_number(c.needed_atol);
  return json;
}

std::string explain(const Comparison& c) {
  if (!c.reason.empty()) return c.reason;
  std::string out = "element " + index_text(c.worst_index) + " is " + short_number(c.worst_actual) +
                    ", expected " + short_number(c.worst_expected) + "; " +
                    std::to_string(c.mismatches) + " of " + counted(c.elements, "element") +
                    (c.mismatches == 1 ? " is" : " are") + " outside";
  const bool rtol = std::isfinite(c.needed_rtol), atol = std::isfinite(c.needed_atol);
  if (rtol || atol) out += "; would pass with ";
  if (rtol) out += "--rtol " + rounded_up(c.needed_rtol);
  if (rtol && atol) out += " or ";
  if (atol) out += "--atol " + rounded_up(c.needed_atol);
  return out;
}

}  // namespace fx::cli
