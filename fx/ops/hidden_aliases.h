#pragma once

#include <string_view>

namespace fx {

/// Whether an operator ("aten::einsum", no overload) may return an argument itself or a view of
/// one, though its schema has no alias annotation (ops/hidden_aliases.def). O(log n).
bool has_hidden_alias(std::string_view operator_name);

}  // namespace fx
