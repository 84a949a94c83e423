#include "fx/io/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "fx/base/error.h"
#include "fx/graph/text_literals.h"
#include "fx/io/mapped_tensors.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

using schema::PayloadMeta;
using schema::SymInt;
using schema::TensorMeta;

[[noreturn]] void fail(ErrorCode code, const std::string& label, const std::string& what) {
  throw ImportError(code, label + ": " + what);
}

std::int64_t known(const SymInt& value, const std::string& label, const char* what) {
  if (!value.is_known())
    fail(ErrorCode::kBadWeight, label, std::string("a ") + what + " is symbolic");
  return value.value;
}

TensorGeometry geometry_of(const TensorMeta& meta, const std::string& label) {
  TensorGeometry geometry;
  geometry.offset = known(meta.storage_offset, label, "storage offset");
  for (const SymInt& size : meta.sizes) geometry.sizes.push_back(known(size, label, "size"));
  for (const SymInt& stride : meta.strides)
    geometry.strides.push_back(known(stride, label, "stride"));
  return geometry;
}

}  // namespace

at::ScalarType to_scalar_type(schema::ScalarType type) {
  using From = schema::ScalarType;
  switch (type) {
    case From::kByte:
      return at::kByte;
    case From::kChar:
      return at::kChar;
    case From::kShort:
      return at::kShort;
    case From::kInt:
      return at::kInt;
    case From::kLong:
      return at::kLong;
    case From::kHalf:
      return at::kHalf;
    case From::kFloat:
      return at::kFloat;
    case From::kDouble:
      return at::kDouble;
    case From::kComplexHalf:
      return at::kComplexHalf;
    case From::kComplexFloat:
      return at::kComplexFloat;
    case From::kComplexDouble:
      return at::kComplexDouble;
    case From::kBool:
      return at::kBool;
    case From::kBFloat16:
      return at::kBFloat16;
    case From::kUInt16:
      return at::kUInt16;
    case From::kFloat8E4M3FN:
      return at::kFloat8_e4m3fn;
    case From::kFloat8E5M2:
      return at::kFloat8_e5m2;
    case From::kFloat8E4M3FNUZ:
      return at::kFloat8_e4m3fnuz;
    case From::kFloat8E5M2FNUZ:
      return at::kFloat8_e5m2fnuz;
    case From::kFloat8E8M0FNU:
      return at::kFloat8_e8m0fnu;
    case From::kUInt32:
      return at::kUInt32;
    case From::kUInt64:
      return at::kUInt64;
  }
  FX_ASSERT(false, "unvalidated scalar type");
  return at::kFloat;
}

std::optional<at::Layout> to_layout(schema::Layout layout) {
  using From = schema::Layout;
  switch (layout) {
    case From::kSparseCoo:
      return at::kSparse;
    case From::kSparseCsr:
      return at::kSparseCsr;
    case From::kSparseCsc:
      return at::kSparseCsc;
    case From::kSparseBsr:
      return at::kSparseBsr;
    case From::kSparseBsc:
      return at::kSparseBsc;
    case From::kStrided:
      return at::kStrided;
    case From::kMkldnn:
      break;
  }
  return std::nullopt;
}

at::MemoryFormat to_memory_format(schema::MemoryFormat format) {
  using From = schema::MemoryFormat;
  switch (format) {
    case From::kContiguous:
      return at::MemoryFormat::Contiguous;
    case From::kChannelsLast:
      return at::MemoryFormat::ChannelsLast;
    case From::kChannelsLast3d:
      return at::MemoryFormat::ChannelsLast3d;
    case From::kPreserve:
      break;
  }
  return at::MemoryFormat::Preserve;
}

namespace {

/// The enumerator from `first` to `last` that `convert` turns into `value`.
template <typename Enum, typename Value, typename Convert>
std::optional<Enum> find_enumerator(Enum first, Enum last, const Value& value, Convert&& convert) {
  for (auto i = static_cast<int>(first); i <= static_cast<int>(last); ++i)
    if (convert(static_cast<Enum>(i)) == value) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::optional<schema::ScalarType> from_scalar_type(at::ScalarType type) {
  using Type = schema::ScalarType;
  if (auto found = find_enumerator(Type::kByte, Type::kBFloat16, type, to_scalar_type))
    return found;
  return find_enumerator(Type::kUInt16, Type::kUInt64, type, to_scalar_type);
}

std::optional<schema::Layout> from_layout(at::Layout layout) {
  return find_enumerator(schema::Layout::kSparseCoo, schema::Layout::kStrided,
                         std::optional(layout), to_layout);
}

std::optional<schema::MemoryFormat> from_memory_format(at::MemoryFormat format) {
  return find_enumerator(schema::MemoryFormat::kContiguous, schema::MemoryFormat::kPreserve, format,
                         to_memory_format);
}

schema::Device from_device(at::Device device) {
  return {at::DeviceTypeName(device.type(), /*lower_case=*/true),
          device.has_index() ? std::optional<std::int64_t>(device.index()) : std::nullopt};
}

at::Device to_device(const schema::Device& device, const std::string& label) {
  static constexpr std::array<std::pair<const char*, at::DeviceType>, 8> kDevices = {
      {{"cpu", at::DeviceType::CPU},
       {"cuda", at::DeviceType::CUDA},
       {"meta", at::DeviceType::Meta},
       {"mps", at::DeviceType::MPS},
       {"xpu", at::DeviceType::XPU},
       {"hpu", at::DeviceType::HPU},
       {"mtia", at::DeviceType::MTIA},
       {"privateuseone", at::DeviceType::PrivateUse1}}};
  for (auto [name, type] : kDevices) {
    if (device.type != name) continue;
    const std::int64_t index = device.index.value_or(-1);
    if (text::is_device_index(type, index))
      return at::Device(type, static_cast<c10::DeviceIndex>(index));
    fail(ErrorCode::kBadSchema, label,
         "there is no device " + device.type + ":" + std::to_string(index));
  }
  fail(ErrorCode::kBadSchema, label, "unknown device " + shown(device.type));
}

const WeightReader::Record& WeightReader::record(const std::string& record_name,
                                                 at::ScalarType type,
                                                 const std::string& weight_name,
                                                 const std::string& label) {
  auto [it, inserted] = records_.try_emplace(record_name);
  Record& record = it->second;
  if (!inserted) {
    if (record.type != type)
      fail(ErrorCode::kBadWeight, label,
           "its record " + shown(record_name) + " holds " + at::toString(record.type) +
               " elements for " + shown(record.first_user) + " and " + at::toString(type) +
               " elements here");
    return record;
  }
  const ZipEntry& entry = archive_.get(record_name, label);
  std::span<const std::byte> bytes = archive_.weight(entry);
  const std::size_t element = at::elementSize(type);
  if (bytes.size() % element != 0)
    fail(ErrorCode::kBadWeight, label,
         "its record has " + std::to_string(bytes.size()) + " bytes, no multiple of the " +
             std::to_string(element) + " bytes of a " + at::toString(type) + " element");
  if (type == at::kBool && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
    fail(ErrorCode::kBadWeight, label, "it holds bools that are neither 0 nor 1");
  record = {flat_tensor(archive_.file(), bytes, type), type, weight_name};
  return record;
}

Weight WeightReader::read_weight(const std::string& name, const PayloadMeta& meta,
                                 const std::string& folder, const std::string& label) {
  if (meta.path_name.starts_with("custom_obj_") || meta.path_name.starts_with("opaque_obj_"))
    fail(ErrorCode::kUnsupported, label,
         "it is a custom object (" + shown(meta.path_name) + "), only tensors can be read");
  if (meta.use_pickle)
    fail(ErrorCode::kPickledWeight, label,
         "it is stored as a Python pickle (torch does so for tensor subclasses), which is never "
         "opened");
  if (!meta.tensor_meta) fail(ErrorCode::kBadWeight, label, "it has no tensor_meta");
  const TensorMeta& tensor = *meta.tensor_meta;
  if (tensor.layout != schema::Layout::kStrided)
    fail(ErrorCode::kUnsupported, label, "its layout is sparse, dense tensors are wanted");
  at::Device device = to_device(tensor.device, label);
  if (!device.is_cpu())
    fail(ErrorCode::kUnsupported, label,
         "it was exported on device " + device.str() +
             "; move the module to the CPU before exporting");
  at::ScalarType type = to_scalar_type(tensor.dtype);
  if (tensor.requires_grad && !at::isFloatingType(type) && !at::isComplexType(type))
    fail(ErrorCode::kBadWeight, label,
         std::string("requires_grad on a tensor of type ") + at::toString(type));

  const Record& record = this->record(folder + meta.path_name, type, name, label);
  const TensorGeometry geometry = geometry_of(tensor, label);
  check_geometry(geometry, static_cast<std::uint64_t>(record.flat.numel()), label);
  // set_ and not as_strided: tensors with one storage, none of them a view of another.
  at::Tensor result = at::empty({0}, record.flat.options());
  result.set_(record.flat.storage(), geometry.offset, geometry.sizes, geometry.strides);
  return {name, std::move(result), meta.is_param, tensor.requires_grad};
}

std::vector<Weight> WeightReader::read(const std::string& config_name, const std::string& folder) {
  const std::string label = shown(archive_.path()) + ": " + config_name;
  schema::PayloadConfig config = schema::parse_payload_config(archive_.text(config_name), label);
  std::vector<Weight> weights;
  weights.reserve(config.size());
  for (const auto& [name, meta] : config)
    weights.push_back(read_weight(name, meta, folder, label + ": " + shown(name)));
  return weights;
}

}  // namespace fx::io
