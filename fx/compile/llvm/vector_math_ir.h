#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <functional>
#include <span>

#include "fx/compile/llvm/vector_math_tables.h"

/// Arithmetic on vectors of floats that reads like arithmetic: each operator adds an instruction.
/// No fast-math flags: every operation rounds once, as IEEE 754 says, and none is rearranged.
namespace fx::loops::math {

class Builder;

struct Mask {
  Builder* b;
  ::llvm::Value* v;
};

/// Vectors of int32, which wrap.
struct Words {
  Builder* b;
  ::llvm::Value* v;
};

/// Vectors of float, or of double where the builder is one of doubles.
struct Floats {
  Builder* b;
  ::llvm::Value* v;
};

/// Where instructions go, and the operations that are no operators.
class Builder {
 public:
  /// @param wide there is AVX-512.
  Builder(::llvm::IRBuilder<>& ir, unsigned lanes, bool wide)
      : ir_(ir), lanes_(lanes), wide_(wide && lanes == 16) {}

  /// As many doubles, for steps that need their bits. All operators and functions below that do not
  /// speak of words work on them.
  Builder doubles() const {
    Builder other(ir_, lanes_, false);
    other.double_ = true;
    return other;
  }
  Floats widen(Floats x) { return {this, ir_.CreateFPExt(x.v, float_type())}; }
  Floats narrow(Floats x) { return {this, ir_.CreateFPTrunc(x.v, float_type())}; }

  ::llvm::IRBuilder<>& ir() const noexcept { return ir_; }
  /// Sixteen lanes on a processor with AVX-512; else AVX2 must do.
  bool wide() const noexcept { return wide_; }

  Floats floats(::llvm::Value* v) { return {this, v}; }
  Floats number(double value);
  Words word(std::uint32_t value);
  ::llvm::Type* float_type() const;
  ::llvm::Type* word_type() const;

  /// Any lane set, as i1.
  ::llvm::Value* any(Mask mask);
  /// `slow` in the lanes of `rare`, else `quick`, so that no lane depends on others. `slow` is
  /// called once; its code runs only where any lane is rare. Begins new blocks.
  Floats unless_any(Mask rare, Floats quick, const std::function<Floats()>& slow);

  // AVX-512 only.
  /// The mantissa of |x| in [0.75, 1.5), NaN where x < 0; 1 of zero and infinity.
  Floats mantissa(Floats x);
  /// floor(log2|x|): -infinity of zero, infinity of infinity.
  Floats exponent(Floats x);
  /// x * 2^floor(n), rounded once.
  Floats scalef(Floats x, Floats n);
  /// `x`, replaced by what `table` says of the kind of `by`: four bits for each kind, quiet NaN
  /// lowest, then signalling NaN, zero, one, -infinity, infinity, negative, positive.
  Floats fix_up(Floats x, Floats by, std::uint32_t table);
  /// Element (index mod 16) of a table, on any processor.
  Floats lookup(const float (&table)[16], Words index);

 private:
  ::llvm::IRBuilder<>& ir_;
  unsigned lanes_;
  bool wide_;
  bool double_ = false;
};

Floats operator+(Floats a, Floats b);
Floats operator-(Floats a, Floats b);
Floats operator*(Floats a, Floats b);
Floats operator/(Floats a, Floats b);
Floats operator-(Floats a);
inline Floats operator+(Floats a, double b) { return a + a.b->number(b); }
inline Floats operator-(Floats a, double b) { return a - a.b->number(b); }
inline Floats operator*(Floats a, double b) { return a * a.b->number(b); }
inline Floats operator+(double a, Floats b) { return b.b->number(a) + b; }
inline Floats operator-(double a, Floats b) { return b.b->number(a) - b; }
inline Floats operator/(double a, Floats b) { return b.b->number(a) / b; }

/// a * b + c, rounded once.
Floats fma(Floats a, Floats b, Floats c);
inline Floats fma(Floats a, double b, Floats c) { return fma(a, a.b->number(b), c); }
inline Floats fma(Floats a, Floats b, double c) { return fma(a, b, a.b->number(c)); }
inline Floats fma(Floats a, double b, double c) { return fma(a, a.b->number(b), a.b->number(c)); }
Floats abs(Floats a);
Floats sqrt(Floats a);
/// To nearest, ties to even.
Floats round(Floats a);
/// The magnitude of a with the sign of b.
Floats copysign(Floats a, Floats b);
/// Horner's scheme; the highest power first.
Floats polynomial(Floats x, std::span<const double> coefficients);

// Comparisons are false where an argument is NaN, but !=.
Mask operator<(Floats a, Floats b);
Mask operator==(Floats a, Floats b);
Mask operator!=(Floats a, Floats b);
inline Mask operator<(Floats a, double b) { return a < a.b->number(b); }
inline Mask operator>(Floats a, double b) { return a.b->number(b) < a; }
inline Mask operator==(Floats a, double b) { return a == a.b->number(b); }
Mask operator&(Mask a, Mask b);
Mask operator|(Mask a, Mask b);
/// a where the mask is set, else b.
Floats select(Mask mask, Floats a, Floats b);
Words select(Mask mask, Words a, Words b);
/// NaN passes.
Floats at_most(Floats x, double high);
Floats at_least(Floats x, double low);

Words bits(Floats a);
Floats as_floats(Words a);
/// The integers as floats.
Floats convert(Words a);
Words operator+(Words a, Words b);
Words operator-(Words a, Words b);
Words operator^(Words a, Words b);
Words operator&(Words a, Words b);
inline Words operator+(Words a, std::uint32_t b) { return a + a.b->word(b); }
inline Words operator-(Words a, std::uint32_t b) { return a - a.b->word(b); }
inline Words operator&(Words a, std::uint32_t b) { return a & a.b->word(b); }
Words operator<<(Words a, unsigned count);
/// With copies of the sign.
Words operator>>(Words a, unsigned count);
/// The sign bit is set.
Mask negative(Words a);

}  // namespace fx::loops::math
