#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "fx/graph/node.h"

/// What a call does, whichever way it is spelled: for passes that look for operations.
namespace fx {

/// "dropout" of torch.nn.functional.dropout, aten::dropout and the method; empty for what is none
/// of PyTorch's operations: own functions, operators of other libraries.
std::string_view operation_of(const Node& node);

/// The node that is passed first, or as "input"; null when that is something else.
Node* input_of(const Node& node);

/// Whether an argument is that number, int or float alike.
bool is_number(const Argument* argument, double wanted);
bool is_int(const Argument* argument, std::int64_t wanted);

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& sorted, std::string_view name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

}  // namespace fx
