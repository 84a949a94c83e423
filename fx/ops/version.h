#pragma once

#include <string>

namespace fx {

/// The version of fxcpp that is loaded, "0.1.0".
std::string version();
/// The LibTorch that it was compiled with, "2.15.0".
std::string compiled_torch_version();
/// The LibTorch that is loaded, as it says itself; empty if it does not say.
std::string loaded_torch_version();
/// The compiler that it was compiled by, "g++ 12.2.0".
std::string compiler_version();
/// All in a line, for reports: "fxcpp 0.1.0 (LibTorch 2.15.0, AVX512, g++ 12.2.0)".
std::string version_line();

}  // namespace fx
