#include "tests/compile/reference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace fx::loops {
namespace {

/// Where the divisor of a signed type is -1: the lowest number divided by it makes hardware trap.
at::Tensor is_minus_one(const at::Tensor& b) {
  return b.scalar_type() == at::kByte ? at::zeros_like(b, at::kBool) : b == -1;
}

at::Tensor divide(const at::Tensor& a, const at::Tensor& b, const char* mode) {
  const at::Tensor minus_one = is_minus_one(b);
  return at::where(minus_one, at::neg(a), at::div(a, b.masked_fill(minus_one, 1), mode));
}

at::Tensor remainder(const at::Tensor& a, const at::Tensor& b, bool floor) {
  const at::Tensor minus_one = is_minus_one(b);
  const at::Tensor safe = b.masked_fill(minus_one, 1);
  const at::Tensor rest = floor ? at::remainder(a, safe) : at::fmod(a, safe);
  return at::where(minus_one, at::zeros_like(rest), rest);
}

/// Element by element, for what ATen has no operator for or a wrong one.
template <typename F>
at::Tensor each(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, F f) {
  const std::vector<at::Tensor> all = at::broadcast_tensors({a, b, c});
  at::Tensor out = at::empty(all[0].sizes(), a.options());
  const at::Tensor x = all[0].contiguous();
  const at::Tensor y = all[1].contiguous();
  const at::Tensor z = all[2].contiguous();
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const T* px = x.const_data_ptr<T>();
    const T* py = y.const_data_ptr<T>();
    const T* pz = z.const_data_ptr<T>();
    T* po = out.mutable_data_ptr<T>();
    for (std::int64_t i = 0; i < out.numel(); ++i) po[i] = f(px[i], py[i], pz[i]);
  };
  if (a.scalar_type() == at::kFloat)
    run(0.0F);
  else
    run(0.0);
  return out;
}

/// The number that changes no maximum (minimum).
c10::Scalar identity(c10::ScalarType type, bool of_max) {
  if (c10::isFloatingType(type)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return of_max ? -infinity : infinity;
  }
  switch (type) {
#define FX_LIMITS(T)                                                      \
  return static_cast<std::int64_t>(of_max ? std::numeric_limits<T>::min() \
                                          : std::numeric_limits<T>::max())
    case c10::ScalarType::Byte:
      FX_LIMITS(std::uint8_t);
    case c10::ScalarType::Char:
      FX_LIMITS(std::int8_t);
    case c10::ScalarType::Short:
      FX_LIMITS(std::int16_t);
    case c10::ScalarType::Int:
      FX_LIMITS(std::int32_t);
    default:
      FX_LIMITS(std::int64_t);
#undef FX_LIMITS
  }
}

/// A number of the shapes in this call, by its own definition.
std::int64_t own_value(const Shapes& shapes, std::span<const at::Tensor> inputs, Dim dim) {
  const Shapes::Symbol& symbol = shapes.symbols()[static_cast<std::size_t>(dim)];
  switch (symbol.kind) {
    case Shapes::Symbol::Kind::kConstant:
      return symbol.value;
    case Shapes::Symbol::Kind::kInput:
      return inputs[static_cast<std::size_t>(symbol.input)].size(symbol.dim);
    case Shapes::Symbol::Kind::kDerived:
      break;
  }
  return Shapes::compute(symbol.math, own_value(shapes, inputs, shapes.find(symbol.left)),
                         own_value(shapes, inputs, shapes.find(symbol.right)));
}

class Evaluator {
 public:
  Evaluator(const TensorProgram& program, std::span<const at::Tensor> inputs,
            std::span<const c10::Scalar> scalars)
      : program_(program), inputs_(inputs), scalars_(scalars) {}

  at::Tensor value(ExprId id) {
    while (static_cast<ExprId>(values_.size()) <= id)
      values_.push_back(compute(program_[static_cast<ExprId>(values_.size())]));
    return values_[static_cast<std::size_t>(id)];
  }

  bool tripped() const noexcept { return tripped_; }

 private:
  /// A size in this call.
  std::int64_t size(Dim dim) const {
    return own_value(program_.shapes(), inputs_, program_.shapes().find(dim));
  }

  std::vector<std::int64_t> sizes(const Dims& dims) const {
    std::vector<std::int64_t> out;
    for (Dim dim : dims) out.push_back(size(dim));
    return out;
  }

  at::Tensor compute(const Expr& e) {
    at::Tensor out;
    switch (e.kind) {
      case Expr::Kind::kInput:
        out = inputs_[static_cast<std::size_t>(e.index)];
        break;
      case Expr::Kind::kConstant:
        out = at::scalar_tensor(e.number, e.type);
        break;
      case Expr::Kind::kScalar:
        out = at::scalar_tensor(scalars_[static_cast<std::size_t>(e.index)], e.type);
        break;
      case Expr::Kind::kExtent: {
        std::int64_t product = 1;
        for (Dim factor : e.factors) product *= size(factor);
        out = at::scalar_tensor(product, e.type);
        break;
      }
      case Expr::Kind::kPointwise:
        // Alone, a scalar would be computed with other rules than an element.
        out = pointwise(e).expand(sizes(e.dims)).contiguous();
        break;
      case Expr::Kind::kReduce:
        out = reduction(e);
        break;
      case Expr::Kind::kScan:
        out = scan(e);
        break;
      case Expr::Kind::kView:
        out = elements(e, indices(e, e.dims), nullptr);
        break;
      case Expr::Kind::kReshape:
        out = value(e.args[0]).reshape(sizes(e.dims));
        break;
      case Expr::Kind::kPad:
        out = pad(e);
        break;
      case Expr::Kind::kGather: {
        std::vector<at::Tensor> at = indices(e, e.dims);
        for (std::size_t i = 0; i < e.gathered.size(); ++i) {
          at::Tensor& index = at[static_cast<std::size_t>(e.gathered[i])];
          index = index + value(e.args[1 + i]);
        }
        out = elements(e, at, nullptr);
        break;
      }
      case Expr::Kind::kScatter:
        out = scatter(e);
        break;
      case Expr::Kind::kIndex:
        out = at::arange(size(e.dims[0]), at::kLong);
        break;
    }
    if (out.scalar_type() != e.type || out.sizes() != at::IntArrayRef(sizes(e.dims)))
      throw std::logic_error("wrong type or sizes of %" + std::to_string(values_.size()) + " in\n" +
                             program_.str());
    return out;
  }

  /// By dimension of args[0]: the index there, for all indices of what has the sizes `dims`.
  std::vector<at::Tensor> indices(const Expr& e, const Dims& dims) {
    std::vector<at::Tensor> out;
    const auto rank = static_cast<std::int64_t>(dims.size());
    for (const Affine& affine : e.at) {
      at::Tensor index = at::full(sizes(dims), size(affine.offset), at::kLong);
      for (const Affine::Term& term : affine.terms) {
        std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1);
        shape[static_cast<std::size_t>(term.axis)] = -1;
        index = index + at::arange(size(dims[static_cast<std::size_t>(term.axis)]), at::kLong)
                            .mul(size(term.step))
                            .reshape(shape);
      }
      out.push_back(index);
    }
    return out;
  }

  /// args[0] at those indices; where `inside` is given, only where it is true.
  at::Tensor elements(const Expr& e, const std::vector<at::Tensor>& index,
                      const at::Tensor* inside) {
    const at::Tensor x = value(e.args[0]);
    if (index.empty()) return x.expand(sizes(e.dims)).contiguous();
    c10::List<std::optional<at::Tensor>> list;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const at::Tensor at =
          (inside ? at::where(*inside, index[d], 0) : index[d]).expand(sizes(e.dims));
      if (at.numel() > 0 &&
          (at.min().item<std::int64_t>() < 0 ||
           at.max().item<std::int64_t>() >= x.size(static_cast<std::int64_t>(d)))) {
        // Out of range only after a trap.
        if (!tripped_) throw std::logic_error("an index out of range in\n" + program_.str());
        return at::zeros(sizes(e.dims), x.options());
      }
      list.push_back(at);
    }
    return at::index(x, list);
  }

  at::Tensor pad(const Expr& e) {
    const at::Tensor x = value(e.args[0]);
    const std::vector<at::Tensor> index = indices(e, e.dims);
    at::Tensor inside = at::ones(sizes(e.dims), at::kBool);
    for (std::size_t d = 0; d < index.size(); ++d) {
      if ((e.guards[d] & kGuardLow) != 0) inside = inside & (index[d] >= 0);
      if ((e.guards[d] & kGuardHigh) != 0)
        inside = inside & (index[d] < x.size(static_cast<std::int64_t>(d)));
    }
    const at::Tensor otherwise = value(e.args[1]).expand(sizes(e.dims));
    if (x.numel() == 0) return otherwise.contiguous();
    return at::where(inside, elements(e, index, &inside), otherwise);
  }

  at::Tensor reduction(const Expr& e) {
    at::Tensor x = value(e.args[0]);
    std::vector<std::int64_t> dims;
    bool empty = false;
    for (std::size_t d = 0; d < e.reduced.size(); ++d)
      if (e.reduced[d]) {
        dims.push_back(static_cast<std::int64_t>(d));
        empty |= x.size(static_cast<std::int64_t>(d)) == 0;
      }
    switch (e.reduce) {
      case Reduce::kSum:
        return at::sum(x, dims, false, e.type);
      case Reduce::kProd:
        for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim)
          x = at::prod(x, *dim, false, e.type);
        return x;
      case Reduce::kMax:
      case Reduce::kMin: {
        const bool max = e.reduce == Reduce::kMax;
        if (empty) return at::full(sizes(e.dims), identity(e.type, max), x.options());
        return max ? at::amax(x, dims) : at::amin(x, dims);
      }
      case Reduce::kAny:
        return at::any(x, dims);
      case Reduce::kAll:
        return at::all(x, dims);
      case Reduce::kLogAddExp:
        break;
    }
    throw std::logic_error("no such reduction");
  }

  // One value after the other.
  at::Tensor scatter(const Expr& e) {
    const at::Tensor out = value(e.args[0]).clone(at::MemoryFormat::Contiguous);
    const Expr& values = program_[e.args[1]];
    std::vector<at::Tensor> index = indices(e, values.dims);
    for (std::size_t i = 0; i < e.gathered.size(); ++i) {
      at::Tensor& at = index[static_cast<std::size_t>(e.gathered[i])];
      at = at + value(e.args[2 + i]);
    }
    at::Tensor place = at::zeros(sizes(values.dims), at::kLong);
    for (std::size_t d = 0; d < index.size(); ++d)
      place = place + index[d] * out.stride(static_cast<std::int64_t>(d));
    if (out.numel() == 0 || place.numel() == 0) return out;
    const at::Tensor flat = out.view({-1});
    const at::Tensor numbers = value(e.args[1]).contiguous().view({-1});
    const at::Tensor places = place.contiguous().view({-1});
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      const at::Tensor at =
          flat.slice(0, places[i].item<std::int64_t>(), places[i].item<std::int64_t>() + 1);
      const at::Tensor number = numbers.slice(0, i, i + 1);
      const at::Tensor before = at.to(number.scalar_type());
      at.copy_(!e.accumulates              ? number
               : e.reduce == Reduce::kSum  ? before + number
               : e.reduce == Reduce::kProd ? before * number
               : e.reduce == Reduce::kMax  ? at::maximum(before, number)
                                           : at::minimum(before, number));
    }
    return out;
  }

  // Element by element, in the type of the scan.
  at::Tensor scan(const Expr& e) {
    const at::Tensor x = value(e.args[0]);
    const auto dim = std::find(e.reduced.begin(), e.reduced.end(), true) - e.reduced.begin();
    std::vector<at::Tensor> out;
    for (std::int64_t i = 0; i < x.size(dim); ++i) {
      const at::Tensor element = x.select(dim, i);
      const bool sum = e.reduce == Reduce::kSum;
      const at::Tensor before =
          i > 0 ? out.back()
          : sum || e.reduce == Reduce::kProd
              ? at::full_like(element, sum ? 0 : 1)
              : at::full_like(element, identity(e.type, e.reduce != Reduce::kMin));
      if (sum)
        out.push_back(before + element);
      else if (e.reduce == Reduce::kProd)
        out.push_back(before * element);
      else if (e.reduce == Reduce::kLogAddExp)
        out.push_back(at::logaddexp(before, element));
      else if (e.reduce == Reduce::kMax)
        out.push_back(at::where((element >= before) | element.isnan(), element, before));
      else
        out.push_back(at::where((element <= before) | element.isnan(), element, before));
    }
    return out.empty() ? at::empty(x.sizes(), x.options()) : at::stack(out, dim);
  }

  at::Tensor pointwise(const Expr& e) {
    const at::Tensor a = value(e.args[0]);
    const at::Tensor b = e.args.size() > 1 ? value(e.args[1]) : at::Tensor();
    const at::Tensor c = e.args.size() > 2 ? value(e.args[2]) : at::Tensor();
    const bool is_bool = a.scalar_type() == at::kBool;
    switch (e.op) {
      case Op::kConstant:
      case Op::kScalar:
      case Op::kExtent:
      case Op::kLoad:
      case Op::kIndex:
      case Op::kReduced:
      case Op::kScan:
        break;
      case Op::kBounded: {
        const at::Tensor outside = (a < 0) | (a >= b);
        tripped_ |= at::any(outside).item<bool>();
        return at::where(outside, at::zeros_like(a), a);
      }
      case Op::kCast:
        return a.to(e.type);
      case Op::kAdd:
        return at::add(a, b);
      case Op::kSub:
        return at::sub(a, b);
      case Op::kMul:
        return at::mul(a, b);
      case Op::kNeg:
        return at::neg(a);
      case Op::kAbs:
        return at::abs(a);
      case Op::kDiv:
        return at::div(a, b);
      case Op::kDivisor:
        tripped_ |= at::any(a == 0).item<bool>();
        return at::where(a == 0, at::ones_like(a), a);
      case Op::kTruncDiv:
        return divide(a, b, "trunc");
      case Op::kFloorDiv:
        return divide(a, b, "floor");
      case Op::kTruncRem:
        return remainder(a, b, false);
      case Op::kFloorRem:
        return remainder(a, b, true);
      case Op::kFma:
        return each(a, b, c, [](auto x, auto y, auto z) { return std::fma(x, y, z); });
      case Op::kMaximum:
        return at::maximum(a, b);
      case Op::kMinimum:
        return at::minimum(a, b);
      case Op::kFmax:
        return at::fmax(a, b);
      case Op::kFmin:
        return at::fmin(a, b);
      case Op::kBitAnd:
        return at::bitwise_and(a, b);
      case Op::kBitOr:
        return at::bitwise_or(a, b);
      case Op::kBitXor:
        return at::bitwise_xor(a, b);
      case Op::kBitNot:
        return is_bool ? at::logical_not(a) : at::bitwise_not(a);
      case Op::kShl:
        return at::bitwise_left_shift(a, b);
      case Op::kShr:
        return at::bitwise_right_shift(a, b);
      case Op::kEq:
        return at::eq(a, b);
      case Op::kNe:
        return at::ne(a, b);
      case Op::kLt:
        return at::lt(a, b);
      case Op::kLe:
        return at::le(a, b);
      case Op::kGt:
        return at::gt(a, b);
      case Op::kGe:
        return at::ge(a, b);
      case Op::kIsNan:
        return at::isnan(a);
      case Op::kSelect:
        return at::where(a, b, c);
      case Op::kFloor:
        return at::floor(a);
      case Op::kCeil:
        return at::ceil(a);
      case Op::kTrunc:
        return at::trunc(a);
      case Op::kNearbyInt:
        return at::round(a);
      case Op::kCopysign:
        return at::copysign(a, b);
      case Op::kSqrt:
        return at::sqrt(a);
      case Op::kExp:
        return at::exp(a);
      case Op::kExp2:
        return at::exp2(a);
      case Op::kExpm1:
        return at::expm1(a);
      case Op::kLog:
        return at::log(a);
      case Op::kLog2:
        return at::log2(a);
      case Op::kLog10:
        return at::log10(a);
      case Op::kLog1p:
        return at::log1p(a);
      case Op::kSin:
        return at::sin(a);
      case Op::kCos:
        return at::cos(a);
      case Op::kTan:
        return at::tan(a);
      case Op::kAsin:
        return at::asin(a);
      case Op::kAcos:
        return at::acos(a);
      case Op::kAtan:
        return at::atan(a);
      case Op::kSinh:
        return at::sinh(a);
      case Op::kCosh:
        return at::cosh(a);
      case Op::kTanh:
        return at::tanh(a);
      case Op::kAsinh:
        return at::asinh(a);
      case Op::kAcosh:
        return at::acosh(a);
      case Op::kAtanh:
        return at::atanh(a);
      case Op::kErf:
        return at::erf(a);
      case Op::kErfc:
        return at::erfc(a);
      case Op::kLgamma:
        return at::lgamma(a);
      case Op::kPow:
        return at::pow(a, b);
      case Op::kAtan2:
        return at::atan2(a, b);
      case Op::kFmod:
        // The operator is not exact for large quotients.
        return each(a, b, b, [](auto x, auto y, auto) { return std::fmod(x, y); });
      case Op::kHypot:
        return at::hypot(a, b);
    }
    throw std::logic_error("no such operation");
  }

  const TensorProgram& program_;
  std::span<const at::Tensor> inputs_;
  std::span<const c10::Scalar> scalars_;
  std::vector<at::Tensor> values_;
  bool tripped_ = false;
};

}  // namespace

bool fits(const TensorProgram& program, std::span<const at::Tensor> inputs) {
  const Shapes& shapes = program.shapes();
  for (std::size_t i = 0; i < shapes.symbols().size(); ++i) {
    const Shapes::Symbol& symbol = shapes.symbols()[i];
    const auto dim = static_cast<Dim>(i);
    const std::int64_t value = own_value(shapes, inputs, dim);
    if (value != own_value(shapes, inputs, shapes.find(dim))) return false;
    if (symbol.kind == Shapes::Symbol::Kind::kInput && value == 1) return false;
    if (symbol.is_size && (value < 0 || (value == 1) != (shapes.find(dim) == kOne))) return false;
  }
  return true;
}

ReferenceResult evaluate(const TensorProgram& program, std::span<const Tensor> outputs,
                         std::span<const at::Tensor> inputs, std::span<const c10::Scalar> scalars) {
  Evaluator evaluator(program, inputs, scalars);
  ReferenceResult result;
  for (const Tensor& output : outputs) result.outputs.push_back(evaluator.value(output.id));
  result.tripped = evaluator.tripped();
  return result;
}

}  // namespace fx::loops
