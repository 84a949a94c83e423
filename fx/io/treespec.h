#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::io {

/// Deepest nesting of containers in a tree that is read.
inline constexpr std::size_t kMaxTreeDepth = 100;

/// Field names of named tuples by serialised type name, from the program's JSON.
using NamedTupleFields = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Reads a tree from the JSON text that torch.utils._pytree.treespec_dumps writes (protocol 1).
/// `label` starts each message. Nothing of the Python types is kept but their shape and name, and
/// nothing is imported: a class that is not known becomes a named tuple if its context is the JSON
/// list of the names of its children (registered dataclasses), and is refused by name otherwise.
/// type_name is set for everything but tuple, list, dict and None.
/// @throws ImportError kBadTreespec. O(size).
TreeSpec parse_treespec(std::string_view json, const std::string& label,
                        const NamedTupleFields& named_tuples = {});

/// The text that torch.utils._pytree.treespec_loads reads as `tree`; the inverse of parse_treespec
/// as far as a TreeSpec goes: keys of dicts are strings, a class whose kind is not known is written
/// as a named tuple. Adds the named tuples to `named_tuples`.
/// @throws ImportError kNotExportable for containers nested more than kMaxTreeDepth deep, and for
///   None as a container. O(size).
std::string treespec_json(const TreeSpec& tree, NamedTupleFields& named_tuples);

/// A tree on one line: "(*, {'a': *, 'b': [*]})", "Point(x=*, y=*)".
std::string treespec_str(const TreeSpec& tree);

}  // namespace fx::io
