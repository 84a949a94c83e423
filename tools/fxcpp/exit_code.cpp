#include "tools/fxcpp/exit_code.h"

#include <c10/util/Exception.h>

#include <new>

#include "fx/base/error.h"

namespace fx::cli {
namespace {

/// By kind of error, the few codes that differ from their kind first.
ExitCode exit_code_of(const Error& error) {
  switch (error.code()) {
    // A sound file, with something in it that this version does not run.
    case ErrorCode::kUnsupportedVersion:
    case ErrorCode::kPickledWeight:
    case ErrorCode::kUnsupported:
    case ErrorCode::kForbiddenOperator:
    case ErrorCode::kBadTreespec:
      return ExitCode::kUnsupported;
    // Inputs that do not fit the model are named on the command line.
    case ErrorCode::kMissingInput:
    case ErrorCode::kExtraInput:
    case ErrorCode::kUnknownInput:
    case ErrorCode::kShapeMismatch:
    case ErrorCode::kUnknownPass:
    case ErrorCode::kBadPassOption:
    case ErrorCode::kBackendMissing:
      return ExitCode::kUsage;
    default:
      break;
  }
  if (dynamic_cast<const UsageError*>(&error)) return ExitCode::kUsage;
  if (dynamic_cast<const ImportError*>(&error)) return ExitCode::kFile;
  if (dynamic_cast<const ParseError*>(&error)) return ExitCode::kFile;
  if (dynamic_cast<const RunError*>(&error)) return ExitCode::kUnsupported;
  return ExitCode::kInternal;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* user = dynamic_cast<const Error*>(&error)) return exit_code_of(*user);
  return ExitCode::kInternal;
}

std::string describe_error(const std::exception& error) {
  if (const auto* user = dynamic_cast<const Error*>(&error)) {
    std::string message = user->what();
    // A text that shows its place with a caret gets the advice on a line of its own.
    const std::string& text = user->text();
    if (text.find('\n') != std::string::npos) {
      const ErrorInfo& info = error_info(user->code());
      message = text + (text.ends_with('\n') ? "" : "\n") +
                "To mend it: " + std::string(info.advice) + ". [FX" +
                std::to_string(static_cast<int>(info.code)) + "]";
    }
    return message;
  }
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  std::string what = error.what();
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    what = torch->what_without_backtrace();
  return "internal error: " + what +
         " This is a bug in fxcpp: please report it with the command line and the output of "
         "`fxcpp doctor`.";
}

}  // namespace fx::cli
