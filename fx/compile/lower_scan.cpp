#include <optional>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Cumulative operators.
namespace fx::loops {
namespace {

// The dimension, or nothing where there is one element: its scan is the element.
std::optional<std::int64_t> scanned_dim(const Call& call, const Num& x) {
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  for (Dim size : x.tensor().dims)
    if (call.program().shapes().example(size) == 0) call.unsupported("a scan of nothing");
  if (x.dim() == 0 || x.tensor().dims[static_cast<std::size_t>(dim)] == kOne) return std::nullopt;
  return dim;
}

c10::ScalarType carried_type(c10::ScalarType type) {
  if (!is_floating(type)) return c10::ScalarType::Long;
  return c10::isReducedFloatingType(type) ? c10::ScalarType::Float : c10::ScalarType::Double;
}

// Sums and products are carried in a wider type, and rounded for each element.
Tensors cumulative(const Call& call, Reduce reduce) {
  const Num self = call.tensor("self");
  const c10::ScalarType type =
      call.dtype().value_or(is_floating(self.type()) ? self.type() : c10::ScalarType::Long);
  if (is_bool(type)) call.unsupported("a scan as bool");
  const std::optional<std::int64_t> dim = scanned_dim(call, self);
  const Num x = self.cast(type).cast(carried_type(type));
  if (!dim) {
    // Eager starts from 0, unless there are no dimensions.
    return result(reduce == Reduce::kSum && x.dim() > 0 ? x + 0 : x, type);
  }
  // In which order sums are added up is seen where the wider type overflows, which that of floats
  // and halves does not.
  const bool in_order =
      is_floating(type) && (reduce == Reduce::kProd || type == c10::ScalarType::Double ||
                            type == c10::ScalarType::BFloat16);
  return result({call.program(), call.program().scan(reduce, x.tensor(), *dim, in_order)}, type);
}

// Extrema so far, and where they are: the last of equal ones.
Tensors extremum_so_far(const Call& call, Reduce reduce) {
  TensorProgram& program = call.program();
  const Num self = call.tensor("self");
  const std::optional<std::int64_t> dim = scanned_dim(call, self);
  if (!dim) {
    const Num zero = call.number(c10::ScalarType::Long, 0);
    // A copy, as any result.
    return {select(call.number(c10::ScalarType::Bool, true), self, self).tensor(),
            zero.expand(self.tensor().dims).tensor()};
  }
  const Num x = self.cast(is_bool(self.type()) ? c10::ScalarType::Byte : opmath(self.type()));
  const Num value(program, program.scan(reduce, x.tensor(), *dim, false));
  const Num index = index_along(program, self.tensor().dims, static_cast<std::size_t>(*dim));
  Num hit = x == value;
  if (is_floating(x.type())) hit = hit | is_nan(x);
  const Num place = select(hit, index, 0);
  return {value.cast(self.type()).tensor(),
          program.scan(Reduce::kMax, place.tensor(), *dim, false)};
}

}  // namespace

Tensors lower_cumsum(const Call& call) { return cumulative(call, Reduce::kSum); }
Tensors lower_cumprod(const Call& call) { return cumulative(call, Reduce::kProd); }
// Carried in the same types as sums.
Tensors lower_logcumsumexp(const Call& call) {
  const Num self = call.tensor("self");
  if (!is_floating(self.type())) call.unsupported("a scan of integers");
  const std::optional<std::int64_t> dim = scanned_dim(call, self);
  const Num x = self.cast(carried_type(self.type()));
  // Eager starts from the logarithm of 0, unless there are no dimensions.
  if (!dim) return result(x.dim() > 0 ? x + 0 : x, self.type());
  return result({call.program(), call.program().scan(Reduce::kLogAddExp, x.tensor(), *dim, false)},
                self.type());
}
Tensors lower_cummax(const Call& call) { return extremum_so_far(call, Reduce::kMax); }
Tensors lower_cummin(const Call& call) { return extremum_so_far(call, Reduce::kMin); }

}  // namespace fx::loops
