#pragma once

#include <cstdint>
#include <string_view>

#include "fx/ops/value.h"

/// What the sources of the built-ins share.
namespace fx {

/// @throws RunError kWrongType naming the function and describing its operands.
[[noreturn]] void wrong_operands(std::string_view name, const Values& args);

/// Python's bool is an int.
inline bool is_int(const Value& v) { return v.isInt() || v.isBool(); }
inline std::int64_t as_int(const Value& v) { return v.isBool() ? v.toBool() : v.toInt(); }

}  // namespace fx
