#include "fx/ops/value.h"

#include <ATen/ATen.h>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

struct SliceHolder : torch::CustomClassHolder {
  explicit SliceHolder(Slice s) : slice(std::move(s)) {}
  Slice slice;
};
struct EllipsisHolder : torch::CustomClassHolder {};

template <typename T>
const T* holder(const Value& value) {
  return value.isCapsule() ? dynamic_cast<const T*>(value.toCapsule().get()) : nullptr;
}

std::string complex_text(c10::complex<double> v) { return complex_repr({v.real(), v.imag()}); }

std::string joined(const Values& values) {
  std::string out;
  for (const Value& value : values) out += (out.empty() ? "" : ", ") + to_string(value);
  return out;
}

// Python prints the digits that tell the elements apart, at most four; integers with a bare point.
struct NumberFormat {
  bool integral = true;
  bool scientific = false;
  std::size_t width = 0;

  std::string format(double v) const {
    char buffer[64];
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    if (scientific) {
      std::snprintf(buffer, sizeof buffer, "%.4e", v);
    } else if (integral) {
      std::snprintf(buffer, sizeof buffer, "%.0f.", v);
    } else {
      std::snprintf(buffer, sizeof buffer, "%.4f", v);
    }
    return buffer;
  }
};

NumberFormat number_format(const at::Tensor& flat) {
  NumberFormat format;
  double smallest = INFINITY, largest = 0;
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    const double v = flat[i].item<double>();
    if (!std::isfinite(v)) continue;
    if (v != std::ceil(v)) format.integral = false;
    if (v != 0) {
      smallest = std::min(smallest, std::fabs(v));
      largest = std::max(largest, std::fabs(v));
    }
  }
  if (largest > 0)
    format.scientific =
        largest / smallest > 1000 || largest > 1e8 || (!format.integral && smallest < 1e-4);
  if (format.integral && largest <= 1e8)
    format.scientific = largest > 0 && largest / smallest > 1000;
  for (std::int64_t i = 0; i < flat.numel(); ++i)
    format.width = std::max(format.width, format.format(flat[i].item<double>()).size());
  return format;
}

std::string tensor_elements(const at::Tensor& t, const NumberFormat* floats, std::size_t width,
                            std::size_t indent) {
  if (t.dim() == 0) {
    std::string text = floats                         ? floats->format(t.item<double>())
                       : t.scalar_type() == at::kBool ? (t.item<bool>() ? "True" : "False")
                       : c10::isComplexType(t.scalar_type())
                           ? complex_text(t.item<c10::complex<double>>())
                           : std::to_string(t.item<std::int64_t>());
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
  }
  std::string out = "[";
  for (std::int64_t i = 0; i < t.size(0); ++i) {
    if (i) out += t.dim() == 1 ? ", " : ",\n" + std::string(indent + 1, ' ');
    out += tensor_elements(t[i], floats, width, indent + 1);
  }
  return out + "]";
}

std::string tensor_text(const at::Tensor& tensor) {
  constexpr std::int64_t kMaxElements = 1000;
  if (!tensor.defined()) return "tensor(undefined)";
  if (tensor.numel() > kMaxElements || tensor.is_sparse() || tensor.is_quantized())
    return "tensor(" + describe(tensor) + ")";
  at::NoGradGuard no_grad;
  const at::Tensor t = tensor.detach().to(at::kCPU);
  const bool floats = c10::isFloatingType(t.scalar_type());
  NumberFormat format;
  std::size_t width = 0;
  if (floats) {
    format = number_format(t.to(at::kDouble).flatten());
    if (t.dim() > 0) width = format.width;
  } else if (t.dim() > 0) {
    at::Tensor flat = t.flatten();
    for (std::int64_t i = 0; i < flat.numel(); ++i)
      width = std::max(width, tensor_elements(flat[i], nullptr, 0, 0).size());
  }
  std::string out = "tensor(" + tensor_elements(t, floats ? &format : nullptr, width, 7);
  const bool default_dtype =
      t.scalar_type() == at::kFloat || t.scalar_type() == at::kLong || t.scalar_type() == at::kBool;
  if (!default_dtype) out += ", dtype=" + std::string(short_dtype_name(t.scalar_type()));
  return out + ")";
}

}  // namespace

const Value* find(const KwValues& kwargs, std::string_view key) {
  for (const KwValue& kwarg : kwargs)
    if (kwarg.key == key) return &kwarg.value;
  return nullptr;
}

Value make_slice(Value start, Value stop, Value step) {
  return Value::make_capsule(
      c10::make_intrusive<SliceHolder>(Slice{std::move(start), std::move(stop), std::move(step)}));
}

const Slice* as_slice(const Value& value) {
  const auto* found = holder<SliceHolder>(value);
  return found ? &found->slice : nullptr;
}

Value make_ellipsis() {
  static const Value ellipsis = Value::make_capsule(c10::make_intrusive<EllipsisHolder>());
  return ellipsis;
}

bool is_ellipsis(const Value& value) { return holder<EllipsisHolder>(value) != nullptr; }

bool is_sequence(const Value& value) { return value.isList() || value.isTuple(); }

Values elements(const Value& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isList()) return value.toListRef().vec();
  throw RunError(ErrorCode::kWrongType, "wanted a list or tuple, found " + describe(value));
}

std::string_view short_dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "f32";
    case at::kDouble:
      return "f64";
    case at::kHalf:
      return "f16";
    case at::kBFloat16:
      return "bf16";
    case at::kLong:
      return "i64";
    case at::kInt:
      return "i32";
    case at::kShort:
      return "i16";
    case at::kChar:
      return "i8";
    case at::kByte:
      return "u8";
    case at::kBool:
      return "bool";
    case at::kComplexFloat:
      return "c64";
    case at::kComplexDouble:
      return "c128";
    default:
      return c10::toString(dtype);
  }
}

std::string to_string(const Value& value) {
  if (value.isTensor()) return tensor_text(value.toTensor());
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return float_repr(value.toDouble());
  if (value.isComplexDouble()) return complex_text(value.toComplexDouble());
  if (value.isString()) return str_repr(value.toStringRef());
  if (value.isDevice()) return "device(type='" + value.toDevice().str() + "')";
  if (const Slice* slice = as_slice(value))
    return "slice(" + joined({slice->start, slice->stop, slice->step}) + ")";
  if (is_ellipsis(value)) return "Ellipsis";
  if (value.isList()) return "[" + joined(elements(value)) + "]";
  if (value.isTuple()) {
    Values items = elements(value);
    return "(" + joined(items) + (items.size() == 1 ? ",)" : ")");
  }
  if (value.isGenericDict()) {
    std::string out;
    for (const auto& item : value.toGenericDict())
      out += (out.empty() ? "" : ", ") + to_string(item.key()) + ": " + to_string(item.value());
    return "{" + out + "}";
  }
  return "<" + value.tagKind() + ">";
}

std::string describe(const Value& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) return "undefined Tensor";
    std::string out = "Tensor ";
    out += short_dtype_name(tensor.scalar_type());
    out += '[';
    for (const std::int64_t size : tensor.sizes()) {
      if (out.back() != '[') out += ", ";
      out += std::to_string(size);
    }
    out += ']';
    if (!tensor.device().is_cpu()) out += " " + tensor.device().str();
    return out;
  }
  if (value.isNone()) return "None";
  if (value.isBool()) return "bool";
  if (value.isInt()) return "int";
  if (value.isDouble()) return "float";
  if (value.isComplexDouble()) return "complex";
  if (value.isString()) return "str";
  if (value.isDevice()) return "device";
  if (as_slice(value)) return "slice";
  if (is_ellipsis(value)) return "ellipsis";
  if (value.isList()) return "list of " + std::to_string(elements(value).size());
  if (value.isTuple()) return "tuple of " + std::to_string(elements(value).size());
  if (value.isGenericDict()) return "dict of " + std::to_string(value.toGenericDict().size());
  return value.tagKind();
}

}  // namespace fx
