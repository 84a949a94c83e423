// Any bytes as an expression: an ImportError, or an expression whose text reads back as itself.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "fx/base/error.h"
#include "fx/io/symbolic_expr.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const fx::io::SymbolicExpr expr = fx::io::parse_symbolic_expr(text, "fuzz");
    const std::string printed = expr.str();
    // Text may grow by printing; beyond the limit it is not read again.
    if (printed.size() <= fx::io::kMaxExpressionBytes &&
        fx::io::parse_symbolic_expr(printed, "fuzz").str() != printed)
      std::abort();
    expr.evaluate([](std::string_view name) -> std::optional<std::int64_t> {
      return name.size() % 2 == 0 ? std::optional<std::int64_t>(INT64_MIN) : std::nullopt;
    });
  } catch (const fx::ImportError&) {
  }
  return 0;
}
