#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fx/io/symbolic_expr.h"

/// Texts of archives that Python evaluates when it loads or runs them: only what was understood is
/// written.
namespace fx::io {

/// A guard on inputs as torch.export writes it, "L['x'].size()[0] == L['y'].size()[0]", printed
/// anew from what was understood of it: integers, sizes, strides and offsets of inputs, arithmetic,
/// comparisons, and, or, not. Nothing when there is anything else in it. Python executes the texts
/// of guards as code when a program is run, so that no other text may be written. O(size).
std::optional<std::string> rewritten_guard(std::string_view text);

/// The srepr form of an expression that calls functions of sympy and torch alone, not those of
/// Python.
/// @throws ImportError kUnsupported for any other function.
std::string expression_for_python(const SymbolicExpr& expr);

}  // namespace fx::io
