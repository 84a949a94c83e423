#include "fx/base/error.h"

#include <algorithm>
#include <array>

namespace fx {
namespace {

constexpr std::array kErrorTable = {
#define FX_ERROR_CODE(kind, name, number, advice) ErrorInfo{ErrorCode::name, #kind, #name, advice},
#include "fx/base/error_codes.def"
#undef FX_ERROR_CODE
};

constexpr bool sorted_by_number() {
  for (std::size_t i = 1; i < kErrorTable.size(); ++i)
    if (kErrorTable[i - 1].code >= kErrorTable[i].code) return false;
  return true;
}
static_assert(sorted_by_number(), "error_codes.def must be sorted by number");

std::string full_message(ErrorCode code, std::string_view text) {
  std::string out(text);
  if (!out.empty() && out.back() != '.' && out.back() != '!' && out.back() != '\n') out += '.';
  out += " To mend it: ";
  out += error_info(code).advice;
  out += ". [FX" + std::to_string(static_cast<int>(code)) + "]";
  return out;
}

}  // namespace

const ErrorInfo& error_info(ErrorCode code) {
  auto it = std::lower_bound(kErrorTable.begin(), kErrorTable.end(), code,
                             [](const ErrorInfo& row, ErrorCode c) { return row.code < c; });
  FX_ASSERT(it != kErrorTable.end() && it->code == code, "unknown error code");
  return *it;
}

std::size_t num_error_codes() { return kErrorTable.size(); }
const ErrorInfo& error_info_at(std::size_t index) { return kErrorTable.at(index); }

Error::Error(ErrorCode code, std::string_view text)
    : std::runtime_error(full_message(code, text)), code_(code), text_(text) {}

namespace detail {
void assert_failed(const char* condition, const char* file, int line, std::string_view message) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + std::string(message) +
                      " (" + condition + "); this is a bug in fxcpp, please report it");
}
}  // namespace detail

}  // namespace fx
