#include "fx/compile/llvm/vector_math.h"
#include "fx/compile/llvm/vector_math_parts.h"

namespace fx::loops::math {
namespace {

// A polynomial out of a table: start + step. In each interval c is such that the function of c is
// next to a float (Gal's accurate tables), so that the rounding of that sum is most of the error.
struct Piece {
  Floats place;
  Floats start;
  Floats slope;
  Floats t;  // step = slope * t
};

template <int Degree>
Piece piece(Floats a, const tables::Pieces<Degree>& table) {
  Builder& b = *a.b;
  const Floats place = a + table.shift;
  const Words index = bits(place) >> (23 - table.bits);
  const Floats t = a - b.lookup(table.rows[0], index);
  Floats slope = b.lookup(table.rows[Degree + 1], index);
  for (int power = Degree - 1; power >= 1; --power)
    slope = fma(slope, t, b.lookup(table.rows[power + 1], index));
  return {place, b.lookup(table.rows[1], index), slope, t};
}

// An odd function that goes to 1.
template <int Degree>
Floats odd_from_pieces(Floats x, const tables::Pieces<Degree>& table) {
  const Floats a = at_most(abs(x), table.last);
  const Piece p = piece(a, table);
  const Floats start = select(p.place < table.first, a, p.start);
  return copysign(fma(p.slope, p.t, start), x);
}

}  // namespace

Floats tanh(Floats x) { return odd_from_pieces(x, tables::kTanh); }
Floats erf(Floats x) { return odd_from_pieces(x, tables::kErf); }

// erfc a = e^(-a^2) g(a) for a >= 0, erfc(-a) = 2 - erfc a. a^2 is the sum of two floats (its
// rounding error by fma), and (1 + q) (start + step) is summed from the smallest to the largest
// term: g falls so slowly that step is small beside start.
Floats erfc(Floats x) {
  const Floats a = at_most(abs(x), tables::kErfc.last);
  const Piece p = piece(a, tables::kErfc);
  const Floats square = a * a;
  const Floats square_low = fma(a, a, -square);
  const ExpReduced e = reduce_exp(-square, kExpm1Bias);
  const Floats q = expm1_near(e.r - square_low);
  const Floats step = p.slope * p.t;
  const Floats product = p.start + fma(p.start, q, fma(step, q, step));
  const Floats y = scale(product, e.n, e.word);
  return select(x < 0.0, 2.0 - y, y);
}

}  // namespace fx::loops::math
