#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "fx/graph/cpp_calls.h"
#include "fx/graph/cpp_names.h"

namespace fx::cpp {

/// @throws GraphError kNotExpressible with the node and why there is no C++ for it.
[[noreturn]] void not_expressible(const Node& node, std::string_view why);

/// Expressions for what Python has operators and statements for: asserts, arithmetic on numbers,
/// attributes, items. All throw as not_expressible().
class Builtins {
 public:
  /// @param nodes gives the expression of a node
  /// @param helpers learns which helpers the expressions need
  Builtins(NodeExpr nodes, Helpers& helpers) : nodes_(std::move(nodes)), helpers_(helpers) {}

  Expr assert_call(const Node& node);
  /// Python's operators on ints and floats, where C++ has the same.
  Expr on_numbers(const Node& node, const Operator& op);
  /// object.name of a tensor.
  Expr attribute(const Node& node, const Expr& object, std::string_view name);
  Expr get_item(const Node& node, const Argument& object, const Argument& index);
  Expr set_item(const Node& node);

 private:
  Expr expr(const Argument& argument) const { return expr_of(argument, nodes_); }
  std::string tensor_index(const Node& node, const Argument& index);
  std::string one_index(const Node& node, const Argument& index);

  NodeExpr nodes_;
  Helpers& helpers_;
};

}  // namespace fx::cpp
