#include "fx/ops/version.h"

#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <string_view>

namespace fx {

std::string version() { return FXCPP_VERSION; }

std::string compiled_torch_version() {
  return std::to_string(TORCH_VERSION_MAJOR) + "." + std::to_string(TORCH_VERSION_MINOR) + "." +
         std::to_string(TORCH_VERSION_PATCH);
}

std::string loaded_torch_version() {
  const std::string config = at::show_config();
  constexpr std::string_view kKey = "TORCH_VERSION=";
  const std::size_t start = config.find(kKey);
  if (start == std::string::npos) return {};
  const std::size_t from = start + kKey.size();
  return config.substr(from, config.find_first_of(",\n ", from) - from);
}

std::string compiler_version() {
#if defined(__clang__)
  return "clang++ " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) +
         "." + std::to_string(__clang_patchlevel__);
#else
  return "g++ " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

std::string version_line() {
  return "fxcpp " + version() + " (LibTorch " + loaded_torch_version() + ", " +
         at::get_cpu_capability() + ", " + compiler_version() + ")";
}

}  // namespace fx
