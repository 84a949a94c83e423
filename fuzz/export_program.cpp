// Any bytes as models/<name>.json: an ImportError, or a program.
#include <cstdint>
#include <string>

#include "fuzz/json_mutator.h"
#include "fx/base/error.h"
#include "fx/io/export_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    fx::io::schema::parse_exported_program(text, "fuzz");
  } catch (const fx::ImportError&) {
  }
  try {
    fx::io::schema::parse_payload_config(text, "fuzz");
  } catch (const fx::ImportError&) {
  }
  return 0;
}
