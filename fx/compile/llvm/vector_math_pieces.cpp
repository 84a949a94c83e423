#include "fx/compile/llvm/vector_math.h"

namespace fx::loops::math {
namespace {

// An odd function that goes to 1, from a table of polynomials. In each interval c is such that
// function(c) is next to a float (Gal's accurate tables), so that the sum's rounding is most of the
// error.
template <int Degree>
Floats from_pieces(Floats x, const tables::Pieces<Degree>& table) {
  Builder& b = *x.b;
  const Floats a = at_most(abs(x), table.last);
  const Floats place = a + table.shift;
  const Words index = bits(place) >> (23 - table.bits);
  const Floats t = a - b.lookup(table.rows[0], index);
  Floats sum = b.lookup(table.rows[Degree + 1], index);
  for (int power = Degree - 1; power >= 1; --power)
    sum = fma(sum, t, b.lookup(table.rows[power + 1], index));
  const Floats start = select(place < table.first, a, b.lookup(table.rows[1], index));
  return copysign(fma(sum, t, start), x);
}

}  // namespace

Floats tanh(Floats x) { return from_pieces(x, tables::kTanh); }
Floats erf(Floats x) { return from_pieces(x, tables::kErf); }

}  // namespace fx::loops::math
