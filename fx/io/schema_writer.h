#pragma once

// Internal: from the structs of export_schema.h to JSON.

#include <string>

#include "fx/io/export_schema.h"

namespace fx::io::schema {

/// The text of models/<name>.json. The inverse of parse_exported_program, with the keys and the
/// order of keys of torch's own writer.
/// @throws ImportError kNotExportable for text that is not UTF-8. O(size).
std::string to_json(const ExportedProgram& program);

/// The text of <name>_weights_config.json. The inverse of parse_payload_config.
std::string to_json(const PayloadConfig& config);

}  // namespace fx::io::schema
