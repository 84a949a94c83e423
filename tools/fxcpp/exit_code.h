#pragma once

#include <exception>
#include <string>

namespace fx::cli {

/// What the tool's exit status says. The numbers are part of the interface (docs/cli.md).
enum class ExitCode : int {
  kOk = 0,
  kMismatch = 1,     ///< a comparison failed
  kUsage = 2,        ///< the command line, or inputs that do not fit the model
  kUnsupported = 3,  ///< a sound model that cannot run here
  kFile = 4,         ///< a file that cannot be read or written
  kInternal = 5,     ///< a bug
};

/// The exit code for an error that reached the top of the program.
ExitCode exit_code_of(const std::exception& error);

/// The paragraph for stderr: the library's own message for user errors; for anything else what()
/// without a stack trace, and where to report it.
std::string describe_error(const std::exception& error);

}  // namespace fx::cli
