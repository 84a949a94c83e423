#include <dlfcn.h>

#include <vector>

#include "fx/compile/llvm/vector_ops.h"

namespace fx::loops {
namespace {

struct Row {
  Op op;
  const char* name;
  const char* accuracy;  // in the symbol: at most 1.0, 1.5, 0.5 ulp
};

constexpr Row kRows[] = {
    {Op::kExp, "exp", "_u10"},       {Op::kExp2, "exp2", "_u10"},   {Op::kExpm1, "expm1", "_u10"},
    {Op::kLog, "log", "_u10"},       {Op::kLog2, "log2", "_u10"},   {Op::kLog10, "log10", "_u10"},
    {Op::kLog1p, "log1p", "_u10"},   {Op::kSin, "sin", "_u10"},     {Op::kCos, "cos", "_u10"},
    {Op::kTan, "tan", "_u10"},       {Op::kAsin, "asin", "_u10"},   {Op::kAcos, "acos", "_u10"},
    {Op::kAtan, "atan", "_u10"},     {Op::kSinh, "sinh", "_u10"},   {Op::kCosh, "cosh", "_u10"},
    {Op::kTanh, "tanh", "_u10"},     {Op::kAsinh, "asinh", "_u10"}, {Op::kAcosh, "acosh", "_u10"},
    {Op::kAtanh, "atanh", "_u10"},   {Op::kErf, "erf", "_u10"},     {Op::kErfc, "erfc", "_u15"},
    {Op::kLgamma, "lgamma", "_u10"}, {Op::kPow, "pow", "_u10"},     {Op::kAtan2, "atan2", "_u10"},
    {Op::kFmod, "fmod", "_"},        {Op::kHypot, "hypot", "_u05"},
};

struct Shape {
  c10::ScalarType type;
  unsigned lanes;
  const char* infix;
  const char* target;
};

constexpr Shape kShapes[] = {
    {c10::ScalarType::Float, 16, "f16", "avx512f"},
    {c10::ScalarType::Double, 8, "d8", "avx512f"},
    {c10::ScalarType::Float, 8, "f8", "avx2"},
    {c10::ScalarType::Double, 4, "d4", "avx2"},
};

std::string name_of(const Row& row, const Shape& shape) {
  return std::string("Sleef_") + row.name + shape.infix + row.accuracy + shape.target;
}

}  // namespace

const std::vector<RuntimeSymbol>& runtime_symbols() {
  static const std::vector<RuntimeSymbol> symbols = [] {
    std::vector<RuntimeSymbol> found;
    for (const Row& row : kRows)
      for (const Shape& shape : kShapes) {
        std::string name = name_of(row, shape);
        if (void* address = dlsym(RTLD_DEFAULT, name.c_str()))
          found.push_back({std::move(name), address});
      }
    return found;
  }();
  return symbols;
}

std::string runtime_symbol(Op op, c10::ScalarType type, unsigned lanes) {
  for (const Row& row : kRows)
    for (const Shape& shape : kShapes)
      if (row.op == op && shape.type == type && shape.lanes == lanes) {
        const std::string name = name_of(row, shape);
        for (const RuntimeSymbol& symbol : runtime_symbols())
          if (symbol.name == name) return name;
      }
  return "";
}

std::string neon_symbol(Op op, c10::ScalarType type, unsigned lanes) {
  constexpr Shape kNeon[] = {{c10::ScalarType::Float, 4, "f4", ""},
                             {c10::ScalarType::Double, 2, "d2", ""}};
  for (const Row& row : kRows)
    for (const Shape& shape : kNeon)
      if (row.op == op && shape.type == type && shape.lanes == lanes) return name_of(row, shape);
  return "";
}

}  // namespace fx::loops
