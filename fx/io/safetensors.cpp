#include "fx/io/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "fx/base/error.h"
#include "fx/io/atomic_file.h"
#include "fx/io/json.h"
#include "fx/io/json_writer.h"
#include "fx/io/mapped_tensors.h"
#include "fx/io/shown.h"

// The file: the length of the header (8 bytes, little endian), the header (JSON, may end with
// spaces), the data. The header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
// 24]}, ...}, offsets from the end of the header.

namespace fx {
namespace io {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kMaxName = 1000;
constexpr std::size_t kMaxRank = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

struct DtypeRow {
  std::string_view name;
  at::ScalarType type;
};
/// From the smallest alignment to the largest, the order in which the reference library sorts.
constexpr std::array kDtypes = {
    DtypeRow{"BOOL", at::kBool},
    DtypeRow{"U8", at::kByte},
    DtypeRow{"I8", at::kChar},
    DtypeRow{"F8_E5M2", at::kFloat8_e5m2},
    DtypeRow{"F8_E4M3", at::kFloat8_e4m3fn},
    DtypeRow{"F8_E8M0", at::kFloat8_e8m0fnu},
    DtypeRow{"I16", at::kShort},
    DtypeRow{"U16", at::kUInt16},
    DtypeRow{"F16", at::kHalf},
    DtypeRow{"BF16", at::kBFloat16},
    DtypeRow{"I32", at::kInt},
    DtypeRow{"U32", at::kUInt32},
    DtypeRow{"F32", at::kFloat},
    DtypeRow{"C64", at::kComplexFloat},
    DtypeRow{"F64", at::kDouble},
    DtypeRow{"I64", at::kLong},
    DtypeRow{"U64", at::kUInt64},
};

[[noreturn]] void fail(const std::string& label, const std::string& what) {
  throw ImportError(ErrorCode::kBadSafetensors, label + ": " + what);
}

/// One tensor of the header.
struct Entry {
  std::string name;
  at::ScalarType type{};
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, const std::string& label)
      : bytes_(bytes), label_(label) {}

  void read() {
    if (bytes_.size() < kLengthBytes)
      fail(label_, "a file of " + std::to_string(bytes_.size()) + " bytes has no header");
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), kLengthBytes);
    if (length > kMaxHeader)
      fail(label_, "a header of " + std::to_string(length) + " bytes, at most " +
                       std::to_string(kMaxHeader) + " are allowed");
    if (length > bytes_.size() - kLengthBytes)
      fail(label_, "a header of " + std::to_string(length) + " bytes in a file of " +
                       std::to_string(bytes_.size()));
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes;
    if (length == 0 || *text != '{') fail(label_, "the header does not start with '{'");
    data = bytes_.subspan(kLengthBytes + length);
    const JsonDocument document(std::string(text, length), label_, ErrorCode::kBadSafetensors,
                                ErrorCode::kBadSafetensors, kHeaderDepth);
    std::set<std::string_view> names;
    document.root().for_each_member([&](std::string_view name, const JsonValue& value) {
      if (!names.insert(name).second) value.fail("the key " + shown(name) + " occurs twice");
      if (name == kMetadataKey) return read_metadata(value);
      if (name.size() > kMaxName)
        value.fail("a name of " + std::to_string(name.size()) + " bytes, at most " +
                   std::to_string(kMaxName) + " are allowed");
      if (has_control_characters(name))
        value.fail("the name " + shown(name) + " holds control characters");
      read_entry(std::string(name), value);
    });
    if (!document.unknown_keys().empty())
      fail(label_, "the key " + document.unknown_keys().front() + " is unknown");
    check_ranges();
  }

  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::span<const std::byte> data;

 private:
  static constexpr std::size_t kHeaderDepth = 4;

  void read_metadata(const JsonValue& value) {
    std::set<std::string_view> keys;
    value.for_each_member([&](std::string_view key, const JsonValue& item) {
      if (!keys.insert(key).second) item.fail("the key " + shown(key) + " occurs twice");
      metadata.emplace_back(key, item.to_string());
    });
  }

  void read_entry(std::string name, const JsonValue& value) {
    JsonObject object(value, {"dtype", "shape", "data_offsets"});
    Entry entry{std::move(name), {}, {}, 0, 0};
    const std::string_view dtype = object.at("dtype").to_string();
    auto row = std::ranges::find(kDtypes, dtype, &DtypeRow::name);
    if (row == kDtypes.end()) object.at("dtype").fail("unknown dtype " + shown(dtype));
    entry.type = row->type;
    std::uint64_t bytes = at::elementSize(entry.type);
    bool overflow = false;
    object.at("shape").for_each([&](const JsonValue& size) {
      entry.shape.push_back(size.to_int(0, std::numeric_limits<std::int64_t>::max()));
      overflow = overflow || __builtin_mul_overflow(
                                 bytes, static_cast<std::uint64_t>(entry.shape.back()), &bytes);
    });
    if (entry.shape.size() > kMaxRank)
      object.at("shape").fail(std::to_string(entry.shape.size()) + " dimensions");
    // Sizes that multiply to more than fits are refused even next to a zero: no reader has to
    // compute with them.
    if (overflow || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      object.at("shape").fail("the sizes multiply to more than 63 bits hold");
    std::vector<std::uint64_t> offsets;
    object.at("data_offsets").for_each([&](const JsonValue& offset) {
      offsets.push_back(
          static_cast<std::uint64_t>(offset.to_int(0, std::numeric_limits<std::int64_t>::max())));
    });
    if (offsets.size() != 2) object.at("data_offsets").fail("two offsets are wanted");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    if (entry.begin > entry.end || entry.end > data.size())
      object.at("data_offsets")
          .fail("from " + std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
                " of " + std::to_string(data.size()) + " bytes");
    if (entry.end - entry.begin != bytes)
      object.at("data_offsets")
          .fail(std::to_string(entry.end - entry.begin) + " bytes, dtype and shape want " +
                std::to_string(bytes));
    entries.push_back(std::move(entry));
  }

  /// The ranges cover the data, each byte once.
  void check_ranges() const {
    std::vector<const Entry*> sorted;
    for (const Entry& entry : entries) sorted.push_back(&entry);
    std::ranges::sort(sorted, {}, [](const Entry* e) { return std::pair(e->begin, e->end); });
    std::uint64_t end = 0;
    for (const Entry* entry : sorted) {
      if (entry->begin != end)
        fail(label_,
             shown(entry->name) + " starts at byte " + std::to_string(entry->begin) +
                 (entry->begin < end ? ", inside the tensor before it"
                                     : ", which leaves a hole from byte " + std::to_string(end)));
      end = entry->end;
    }
    if (end != data.size())
      fail(label_, std::to_string(data.size() - end) + " bytes behind the last tensor");
  }

  std::span<const std::byte> bytes_;
  const std::string& label_;
};

Safetensors to_tensors(
    HeaderReader& header, const std::string& label,
    const std::function<at::Tensor(std::span<const std::byte>, at::ScalarType)>& make_flat) {
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (const Entry& entry : header.entries) {
    const auto bytes = header.data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.type == at::kBool &&
        std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; }))
      fail(label, shown(entry.name) + " holds bools that are neither 0 nor 1");
    result.tensors.emplace_back(entry.name, make_flat(bytes, entry.type).view(entry.shape));
  }
  return result;
}

std::string header_of(const std::vector<Entry>& entries,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  JsonWriter json;
  json.begin_object();
  if (!metadata.empty()) {
    json.key(kMetadataKey).begin_object();
    for (const auto& [key, value] : metadata) json.key(key).string(value);
    json.end_object();
  }
  for (const Entry& entry : entries) {
    const auto* row = std::ranges::find(kDtypes, entry.type, &DtypeRow::type);
    json.key(entry.name).begin_object().key("dtype").string(row->name);
    json.key("shape").begin_array();
    for (std::int64_t size : entry.shape) json.integer(size);
    json.end_array().key("data_offsets").begin_array();
    json.integer(static_cast<std::int64_t>(entry.begin));
    json.integer(static_cast<std::int64_t>(entry.end));
    json.end_array().end_object();
  }
  json.end_object();
  std::string text = std::move(json).take();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& label) {
  HeaderReader header(bytes, label);
  header.read();
  return to_tensors(header, label, [](std::span<const std::byte> data, at::ScalarType type) {
    const auto count = static_cast<std::int64_t>(data.size() / at::elementSize(type));
    at::Tensor copy = at::empty({count}, at::TensorOptions().dtype(type));
    if (!data.empty()) std::memcpy(copy.mutable_data_ptr(), data.data(), data.size());
    return copy;
  });
}

}  // namespace io

Safetensors load_safetensors(const std::string& path, io::FileAccess access) {
  const auto file = io::MappedFile::open(path, access);
  const std::string label = io::shown(path);
  io::HeaderReader header(file->bytes(), label);
  header.read();
  return io::to_tensors(header, label, [&](std::span<const std::byte> data, at::ScalarType type) {
    return io::flat_tensor(file, data, type);
  });
}

void save_safetensors(const NamedTensors& tensors, const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  const std::string label = "cannot write " + io::shown(path);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> rank;
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    const std::string what = "the tensor " + io::shown(name);
    if (!io::is_utf8(name) || io::has_control_characters(name) || name.size() > io::kMaxName ||
        name == io::kMetadataKey)
      io::fail(label, what + " has a name that readers refuse");
    if (!names.insert(name).second) io::fail(label, what + " is there twice");
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized())
      io::fail(label, what + " is undefined, sparse or quantized");
    const auto* row = std::ranges::find(io::kDtypes, tensor.scalar_type(), &io::DtypeRow::type);
    if (row == io::kDtypes.end())
      io::fail(label, what + " is of type " + at::toString(tensor.scalar_type()) +
                          ", which the format does not have");
    rank.push_back(static_cast<std::size_t>(row - io::kDtypes.begin()));
  }
  for (const auto& [key, value] : metadata)
    if (!io::is_utf8(key) || !io::is_utf8(value))
      io::fail(label, "the metadata " + io::shown(key) + " is not UTF-8");
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return rank[a] != rank[b] ? rank[a] > rank[b] : tensors[a].first < tensors[b].first;
  });
  std::vector<io::Entry> entries;
  std::uint64_t end = 0;
  for (std::size_t i : order) {
    const auto& [name, tensor] = tensors[i];
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), begin, end});
  }
  const std::string header = io::header_of(entries, metadata);
  const std::uint64_t length = header.size();
  if (length > io::kMaxHeader) io::fail(label, "a header of " + std::to_string(length) + " bytes");
  io::AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (std::size_t i : order) {
    const at::Tensor plain =
        tensors[i].second.detach().resolve_conj().resolve_neg().cpu().contiguous();
    file.write(std::span(static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()));
  }
  file.commit();
}

namespace {

/// What makes two tensors one and the same memory.
std::tuple<const void*, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>>
place_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.sizes().vec(),
          tensor.strides().vec()};
}

}  // namespace

void assign_state_dict(GraphModule& module, const NamedTensors& state, bool strict) {
  const NamedTensors mine = module.state_dict();
  std::map<std::string, at::Tensor> given(state.begin(), state.end());
  // Tied names get the tensor that is there for one of them.
  std::map<decltype(place_of(at::Tensor())), at::Tensor> tied;
  std::string missing, wrong;
  for (const auto& [name, tensor] : mine)
    if (auto found = given.find(name); found != given.end() && tensor.has_storage())
      tied.emplace(place_of(tensor), found->second);
  std::vector<std::pair<at::Tensor, at::Tensor>> changes;
  for (const auto& [name, tensor] : mine) {
    at::Tensor replacement;
    if (auto found = given.find(name); found != given.end()) {
      replacement = found->second;
      given.erase(found);
    } else if (auto other = tensor.has_storage() ? tied.find(place_of(tensor)) : tied.end();
               other != tied.end()) {
      replacement = other->second;
    } else {
      missing += " " + name;
      continue;
    }
    if (!replacement.defined() || replacement.sizes() != tensor.sizes() ||
        replacement.scalar_type() != tensor.scalar_type() ||
        replacement.device() != tensor.device() || replacement.layout() != tensor.layout())
      wrong += " " + name + " (" + describe(tensor) + ", found " +
               (replacement.defined() ? describe(replacement) : "nothing") + ")";
    else
      changes.emplace_back(tensor, replacement);
  }
  std::string unexpected;
  for (const auto& [name, tensor] : given) unexpected += " " + name;
  if (!wrong.empty())
    throw RunError(ErrorCode::kShapeMismatch,
                   "assign_state_dict: shape, dtype or device differ for" + wrong);
  if (strict && (!missing.empty() || !unexpected.empty()))
    throw GraphError(
        ErrorCode::kMissingAttribute,
        "assign_state_dict:" + (missing.empty() ? "" : " missing keys:" + missing + ";") +
            (unexpected.empty() ? "" : " unexpected keys:" + unexpected));
  for (auto& [to, from] : changes) to.set_data(from.detach());
}

}  // namespace fx
