// Any bytes as an array file: an ImportError, or a tensor no larger than the file.
#include <ATen/ATen.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "fx/base/error.h"
#include "fx/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const at::Tensor tensor = fx::io::read_npy(std::as_bytes(std::span(data, size)), "fuzz");
    if (tensor.nbytes() > size) std::abort();
  } catch (const fx::ImportError&) {
  }
  return 0;
}
