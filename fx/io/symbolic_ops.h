#pragma once

// Internal: the operators and functions of symbolic expressions, for parser and printer.

#include <array>
#include <string_view>

#include "fx/io/symbolic_expr.h"

namespace fx::io {

struct FunctionRow {
  std::string_view name;
  SymbolicExpr::Op op;
  std::size_t min_args;
  std::size_t max_args;
};

inline constexpr std::size_t kMany = 100'000;

/// Functions by sympy's and torch.utils._sympy.functions' names. What is not here is kept as
/// kOther.
inline constexpr std::array kFunctions = {
    FunctionRow{"Add", SymbolicExpr::Op::kAdd, 1, kMany},
    FunctionRow{"Mul", SymbolicExpr::Op::kMul, 1, kMany},
    FunctionRow{"Pow", SymbolicExpr::Op::kPow, 2, 2},
    FunctionRow{"PowByNatural", SymbolicExpr::Op::kPow, 2, 2},
    FunctionRow{"FloorDiv", SymbolicExpr::Op::kFloorDiv, 2, 2},
    FunctionRow{"CleanDiv", SymbolicExpr::Op::kFloorDiv, 2, 2},
    FunctionRow{"Mod", SymbolicExpr::Op::kMod, 2, 2},
    FunctionRow{"PythonMod", SymbolicExpr::Op::kMod, 2, 2},
    FunctionRow{"CeilDiv", SymbolicExpr::Op::kCeilDiv, 2, 2},
    FunctionRow{"IntTrueDiv", SymbolicExpr::Op::kTrueDiv, 2, 2},
    FunctionRow{"FloatTrueDiv", SymbolicExpr::Op::kTrueDiv, 2, 2},
    FunctionRow{"Min", SymbolicExpr::Op::kMin, 1, kMany},
    FunctionRow{"Max", SymbolicExpr::Op::kMax, 1, kMany},
    FunctionRow{"Equality", SymbolicExpr::Op::kEq, 2, 2},
    FunctionRow{"Eq", SymbolicExpr::Op::kEq, 2, 2},
    FunctionRow{"Unequality", SymbolicExpr::Op::kNe, 2, 2},
    FunctionRow{"Ne", SymbolicExpr::Op::kNe, 2, 2},
    FunctionRow{"StrictLessThan", SymbolicExpr::Op::kLt, 2, 2},
    FunctionRow{"Lt", SymbolicExpr::Op::kLt, 2, 2},
    FunctionRow{"LessThan", SymbolicExpr::Op::kLe, 2, 2},
    FunctionRow{"Le", SymbolicExpr::Op::kLe, 2, 2},
    FunctionRow{"StrictGreaterThan", SymbolicExpr::Op::kGt, 2, 2},
    FunctionRow{"Gt", SymbolicExpr::Op::kGt, 2, 2},
    FunctionRow{"GreaterThan", SymbolicExpr::Op::kGe, 2, 2},
    FunctionRow{"Ge", SymbolicExpr::Op::kGe, 2, 2},
    FunctionRow{"And", SymbolicExpr::Op::kAnd, 1, kMany},
    FunctionRow{"Or", SymbolicExpr::Op::kOr, 1, kMany},
    FunctionRow{"Not", SymbolicExpr::Op::kNot, 1, 1},
    FunctionRow{"Where", SymbolicExpr::Op::kWhere, 3, 3},
};

struct InfixRow {
  std::string_view token;
  SymbolicExpr::Op op;
  int precedence;
};

inline constexpr int kOrPrecedence = 1, kAndPrecedence = 2, kNotPrecedence = 3,
                     kComparePrecedence = 4;
inline constexpr int kSumPrecedence = 5, kProductPrecedence = 6, kUnaryPrecedence = 7,
                     kPowerPrecedence = 8;

/// Longer tokens first.
inline constexpr std::array kInfix = {
    InfixRow{"**", SymbolicExpr::Op::kPow, kPowerPrecedence},
    InfixRow{"//", SymbolicExpr::Op::kFloorDiv, kProductPrecedence},
    InfixRow{"==", SymbolicExpr::Op::kEq, kComparePrecedence},
    InfixRow{"!=", SymbolicExpr::Op::kNe, kComparePrecedence},
    InfixRow{"<=", SymbolicExpr::Op::kLe, kComparePrecedence},
    InfixRow{">=", SymbolicExpr::Op::kGe, kComparePrecedence},
    InfixRow{"<", SymbolicExpr::Op::kLt, kComparePrecedence},
    InfixRow{">", SymbolicExpr::Op::kGt, kComparePrecedence},
    InfixRow{"*", SymbolicExpr::Op::kMul, kProductPrecedence},
    InfixRow{"/", SymbolicExpr::Op::kTrueDiv, kProductPrecedence},
    InfixRow{"%", SymbolicExpr::Op::kMod, kProductPrecedence},
    InfixRow{"+", SymbolicExpr::Op::kAdd, kSumPrecedence},
    InfixRow{"&", SymbolicExpr::Op::kAnd, kAndPrecedence},
    InfixRow{"|", SymbolicExpr::Op::kOr, kOrPrecedence},
};

}  // namespace fx::io
