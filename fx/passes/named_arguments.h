#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/node.h"

namespace fx {

/// The arguments of a call by the names of the operator's schema, wherever the call gives them:
/// by position, by keyword, or not at all (the default). torch.fx's normalized_arguments.
class NamedArguments {
 public:
  /// Nothing when the node calls no operator, when its arguments fit no overload, when a default
  /// has no form as an argument, or when they fit overloads that disagree on names or defaults:
  /// better no answer than a guess.
  static std::optional<NamedArguments> of(const Node& node);

  /// The argument or its default; null when the schema has none of that name.
  const Argument* find(std::string_view name) const noexcept;
  /// Its place among the positional arguments, if it can be given by position.
  std::optional<std::size_t> position(std::string_view name) const noexcept;
  /// All values in the order of the schema.
  const Args& values() const noexcept { return values_; }

 private:
  std::vector<std::string_view> names_;  // of the schema, which is immortal
  std::size_t num_positional_ = 0;
  Args values_;
};

}  // namespace fx
