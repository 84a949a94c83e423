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
  /// better no answer than a guess. What shape_prop recorded of all inputs tells overloads apart.
  static std::optional<NamedArguments> of(const Node& node);

  /// The argument or its default; null when the schema has none of that name.
  const Argument* find(std::string_view name) const noexcept;
  /// Its place among the positional arguments, if it can be given by position.
  std::optional<std::size_t> position(std::string_view name) const noexcept;
  /// All values in the order of the schema.
  const Args& values() const noexcept { return values_; }
  /// All of them as keyword arguments, in the order of the schema.
  Kwargs keywords() const;

 private:
  std::vector<std::string_view> names_;  // of the schema, which is immortal
  std::size_t num_positional_ = 0;
  Args values_;
};

/// The arguments of a call as keywords only, with defaults filled in, so that calls which mean the
/// same look the same (torch.fx's Node.normalized_arguments with normalize_to_only_use_kwargs).
/// Nothing where NamedArguments::of has no answer.
std::optional<Kwargs> normalized_arguments(const Node& node);

}  // namespace fx
