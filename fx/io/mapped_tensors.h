#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fx/io/mapped_file.h"

namespace fx::io {

/// Where the elements of a tensor lie in its memory, in elements.
struct TensorGeometry {
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
};

/// Checks that nothing is negative and that every element lies among `elements`, without overflow
/// on the way. `label` starts messages. @throws ImportError kBadWeight. O(dimensions).
void check_geometry(const TensorGeometry& geometry, std::uint64_t elements,
                    const std::string& label);

/// `bytes` of a file, a whole number of elements, as a tensor of one dimension: it lies in the file
/// and keeps it mapped; it is a copy if the bytes are misaligned for the type.
at::Tensor flat_tensor(const std::shared_ptr<const MappedFile>& file,
                       std::span<const std::byte> bytes, at::ScalarType type);

}  // namespace fx::io
