#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>

/// NumPy's array files (.npy, format versions 1 to 3).
namespace fx::io {

/// The array in the file at `path` as a contiguous CPU tensor that owns its memory.
///
/// Element types: bool, u1 u2 u4 u8, i1 i2 i4 i8, f2 f4 f8, c8 c16, little endian; V2 is read as
/// bfloat16, since that is how ml_dtypes' bfloat16 arrays are saved. Fortran order is converted.
/// Never unpickles. O(size).
/// @throws ImportError kOpenFailed, kBadNpy (malformed), kNpyDtype (a type torch lacks)
at::Tensor read_npy(const std::string& path);

/// The same from memory; `label` names the source in messages.
at::Tensor read_npy(std::span<const std::byte> bytes, const std::string& label);

/// Writes `tensor` (any device, dense) so that numpy.load reads it; bfloat16 becomes V2, as
/// ml_dtypes writes it. The file appears whole or not at all. O(size).
/// @throws ImportError kWriteFailed, kNpyDtype (float8, complex32, quantised and sparse tensors)
void write_npy(const std::string& path, const at::Tensor& tensor);

}  // namespace fx::io
