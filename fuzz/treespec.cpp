// Any bytes as a tree specification: an ImportError, or a tree.
#include <cstdint>
#include <string_view>

#include "fuzz/json_mutator.h"
#include "fx/base/error.h"
#include "fx/io/treespec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    fx::io::treespec_str(fx::io::parse_treespec(text, "fuzz", {{"zoo.Point", {"x", "y"}}}));
  } catch (const fx::ImportError&) {
  }
  return 0;
}
