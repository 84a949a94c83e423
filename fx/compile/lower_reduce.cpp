#include <cmath>
#include <limits>

#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"

/// Sums, products, extremes, means and variances, norms.
namespace fx::loops {

std::vector<std::int64_t> reduced_dims(const Call& call, const Num& x) {
  if (!call.has("dim")) return all_dims(x.dim());
  const std::vector<std::int64_t> dims = call.ints("dim");
  // No dimensions are all of them.
  return dims.empty() ? all_dims(x.dim()) : wrap_dims(dims, x.dim());
}

namespace {

void refuse_empty(const Call& call, const Num& x, const std::vector<std::int64_t>& dims) {
  for (std::int64_t d : dims)
    if (call.program().shapes().example(x.tensor().dims[static_cast<std::size_t>(d)]) == 0)
      call.unsupported("an extreme of nothing");
}

/// sum and prod: in the wider type, which integers keep.
Tensors accumulate(const Call& call, Reduce reduce) {
  const Num x = call.tensor("self");
  const c10::ScalarType type =
      call.dtype().value_or(is_floating(x.type()) ? x.type() : c10::ScalarType::Long);
  if (is_bool(type)) call.unsupported("a sum of bools as bool");
  // Products in half overflow on the way, where and when depends on their order.
  if (reduce == Reduce::kProd && type == c10::ScalarType::Half) call.unsupported("prod of half");
  // Narrower integers wrap at the end as they would on the way.
  const c10::ScalarType wide_type = is_floating(type) ? opmath(type) : c10::ScalarType::Long;
  const Num wide = x.cast(type).cast(wide_type);
  return result(wide.reduce(reduce, reduced_dims(call, x), call.flag("keepdim", false)), type);
}

Tensors extreme(const Call& call, Reduce reduce) {
  const Num x = call.tensor("self");
  const std::vector<std::int64_t> dims = reduced_dims(call, x);
  refuse_empty(call, x, dims);
  if (is_bool(x.type())) reduce = reduce == Reduce::kMax ? Reduce::kAny : Reduce::kAll;
  return result(x.cast(opmath(x.type())).reduce(reduce, dims, call.flag("keepdim", false)),
                x.type());
}

Tensors truth(const Call& call, Reduce reduce) {
  const Num x = call.tensor("self");
  // Here no dimensions are none.
  const bool none = call.has("dim") && call.ints("dim").empty();
  const std::vector<std::int64_t> dims = none ? std::vector<std::int64_t>{} : reduced_dims(call, x);
  const Num found = x.cast(c10::ScalarType::Bool).reduce(reduce, dims, call.flag("keepdim", false));
  // Those of uint8 stay uint8.
  return {found.cast(x.type() == c10::ScalarType::Byte ? x.type() : found.type()).tensor()};
}

/// The variance or its root, and the mean.
Tensors moments(const Call& call, bool root, bool with_mean) {
  const Num x = call.tensor("self");
  if (!is_floating(x.type())) call.unsupported("a variance of integers");
  double correction = 1;
  if (call.has("unbiased"))
    correction = call.flag("unbiased") ? 1 : 0;
  else if (call.has("correction"))
    correction = call.real("correction");
  const bool keepdim = call.flag("keepdim", false);
  const std::vector<std::int64_t> dims = reduced_dims(call, x);
  const Num wide = x.cast(opmath(x.type()));
  const Num mean = mean_of(wide, dims);
  const Num difference = wide - mean;
  const Num count = wide.extent(dims).cast(wide.type());
  const Num divisor = at_least(count - correction, count.number(0));
  const Num sum = (difference * difference).reduce(Reduce::kSum, dims, keepdim);
  const Num variance = sum / divisor;
  Tensors out = result(root ? sqrt(variance) : variance, x.type());
  if (with_mean) out.push_back(without_dims(mean, dims, keepdim).cast(x.type()).tensor());
  return out;
}

Tensors norm(const Call& call, double p) {
  const Num self = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(self.type());
  if (!is_floating(type) || !is_floating(self.type())) call.unsupported("a norm of integers");
  if (c10::promoteTypes(self.type(), type) != type) call.unsupported("a norm in a narrower dtype");
  const std::vector<std::int64_t> dims = reduced_dims(call, self);
  if (p < 0 || std::isinf(p)) refuse_empty(call, self, dims);
  return result(
      vector_norm(self.cast(type).cast(opmath(type)), p, dims, call.flag("keepdim", false)), type);
}

}  // namespace

Num mean_of(const Num& x, const std::vector<std::int64_t>& dims) {
  return x.reduce(Reduce::kSum, dims, true) / x.extent(dims).cast(x.type());
}

Num without_dims(const Num& x, const std::vector<std::int64_t>& dims, bool keepdim) {
  if (keepdim) return x;
  Tensor out = x.tensor();
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) out = x.program().squeeze(out, *dim);
  return {x.program(), out};
}

Normalized normalize(const Num& x, const std::vector<std::int64_t>& dims, double eps) {
  const Num mean = mean_of(x, dims);
  const Num difference = x - mean;
  const Num variance = mean_of(difference * difference, dims);
  const Num inverse = 1.0 / sqrt(variance + eps);
  return {difference * inverse, mean, inverse};
}

c10::ScalarType parameter_type(const Call& call, c10::ScalarType type,
                               std::initializer_list<const char*> parameters) {
  std::optional<c10::ScalarType> found;
  for (const char* name : parameters) {
    if (!call.has(name)) continue;
    const c10::ScalarType its = call.tensor(name).type();
    if (found && *found != its) call.unsupported("parameters of different dtypes");
    found = its;
  }
  if (!found || *found == type) return type;
  if (!c10::isReducedFloatingType(type) || *found != c10::ScalarType::Float)
    call.unsupported("parameters of another dtype");
  return *found;
}

Num vector_norm(const Num& x, double p, const std::vector<std::int64_t>& dims, bool keepdim) {
  const auto sum = [&](const Num& y) { return y.reduce(Reduce::kSum, dims, keepdim); };
  if (p == 2) return sqrt(sum(x * x));
  if (p == 1) return sum(abs(x));
  if (p == 0) return sum(select(x != 0, x.number(1), x.number(0)));
  if (std::isinf(p)) return abs(x).reduce(p > 0 ? Reduce::kMax : Reduce::kMin, dims, keepdim);
  return sum(abs(x).apply(Op::kPow, p)).apply(Op::kPow, 1 / p);
}

Tensors lower_sum(const Call& call) { return accumulate(call, Reduce::kSum); }
Tensors lower_prod(const Call& call) { return accumulate(call, Reduce::kProd); }
Tensors lower_amax(const Call& call) { return extreme(call, Reduce::kMax); }
Tensors lower_amin(const Call& call) { return extreme(call, Reduce::kMin); }
Tensors lower_any(const Call& call) { return truth(call, Reduce::kAny); }
Tensors lower_all(const Call& call) { return truth(call, Reduce::kAll); }

Tensors lower_aminmax(const Call& call) {
  Tensors out = extreme(call, Reduce::kMin);
  out.push_back(extreme(call, Reduce::kMax)[0]);
  return out;
}

Tensors lower_mean(const Call& call) {
  const Num x = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(x.type());
  if (!is_floating(type)) call.unsupported("a mean of integers");
  const std::vector<std::int64_t> dims = reduced_dims(call, x);
  // A narrower type is for the result, not for the elements.
  const Num mean = mean_of(x.cast(opmath(type)), dims);
  return result(without_dims(mean, dims, call.flag("keepdim", false)), type);
}

Tensors lower_var(const Call& call) { return moments(call, false, false); }
Tensors lower_std(const Call& call) { return moments(call, true, false); }
Tensors lower_var_mean(const Call& call) { return moments(call, false, true); }
Tensors lower_std_mean(const Call& call) { return moments(call, true, true); }

Tensors lower_norm(const Call& call) { return norm(call, call.real("p", 2)); }
Tensors lower_vector_norm(const Call& call) { return norm(call, call.real("ord", 2)); }

}  // namespace fx::loops
