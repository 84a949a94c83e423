#pragma once

// Internal: what an exported program says that a GraphModule has no place for.

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/export_schema.h"

namespace fx::io {

/// Kept by fx::load for fx::save_pt2: module.meta()["pt2_origin"] is a Pt2OriginPtr. What a module
/// has of its own comes first; this only fills in what is lost on the way, as long as it fits.
struct Pt2Origin {
  TreeSpec in_spec, out_spec;  ///< what the texts mean
  std::string in_spec_text, out_spec_text;
  schema::Map<std::vector<std::string>> namedtuple_fields;
  std::vector<std::string> forward_arg_names;
  std::vector<std::string> guards_code;
  std::vector<std::string> modules;  ///< qualified names in the module call graph
  std::vector<std::string> verifiers;
  std::size_t num_inputs = 0;  ///< of the user, flattened
};
using Pt2OriginPtr = std::shared_ptr<const Pt2Origin>;

inline constexpr const char* kPt2OriginKey = "pt2_origin";

}  // namespace fx::io
