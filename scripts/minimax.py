#!/usr/bin/env python3
"""Computes the coefficients of the elementary functions in fx/compile/llvm/vector_math*.cpp.

  scripts/minimax.py            prints the tables and how good they are
  scripts/minimax.py --write    writes fx/compile/llvm/vector_math_tables.h
  scripts/minimax.py exp log    only these

A fit minimises the largest weighted error of a polynomial by Lawson's algorithm: least squares on Chebyshev nodes, the
weight of a node multiplied by its error and all solved again until the errors are level. Coefficients are then rounded
to float32 one by one, lowest power first, and those that are left are fitted anew each time, so that they make up for
what rounding lost. Needs numpy and mpmath.
"""

import argparse
import pathlib
import sys

import mpmath
import numpy

mpmath.mp.prec = 120
HEADER = pathlib.Path(__file__).resolve().parent.parent / "fx/compile/llvm/vector_math_tables.h"


def nodes(low, high, count=240):
    k = numpy.arange(count)
    return (low + high) / 2 + (high - low) / 2 * numpy.cos(numpy.pi * (k + 0.5) / count)


def values(function, xs):
    return numpy.array([float(function(mpmath.mpf(x))) for x in xs])


def lawson(matrix, wanted, weight, rounds):
    """Coefficients c with the least max |weight * (matrix c - wanted)|."""
    scale = numpy.abs(matrix * weight[:, None]).max(axis=0)
    scaled = matrix * weight[:, None] / scale
    goal = wanted * weight
    measure = numpy.full(len(goal), 1 / len(goal))
    best, best_error = None, numpy.inf
    for _ in range(rounds):
        root = numpy.sqrt(measure)
        c = numpy.linalg.lstsq(scaled * root[:, None], goal * root, rcond=None)[0]
        error = numpy.abs(scaled @ c - goal)
        if error.max() < best_error:
            best, best_error = c, error.max()
        if best_error < 1e-15:
            break
        measure = measure * (error + 1e-3 * error.max())
        measure /= measure.sum()
    return best / scale, best_error


def fit(function, powers, low, high, weight, fixed=None, rounds=60, rounding=numpy.float32):
    """Rounded coefficients by power of function ~ sum c x^power, and the largest |weight * error|."""
    xs = nodes(low, high)
    wanted = values(function, xs)
    weights = values(weight, xs)
    done = dict(fixed or {})
    left = [p for p in powers if p not in done]
    error = numpy.inf
    while True:
        rest = wanted - sum(c * xs**p for p, c in done.items())
        if not left:
            return done, float(numpy.abs(rest * weights).max())
        matrix = numpy.stack([xs**p for p in left], axis=1)
        c, error = lawson(matrix, rest, weights, rounds)
        done[left[0]] = float(rounding(c[0]))
        left = left[1:]


class Table:
    def __init__(self, name, what, rows, error, columns=None):
        self.name, self.what, self.rows, self.error, self.columns = name, what, rows, error, columns


def polynomial(name, text, function, powers, low, high, weight, fixed=None, rounding=numpy.float32):
    """Highest power first, powers 0 to n of the variable of Horner's scheme."""
    c, error = fit(function, powers, low, high, weight, fixed, rounding=rounding)
    what = f"{text}, powers {min(powers)} to {max(powers)} on [{low:.6g}, {high:.6g}]"
    return Table(name, what, [c[p] for p in sorted(c, reverse=True)], error)


def centre(function, low, high):
    """A float near the middle of [low, high] with few bits whose function value is next to a float."""
    middle, step = (low + high) / 2, (high - low) / 4096
    best = None
    for k in range(-160, 161):
        x = float(numpy.float32(middle + k * step))
        y = function(mpmath.mpf(x))
        distance = abs(float((y - mpmath.mpf(float(numpy.float32(float(y))))) / y))
        if best is None or distance < best[0]:
            best = (distance, x)
    return best[1]


def shifted_edges(shift, bits, last):
    """Where the `bits` highest bits of the mantissa of x + shift change, from 0 on, up to `last`."""
    edges, word = [0.0], numpy.float32(shift).view(numpy.int32) >> (23 - bits)
    while edges[-1] < last:
        word += 1
        edges.append(float(numpy.int32(word << (23 - bits)).view(numpy.float32)) - shift)
    return edges[:-1] + [last]


def pieces(name, text, function, degree, shift, bits, last, odd=True):
    """A polynomial in x - c for each interval of shifted_edges: rows c, coefficient 0, ..., coefficient `degree`.

    The first interval of an odd function has function(x) - x instead, with c and coefficient 0 of 0. Columns are in the
    order of the low four bits of the word that shifted_edges counts, which is what VPERMPS looks at.
    """
    edges = shifted_edges(shift, bits, last)
    start = int(numpy.float32(shift).view(numpy.int32)) >> (23 - bits)
    columns, worst = [None] * 16, 0.0
    assert len(edges) <= 17, f"{name}: {len(edges) - 1} intervals"
    for k, (low, high) in enumerate(zip(edges, edges[1:])):
        if k == 0 and odd:
            middle = 0.0
            c, error = fit(lambda x: function(x) - x, range(degree + 1), 1e-9, high * (1 + 1e-6),
                           lambda x: 1 / function(x), {0: 0.0, 1: float(numpy.float32(mpmath.diff(function, 0) - 1))})
        else:
            middle = centre(function, low, high)
            at = lambda t, m=middle: function(mpmath.mpf(m) + t)
            slack = 1e-6 * high
            c, error = fit(at, range(degree + 1), low - middle - slack, high - middle + slack,
                           lambda t, g=at: 1 / g(t), {0: float(numpy.float32(float(function(mpmath.mpf(middle)))))})
        worst = max(worst, error)
        columns[(start + k) % 16] = [middle] + [c[p] for p in range(degree + 1)]
    columns = [column or [0.0] * (degree + 2) for column in columns]
    what = (f"{text}, degree {degree} on {len(edges) - 1} intervals of [0, {last:.6g}], "
            f"by {bits} bits of x + {shift:g}")
    head = [shift, edges[1] + shift, last]
    return Table(name, what, [bits] + [numpy.float32(h) for h in head], worst, columns)


QUARTER_PI = 0.7854 * 1.06
LN2_HALF = 0.34658 * 1.0005
LOG_LOW, LOG_HIGH = -0.25, 0.5


TABLES = {
    "exp": lambda: polynomial(
        "Exp", "e^r, relative", mpmath.exp, range(0, 7), -LN2_HALF, LN2_HALF, lambda r: mpmath.exp(-r), {0: 1, 1: 1}),
    "exp2": lambda: polynomial(
        "Exp2", "2^r, relative", lambda r: mpmath.mpf(2)**r, range(0, 7), -0.5, 0.5,
        lambda r: mpmath.mpf(2)**-r, {0: 1}),
    "expm1": lambda: polynomial(
        "Expm1", "(e^r - 1 - r) / r^2, relative to e^r - 1",
        lambda r: (mpmath.expm1(r) - r) / r**2, range(0, 6), -0.2880, 0.4058, lambda r: r**2 / mpmath.expm1(r)),
    "log": lambda: polynomial(
        "Log", "log(1 + f) / f - 1, relative to log(1 + f) / f",
        lambda f: mpmath.log1p(f) / f - 1, range(1, 10), LOG_LOW, LOG_HIGH, lambda f: f / mpmath.log1p(f), {0: 0}),
    "log2": lambda: polynomial(
        "Log2", "log2(1 + f) / f - 1, relative to log2(1 + f) / f",
        lambda f: mpmath.log1p(f) / mpmath.log(2) / f - 1, range(0, 10), LOG_LOW, LOG_HIGH,
        lambda f: f * mpmath.log(2) / mpmath.log1p(f)),
    "log10": lambda: polynomial(
        "Log10", "log10(1 + f) / f - 1/2, relative to log10(1 + f) / f",
        lambda f: mpmath.log1p(f) / mpmath.log(10) / f - mpmath.mpf(1) / 2, range(0, 10), -1 / 3, 1 / 3,
        lambda f: f * mpmath.log(10) / mpmath.log1p(f)),
    "sin": lambda: polynomial(
        "Sin", "(sin r / r - 1) / r^2 by s = r^2, relative to sin r / r",
        lambda s: (mpmath.sin(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 3), 1e-9, QUARTER_PI**2,
        lambda s: s * mpmath.sqrt(s) / mpmath.sin(mpmath.sqrt(s))),
    "cos": lambda: polynomial(
        "Cos", "(1 - cos r) / r^2 by s = r^2, relative to cos r",
        lambda s: (1 - mpmath.cos(mpmath.sqrt(s))) / s, range(0, 4), 1e-9, QUARTER_PI**2,
        lambda s: s / mpmath.cos(mpmath.sqrt(s)), {0: 0.5}),
    "tan": lambda: polynomial(
        "Tan", "(tan r / r - 1) / r^2 by s = r^2, relative to tan r / r",
        lambda s: (mpmath.tan(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 7), 1e-9, QUARTER_PI**2,
        lambda s: s * mpmath.sqrt(s) / mpmath.tan(mpmath.sqrt(s))),
    "tanh": lambda: pieces("Tanh", "tanh x, relative", mpmath.tanh, 6, 0.625, 2, 9.02),
    "erf": lambda: pieces("Erf", "erf x, relative", mpmath.erf, 5, 1.5, 3, 3.99),
    "erfc": lambda: pieces(
        "Erfc", "erfc x e^(x^2), relative", lambda x: mpmath.erfc(x) * mpmath.exp(x * x), 6, 0.75, 2, 10.1, odd=False),
    "sinh": lambda: polynomial(
        "Sinh", "(sinh r / r - 1) / r^2 by s = r^2, relative to sinh r / r",
        lambda s: (mpmath.sinh(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 3), 1e-9, 0.4815**2,
        lambda s: s * mpmath.sqrt(s) / mpmath.sinh(mpmath.sqrt(s))),
    "cosh": lambda: polynomial(
        "Cosh", "(cosh r - 1) / r^2 by s = r^2, relative to cosh r",
        lambda s: (mpmath.cosh(mpmath.sqrt(s)) - 1) / s, range(0, 3), 1e-9, 0.4815**2,
        lambda s: s / mpmath.cosh(mpmath.sqrt(s)), {0: 0.5}),
    "atan": lambda: polynomial(
        "Atan", "(atan z / z - 1) / z^2 by s = z^2, relative to atan z / z",
        lambda s: (mpmath.atan(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 9), 1e-9, 1,
        lambda s: s * mpmath.sqrt(s) / mpmath.atan(mpmath.sqrt(s))),
    "asin": lambda: polynomial(
        "Asin", "(asin z / z - 1) / z^2 by s = z^2, relative to asin z / z",
        lambda s: (mpmath.asin(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 5), 1e-9, 0.25,
        lambda s: s * mpmath.sqrt(s) / mpmath.asin(mpmath.sqrt(s))),
    "atanh": lambda: polynomial(
        "Atanh", "(atanh z / z - 1) / z^2 by s = z^2, relative to atanh z / z",
        lambda s: (mpmath.atanh(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s, range(0, 4), 1e-9, 0.0625,
        lambda s: s * mpmath.sqrt(s) / mpmath.atanh(mpmath.sqrt(s))),
    "pow": lambda: polynomial(
        "Pow", "log2(1 + f) / f, relative, in float64",
        lambda f: mpmath.log1p(f) / mpmath.log(2) / f, range(0, 14), LOG_LOW, LOG_HIGH,
        lambda f: f * mpmath.log(2) / mpmath.log1p(f), rounding=numpy.float64),
}


PIECES = """/// Polynomials of degree `Degree` in x - c, one for each of up to 16 intervals of x >= 0, chosen by the low four bits of
/// the word (bits of the float x + shift) >> (23 - bits).
template <int Degree>
struct Pieces {
  int bits;
  float shift;
  float first;  ///< Where x + shift is below: the value is x plus the polynomial's.
  float last;   ///< From here on the value rounds to 1.
  float rows[Degree + 2][16];  ///< c, then the coefficients, the lowest power first
};

"""


def literal(c):
    """Hexadecimal, without the zeros at the end."""
    if c == 0:
        return "0.0"
    digits, exponent = float(c).hex().split("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent


def wrapped(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > 98:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join(lines + [line])


def emit(table, key):
    text = f"// scripts/minimax.py {key}: {table.what};\n// largest error 2^{numpy.log2(table.error):.1f}.\n"
    if table.columns is None:
        rows = wrapped(literal(c) for c in table.rows).rstrip(",")
        return text + f"inline constexpr double k{table.name}[] = {{\n{rows}}};\n"
    height = len(table.columns[0])
    shift, first, last = (literal(h) + "f" for h in table.rows[1:])
    text += f"inline constexpr Pieces<{height - 2}> k{table.name} = {{\n"
    text += f"    {table.rows[0]}, {shift}, {first}, {last}, {{\n"
    for row in range(height):
        cells = wrapped(literal(c[row]) + "f" for c in table.columns)
        text += "    {\n" + cells.rstrip(",") + "},\n"
    return text + "    }};\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="tables; all by default")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    names = options.names or list(TABLES)
    unknown = [n for n in names if n not in TABLES]
    if unknown or (options.write and options.names):
        sys.exit(f"unknown table {unknown}" if unknown else "--write writes all tables")
    text = "\n".join(emit(TABLES[name](), name) for name in names)
    if not options.write:
        print(text)
        return
    HEADER.write_text(
        "#pragma once\n\n/// Coefficients, written by scripts/minimax.py --write. Polynomials: the highest power first.\n"
        "// clang-format off\nnamespace fx::loops::tables {\n\n" + PIECES + text + "\n}  // namespace fx::loops::tables\n"
        "// clang-format on\n")


if __name__ == "__main__":
    main()
