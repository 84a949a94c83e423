// Any bytes as a safetensors file: an ImportError, or tensors that are no larger than the file.
#include <ATen/ATen.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "fx/base/error.h"
#include "fx/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = fx::io::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
    std::size_t total = 0;
    for (const auto& [name, tensor] : file.tensors) total += tensor.nbytes();
    if (total > size) std::abort();
  } catch (const fx::ImportError&) {
  }
  return 0;
}
