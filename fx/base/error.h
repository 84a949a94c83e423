#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

/// Errors. A user error is an fx::Error with a code; a bug in this library is an fx::InternalError.
namespace fx {

/// The code of a user error; the table with numbers and advice is error_codes.def.
enum class ErrorCode : std::uint16_t {
#define FX_ERROR_CODE(kind, name, number, advice) name = number,
#include "fx/base/error_codes.def"
#undef FX_ERROR_CODE
};

/// What is known of a code. All views are static.
struct ErrorInfo {
  ErrorCode code;
  std::string_view kind;    ///< "Graph", "Lint", "Trace", ...
  std::string_view name;    ///< enumerator, "kEraseWithUsers"
  std::string_view advice;  ///< what to do
};

/// The row of `code` in the table. O(log n).
const ErrorInfo& error_info(ErrorCode code);

/// Number of codes, and the i-th in ascending order; for documentation and tests.
std::size_t num_error_codes();
const ErrorInfo& error_info_at(std::size_t index);

/// Base of all user errors. what() is one paragraph: what was found and wanted, then the advice and
/// the code, for example "... it still had 1 users in the graph: {mul}! To mend it: replace the
/// uses first (replace_all_uses_with), then erase. [FX103]".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string_view text);

  ErrorCode code() const noexcept { return code_; }
  /// The message without advice and code.
  const std::string& text() const noexcept { return text_; }

 private:
  ErrorCode code_;
  std::string text_;
};

#define FX_ERROR_CLASS(Name)                                           \
  class Name : public Error {                                          \
   public:                                                             \
    Name(ErrorCode code, std::string_view text) : Error(code, text) {} \
  }

FX_ERROR_CLASS(GraphError);    ///< building and editing a graph
FX_ERROR_CLASS(LintError);     ///< Graph::lint found a broken rule
FX_ERROR_CLASS(TraceError);    ///< capture (torch.fx.proxy.TraceError)
FX_ERROR_CLASS(RunError);      ///< interpreting and executing
FX_ERROR_CLASS(ImportError);   ///< reading files
FX_ERROR_CLASS(PassError);     ///< transformations
FX_ERROR_CLASS(CompileError);  ///< code generation
FX_ERROR_CLASS(UsageError);    ///< command line and what is named on it
#undef FX_ERROR_CLASS

/// Reading the .fx text form. The text names the place, what was wanted and found, and shows the
/// line.
class ParseError : public Error {
 public:
  ParseError(ErrorCode code, std::string_view text, std::size_t line, std::size_t column)
      : Error(code, text), line_(line), column_(column) {}

  /// 1-based; the column counts bytes.
  std::size_t line() const noexcept { return line_; }
  std::size_t column() const noexcept { return column_; }

 private:
  std::size_t line_;
  std::size_t column_;
};

/// A broken invariant of this library: a bug to report, never the user's fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void assert_failed(const char* condition, const char* file, int line,
                                std::string_view message);
}  // namespace detail

}  // namespace fx

/// Checks an invariant of this library; throws fx::InternalError with file and line.
#define FX_ASSERT(condition, message)                                         \
  do {                                                                        \
    if (!(condition)) [[unlikely]]                                            \
      ::fx::detail::assert_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
