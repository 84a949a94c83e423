#pragma once

// Internal: what the values of a graph are, for writers of programs that have to say it.

#include <string>
#include <unordered_map>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/argument_import.h"
#include "fx/io/import_export.h"
#include "fx/io/value_meta.h"

namespace fx::io {

/// What is known of one value: a tensor or number (`meta`), a sequence (`items`), or None.
struct ValueType {
  enum class Kind : std::uint8_t { kUnknown, kNone, kValue, kSequence };
  Kind kind = Kind::kUnknown;
  ValueMetaPtr meta;             ///< of kValue
  std::vector<ValueType> items;  ///< of kSequence
};

/// The types of all nodes of a graph, and the symbols that they speak of.
struct ValueTypes {
  std::unordered_map<const Node*, ValueType> of;
  /// Why nothing is known of a node, where it failed.
  std::unordered_map<const Node*, std::string> failures;
  /// Symbols that the graph's metadata did not have: numbers read from tensors, dynamic sizes of
  /// input guards.
  RangeConstraints new_symbols;
};

/// Finds the types by running `module` on tensors without memory (FakeTensorProp), of the sizes
/// that its inputs had at export or capture. Metadata of an exported program (meta "val") is kept
/// where it agrees with that, or where the run cannot tell: results that depend on the values of
/// tensors. Where an edited graph has none, or another shape than it says, sizes that depend on
/// symbols are found by a second run with other sizes: an expression of the graph, or a linear one,
/// that fits both.
///
/// What inputs are is taken from meta "val" or "tensor_meta", `example_inputs` (by placeholder), or
/// the input guards, in this order. An input of which nothing is known is added to `problems`.
/// Changes nothing. O(nodes), without any arithmetic on elements as far as operators allow it.
ValueTypes find_value_types(const GraphModule& module, const Values& example_inputs,
                            Problems& problems);

}  // namespace fx::io
