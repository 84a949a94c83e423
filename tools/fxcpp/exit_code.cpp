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
    // Code generation has no form for something in the graph.
    case ErrorCode::kNotExpressible:
    case ErrorCode::kUnknownModuleType:
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
  // A .fx file whose text is sound, but not its graph.
  if (dynamic_cast<const LintError*>(&error)) return ExitCode::kFile;
  if (dynamic_cast<const RunError*>(&error)) return ExitCode::kUnsupported;
  return ExitCode::kInternal;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  // A pass that fails, since a node of the model does, is no fault of the pass.
  if (const auto* pass = dynamic_cast<const PassError*>(&error);
      pass != nullptr && pass->code() == ErrorCode::kPassFailed) {
    try {
      std::rethrow_if_nested(error);
    } catch (const std::exception& cause) {
      return exit_code_of(cause);
    } catch (...) {
      return ExitCode::kInternal;
    }
  }
  if (const auto* user = dynamic_cast<const Error*>(&error)) return exit_code_of(*user);
  return ExitCode::kInternal;
}

namespace {

/// The advice for an error, or for what caused it when the error itself only says where.
std::string advice_for(const Error& error) {
  const ErrorCode code = error.code();
  if (code != ErrorCode::kNodeFailed && code != ErrorCode::kPassFailed)
    return std::string(error_info(code).advice);
  try {
    std::rethrow_if_nested(error);
  } catch (const Error& cause) {
    return advice_for(cause);
  } catch (...) {
    // LibTorch said why; it has no advice.
  }
  return "look at what the node that is named was given";
}

}  // namespace

std::string describe_error(const std::exception& error) {
  if (const auto* user = dynamic_cast<const Error*>(&error)) {
    std::string text = user->text();
    if (text.find('\n') == std::string::npos) return user->what();
    // A text of several lines gets the advice on a line of its own, and stays one paragraph.
    for (std::size_t at; (at = text.find("\n\n")) != std::string::npos;) text.erase(at, 1);
    return text + (text.ends_with('\n') ? "" : "\n") + "To mend it: " + advice_for(*user) +
           ". [FX" + std::to_string(static_cast<int>(user->code())) + "]";
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
