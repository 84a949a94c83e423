#pragma once

// Internal: what a GraphModule has besides its graph and tensors, as JSON, both ways.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/json.h"
#include "fx/io/json_writer.h"
#include "fx/io/pt2_origin.h"
#include "fx/io/value_meta.h"

namespace fx::io {

/// Deepest nesting of structured inputs, and of modules inside one another, in an archive.
inline constexpr std::size_t kMaxSavedDepth = 100;

/// @throws ImportError kNotSavable for text that is not UTF-8; `what` starts the message.
void write_text(JsonWriter& json, std::string_view text, const std::string& what);

/// @throws ImportError kNotSavable for a structure that is too deep.
void write_spec(JsonWriter& json, const TreeSpec& spec);
TreeSpec read_spec(const JsonValue& json);

void write_guards(JsonWriter& json, const std::vector<InputGuard>& guards);
std::vector<InputGuard> read_guards(const JsonValue& json);

/// Entries of types that an archive holds; the others are left out.
void write_meta(JsonWriter& json, const Meta& meta);
void read_meta(const JsonValue& json, Meta& meta);

/// What an exported program says besides (texts of its tree specs, guards, names of arguments), for
/// fx::save_pt2.
void write_origin(JsonWriter& json, const Pt2Origin& origin);
/// `label` starts error messages. @throws ImportError kBadTreespec
Pt2OriginPtr read_origin(const JsonValue& json, const std::string& label);

/// "val" of the nodes that have one, by name.
void write_values(JsonWriter& json, const Graph& graph);
void read_values(const JsonValue& json, Graph& graph, const std::string& label);

/// A dtype as "float32".
void write_dtype(JsonWriter& json, at::ScalarType dtype);
at::ScalarType read_dtype(const JsonValue& json);

}  // namespace fx::io
