#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/io/export_schema.h"
#include "fx/io/pt2_archive.h"

namespace fx::io {

/// The scalar type that a number of the schema stands for.
at::ScalarType to_scalar_type(schema::ScalarType type);
/// The layout; nothing for those that only have a meaning inside LibTorch.
std::optional<at::Layout> to_layout(schema::Layout layout);
at::MemoryFormat to_memory_format(schema::MemoryFormat format);
/// The inverses; nothing for what the schema does not have.
std::optional<schema::ScalarType> from_scalar_type(at::ScalarType type);
std::optional<schema::Layout> from_layout(at::Layout layout);
std::optional<schema::MemoryFormat> from_memory_format(at::MemoryFormat format);
schema::Device from_device(at::Device device);
/// @throws ImportError kBadSchema for a device that LibTorch does not know; `label` starts the
///   message.
at::Device to_device(const schema::Device& device, const std::string& label);

/// A parameter, buffer or constant of an archive.
struct Weight {
  std::string name;  ///< qualified, "layer1.0.conv1.weight"
  at::Tensor tensor;
  bool is_param = false;
  bool requires_grad = false;  ///< as at export; the tensor itself does not require gradients
};

/// All tensors of one folder of an archive, in file order.
///
/// Zero copy: the tensors lie in the mapped file and keep it mapped; writing to them changes this
/// process's copy of a page, never the file. Records that lie misaligned for their type are copied.
/// Names that share a record share storage, as they did in Python.
///
/// Before a tensor is made: the record exists and has a whole number of elements; sizes, strides
/// and offset are known, not negative and reach no byte outside it; one record has one type; bools
/// are 0 or 1; layout is strided and device is the CPU.
class WeightReader {
 public:
  explicit WeightReader(const Pt2Archive& archive) : archive_(archive) {}

  /// Reads what the config record `config_name` lists; its records are in `folder`
  /// ("data/weights/").
  /// @throws ImportError kMissingRecord, kBadSchema, kPickledWeight, kBadWeight, kUnsupported.
  ///   O(entries), plus O(bytes) for bools and misaligned records.
  std::vector<Weight> read(const std::string& config_name, const std::string& folder);

 private:
  struct Record {
    at::Tensor flat;  // all elements of the record, one-dimensional
    at::ScalarType type{};
    std::string first_user;
  };

  Weight read_weight(const std::string& name, const schema::PayloadMeta& meta,
                     const std::string& folder, const std::string& label);
  const Record& record(const std::string& record_name, at::ScalarType type,
                       const std::string& weight_name, const std::string& label);

  const Pt2Archive& archive_;
  std::unordered_map<std::string, Record> records_;
};

}  // namespace fx::io
