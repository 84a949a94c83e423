#pragma once

#include <set>
#include <string>
#include <string_view>

#include "fx/graph/cpp_calls.h"

namespace fx::cpp {

/// Whether generated code cannot use the name: C++ has it, or the file around it.
bool is_taken(std::string_view name);

/// One of Python's operators, by the torch function that does the same on tensors.
struct Operator {
  std::string_view name;
  std::string_view function;
  std::string_view infix;  ///< on two numbers of C++, where it means the same
};
/// The operator of that name without "operator.", or null.
const Operator* find_operator(std::string_view name);

/// What the functions of one file share.
struct File {
  Helpers helpers;
  std::set<std::string> functions;
  std::string source;  ///< finished functions

  /// A name near `candidate` for a function, not given to another.
  std::string claim(std::string_view candidate);
};

}  // namespace fx::cpp
