#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/io/mapped_file.h"

namespace fx {

/// Tensors by name, as GraphModule::state_dict() gives them.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// What a safetensors file holds, in the order of its header.
struct Safetensors {
  NamedTensors tensors;
  /// "__metadata__": free text by key.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Reads a safetensors file (huggingface's format of weights). The tensors lie in the mapped file,
/// which stays mapped as long as one of them lives; writing to them changes this process's memory
/// only. Nothing is read before it is used, but the header and bools.
///
/// Strict, as the format asks for: a header of at most 100 MB that is one JSON object without
/// duplicate keys, known dtypes, sizes whose product fits, ranges that have the size the shape asks
/// for and that cover the data without overlaps or holes, bools that are 0 or 1.
/// @throws ImportError kOpenFailed, kBadSafetensors naming the tensor. O(header).
Safetensors load_safetensors(const std::string& path, io::FileAccess access = io::FileAccess::kMap);

/// Writes tensors (any device, dense) so that every reader of safetensors reads them. The bytes are
/// those that the reference library writes for the same tensors. Names that share memory get a copy
/// each. The file appears whole or not at all.
/// @throws ImportError kBadSafetensors for a tensor or name without form (sparse, quantized,
///   complex128, a name that is twice there or not UTF-8), kWriteFailed. O(bytes).
void save_safetensors(const NamedTensors& tensors, const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {});

/// Makes the parameters and buffers of `module` those of `state`, without a copy: the tensors of
/// the module stay the objects they are (optimisers and other holders keep them) and get the
/// memory of the new ones. The graph is not touched. (torch: load_state_dict(..., assign=True);
/// GraphModule::load_state_dict copies the values instead.)
///
/// Names of the module that are one tensor, or share memory as a whole, are satisfied by any of
/// them, since safetensors files often hold only one.
/// @throws GraphError kMissingAttribute listing missing and unexpected keys, if `strict`;
///   RunError kShapeMismatch listing what differs in shape or dtype. The module is unchanged then.
void assign_state_dict(GraphModule& module, const NamedTensors& state, bool strict = true);

namespace io {

/// load_safetensors from memory that the caller keeps; tensors are copies. `label` names it in
/// messages.
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& label);

}  // namespace io
}  // namespace fx
