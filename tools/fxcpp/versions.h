#pragma once

#include <string>

namespace fx::cli {

/// The version of fxcpp.
std::string tool_version();
/// The LibTorch that this program was compiled with, "2.15.0".
std::string compiled_torch_version();
/// The LibTorch that is loaded, as it says itself; empty if it does not say.
std::string loaded_torch_version();
/// "g++ 12.2.0".
std::string compiler_version();
/// "fxcpp 0.1.0 (LibTorch 2.15.0, AVX512, g++ 12.2.0)".
std::string version_line();

}  // namespace fx::cli
