// Any bytes: a ParseError, or a graph whose text reads back as the same graph.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fx/base/error.h"
#include "fx/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (bool any_order : {false, true}) {
    try {
      auto graph = fx::parse_text(input, {.any_order = any_order});
      const std::string text = fx::to_text(*graph, {.meta = true});
      auto again = fx::parse_text(text, {.any_order = any_order});
      if (fx::to_text(*again, {.meta = true}) != text || !again->same_structure(*graph) ||
          again->structural_hash() != graph->structural_hash())
        std::abort();
    } catch (const fx::ParseError&) {
    }
  }
  return 0;
}
