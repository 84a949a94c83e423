#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fx/graph/argument.h"

/// The literals of the .fx text form; every one reads back as the same value, bit by bit.
namespace fx::text {

/// The first line of every text: "fx 1".
inline constexpr std::string_view kMagic = "fx";
inline constexpr int kVersion = 1;

/// A quoted string. Any bytes: \n \r \t \\ and the quote are escaped, so are control bytes and
/// bytes that are no valid UTF-8, as \xNN, which stands for one byte.
void append_quoted(std::string& out, std::string_view text);

/// "1.5", "-inf", "nan"; a NaN with other bits as "nan(0xfff8000000000000)".
void append_float(std::string& out, double value);

/// An argument; nodes as %name.
void append_argument(std::string& out, const Argument& argument);
/// "(%a, 1)", "(%a,)", "()".
void append_tuple(std::string& out, std::span<const Argument> items);

/// Whether a target stands in brackets as it is: letters, digits, and _ . : * < > / + $ @ -
bool is_plain_target(std::string_view text);
/// Whether a type stands as it is: "Tensor", "Dict[str, List[int]]".
bool is_plain_type(std::string_view text);
bool is_plain_target_char(char c);
bool is_plain_type_char(char c);

/// The dtype, layout or memory format called "torch.float32", or nothing.
const Argument* find_torch_constant(std::string_view name);
/// The device type called "cuda", or nothing.
std::optional<c10::DeviceType> find_device_type(std::string_view name);
/// Whether there may be a device of this type with this index; -1: the current one. c10::Device
/// asserts it.
bool is_device_index(c10::DeviceType type, std::int64_t index);

}  // namespace fx::text
