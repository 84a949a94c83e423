#include "fx/io/zip_reader.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/crc32.h"
#include "fx/io/shown.h"

// Layout of a zip file (PKWARE APPNOTE.TXT 4.3): records (local header, contents, optional data
// descriptor), the central directory, for large archives a zip64 end record and its locator, and
// the end record. All numbers are little endian.

namespace fx::io {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kZip64EndSignature = 0x06064b50;
constexpr std::uint32_t kZip64LocatorSignature = 0x07064b50;

constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint64_t kCentralSize = 46;
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kZip64EndSize = 56;
constexpr std::uint64_t kZip64LocatorSize = 20;

constexpr std::uint16_t kZip64Extra = 0x0001;
constexpr std::uint16_t kSaturated16 = 0xFFFF;
constexpr std::uint32_t kSaturated32 = 0xFFFFFFFF;
constexpr std::size_t kMaxName = 512;

constexpr std::uint16_t kFlagEncrypted = 0x0001;
constexpr std::uint16_t kFlagDescriptor = 0x0008;  // sizes and CRC follow the contents
constexpr std::uint16_t kFlagUtf8 = 0x0800;
constexpr std::uint16_t kAllowedFlags = 0x0006 | kFlagDescriptor | kFlagUtf8;

constexpr std::uint32_t kDosDirectory = 0x10;
constexpr std::uint32_t kUnixTypeMask = 0170000;
constexpr std::uint32_t kUnixRegular = 0100000;

/// Little-endian numbers of a block whose size has been checked.
class Fields {
 public:
  explicit Fields(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  T get(std::uint64_t offset) const {
    FX_ASSERT(offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T), "field out of block");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::uint16_t u16(std::uint64_t offset) const { return get<std::uint16_t>(offset); }
  std::uint32_t u32(std::uint64_t offset) const { return get<std::uint32_t>(offset); }
  std::uint64_t u64(std::uint64_t offset) const { return get<std::uint64_t>(offset); }

 private:
  std::span<const std::byte> bytes_;
};

std::string str(std::uint64_t number) { return std::to_string(number); }

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The zip64 block of an extra field, or an empty span. `well_formed` is false when blocks do not
/// add up.
std::span<const std::byte> zip64_block(std::span<const std::byte> extra, bool& well_formed) {
  std::span<const std::byte> found;
  well_formed = true;
  while (extra.size() >= 4) {
    Fields fields(extra);
    std::uint16_t id = fields.u16(0), size = fields.u16(2);
    if (size > extra.size() - 4) {
      well_formed = false;
      return {};
    }
    if (id == kZip64Extra) {
      if (!found.empty()) well_formed = false;
      found = extra.subspan(4, size);
    }
    extra = extra.subspan(4 + size);
  }
  return found;
}

}  // namespace

void ZipReader::corrupt(const std::string& what) const {
  throw ImportError(ErrorCode::kCorruptArchive,
                    shown(path_) + " is not a sound zip archive: " + what);
}

void ZipReader::unsafe(const std::string& what) const {
  throw ImportError(ErrorCode::kUnsafeArchive, shown(path_) + " is refused: " + what);
}

ZipReader::ZipReader(std::span<const std::byte> bytes, std::string path)
    : bytes_(bytes), path_(std::move(path)) {
  Directory directory = find_directory();
  if (directory.count == 0 && directory.size == 0) corrupt("it holds no records");
  if (directory.count == 0)
    corrupt("its directory has " + str(directory.size) + " bytes but says it has 0 entries");
  if (directory.count > directory.size / kCentralSize)
    corrupt("it says it has " + str(directory.count) +
            " entries, which cannot fit in a directory of " + str(directory.size) + " bytes");
  read_directory(directory);
  index_names();
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

void ZipReader::check_crc(const ZipEntry& entry, std::span<const std::byte> contents) const {
  if (entry.crc == 0) return;
  if (crc32(contents) != entry.crc)
    throw ImportError(ErrorCode::kChecksum, shown(path_) + ": the contents of record " +
                                                shown(entry.name) + " do not match their checksum");
}

void ZipReader::fail_without_end_record() const {
  // The end record can be anywhere in the last 64 kB when something follows it.
  const std::uint64_t size = bytes_.size();
  const std::uint64_t first = size > kEndSize + kSaturated16 ? size - kEndSize - kSaturated16 : 0;
  const Fields last(bytes_.subspan(size - kEndSize));
  if (last.u32(0) == kEndSignature)
    corrupt("it should end with a comment of " + str(last.u16(20)) + " bytes, which is missing");
  for (std::uint64_t at = size - kEndSize; at-- > first;) {
    Fields fields(bytes_.subspan(at, kEndSize));
    if (fields.u32(0) != kEndSignature) continue;
    // Archives inside of records (sample inputs are one) have end records too.
    const std::uint64_t directory_size = fields.u32(12), directory_offset = fields.u32(16);
    if (directory_size != kSaturated32 && directory_offset != kSaturated32 &&
        directory_offset + directory_size != at)
      continue;
    if (fields.u16(20) == size - at - kEndSize)
      unsafe("it ends with a comment of " + str(fields.u16(20)) + " bytes");
    unsafe(str(size - at - kEndSize) + " bytes follow its end record");
  }
  corrupt("its end record is missing, so the file was probably cut off (it has " + str(size) +
          " bytes)");
}

ZipReader::Directory ZipReader::find_directory() const {
  const std::uint64_t size = bytes_.size();
  if (size < kEndSize)
    corrupt("it has " + str(size) + " bytes, an empty archive would have " + str(kEndSize));
  const std::uint64_t at = size - kEndSize;
  Fields end(bytes_.subspan(at));
  if (end.u32(0) != kEndSignature || end.u16(20) != 0) fail_without_end_record();
  const bool saturated = end.u16(8) == kSaturated16 || end.u16(10) == kSaturated16 ||
                         end.u32(12) == kSaturated32 || end.u32(16) == kSaturated32;
  const bool has_locator =
      at >= kZip64LocatorSize &&
      Fields(bytes_.subspan(at - kZip64LocatorSize)).u32(0) == kZip64LocatorSignature;
  if (saturated || has_locator) {
    if (!has_locator) corrupt("its end record points to a zip64 locator that is not there");
    return find_zip64_directory(at);
  }
  if (end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != end.u16(10))
    corrupt("it is one part of an archive on several disks");
  Directory directory{end.u32(16), end.u32(12), end.u16(10), at};
  if (directory.offset > at || directory.size != at - directory.offset)
    corrupt("its directory (offset " + str(directory.offset) + ", " + str(directory.size) +
            " bytes) does not end where the end record starts (" + str(at) + ")");
  return directory;
}

ZipReader::Directory ZipReader::find_zip64_directory(std::uint64_t end_record) const {
  const std::uint64_t locator_at = end_record - kZip64LocatorSize;
  Fields locator(bytes_.subspan(locator_at, kZip64LocatorSize));
  const std::uint64_t at = locator.u64(8);
  if (locator.u32(4) != 0 || locator.u32(16) > 1)
    corrupt("it is one part of an archive on several disks");
  // The record may be followed by extensible data, which torch never writes: it must fill the
  // space.
  if (locator_at < kZip64EndSize || at != locator_at - kZip64EndSize)
    corrupt("its zip64 locator points to offset " + str(at) + ", where no zip64 end record can be");
  Fields zip64(bytes_.subspan(at, kZip64EndSize));
  if (zip64.u32(0) != kZip64EndSignature || zip64.u64(4) != kZip64EndSize - 12)
    corrupt("there is no zip64 end record at offset " + str(at));
  if (zip64.u32(16) != 0 || zip64.u32(20) != 0 || zip64.u64(24) != zip64.u64(32))
    corrupt("it is one part of an archive on several disks");
  Directory directory{zip64.u64(48), zip64.u64(40), zip64.u64(32), at};
  if (directory.offset > at || directory.size != at - directory.offset)
    corrupt("its zip64 directory (offset " + str(directory.offset) + ", " + str(directory.size) +
            " bytes) does not end where the zip64 end record starts (" + str(at) + ")");
  // Where the small end record has room for a value, it has to say the same.
  Fields end(bytes_.subspan(end_record, kEndSize));
  auto agrees = [](std::uint64_t small, std::uint64_t saturated, std::uint64_t value) {
    return small == saturated || small == value;
  };
  if (!agrees(end.u16(8), kSaturated16, directory.count) ||
      !agrees(end.u16(10), kSaturated16, directory.count) ||
      !agrees(end.u32(12), kSaturated32, directory.size) ||
      !agrees(end.u32(16), kSaturated32, directory.offset))
    corrupt("its two end records contradict each other");
  return directory;
}

void ZipReader::check_name(std::string_view name) const {
  if (name.empty()) unsafe("a record has an empty name");
  if (name.size() > kMaxName)
    unsafe("a record's name has " + str(name.size()) + " bytes, " + str(kMaxName) + " are allowed");
  if (name.find('\0') != std::string_view::npos)
    unsafe("the record name " + shown(name) + " holds a NUL character");
  if (!is_utf8(name)) unsafe("the record name " + shown(name) + " is not UTF-8");
  if (has_control_characters(name))
    unsafe("the record name " + shown(name) + " holds control characters");
  if (name.find('\\') != std::string_view::npos)
    unsafe("the record name " + shown(name) + " holds a backslash");
  for (std::string_view rest = name;;) {
    std::size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..")
      unsafe("the record name " + shown(name) + " has an empty, \".\" or \"..\" part");
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
}

void ZipReader::read_directory(const Directory& directory) {
  entries_.reserve(directory.count);
  std::vector<std::uint64_t> ends;  // of the records, their data descriptors included
  ends.reserve(directory.count);
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const std::string which = "directory entry " + str(i);
    if (directory.end - at < kCentralSize) corrupt(which + " runs past the directory");
    Fields fields(bytes_.subspan(at, kCentralSize));
    if (fields.u32(0) != kCentralSignature) corrupt(which + " does not start with its signature");
    const std::uint64_t name_size = fields.u16(28), extra_size = fields.u16(30);
    const std::uint64_t total = kCentralSize + name_size + extra_size + fields.u16(32);
    if (directory.end - at < total) corrupt(which + " runs past the directory");

    ZipEntry entry;
    std::string_view name = text_of(bytes_.subspan(at + kCentralSize, name_size));
    const std::uint32_t attributes = fields.u32(38);
    const std::uint32_t unix_type = (attributes >> 16) & kUnixTypeMask;
    if (!name.empty() && name.back() == '/') unsafe("record " + shown(name) + " is a directory");
    check_name(name);
    entry.name = name;
    const std::uint16_t flags = fields.u16(8), method = fields.u16(10);
    const std::string record = "record " + shown(name);
    if ((flags & kFlagEncrypted) != 0) unsafe(record + " is encrypted");
    if ((flags & ~kAllowedFlags) != 0)
      unsafe(record + " uses unknown features (flags " + str(flags) + ")");
    if (method != 0)
      unsafe(record + " is compressed (method " + str(method) +
             "); records must be stored, so that " + "they can be mapped");
    if ((attributes & kDosDirectory) != 0) unsafe(record + " is marked as a directory");
    if (unix_type != 0 && unix_type != kUnixRegular)
      unsafe(record + " is marked as a link or another special file");
    if (fields.u16(34) != 0) corrupt(record + " lies on another disk");

    std::uint64_t stored = fields.u32(20);
    entry.crc = fields.u32(16);
    entry.size = fields.u32(24);
    entry.header_offset = fields.u32(42);
    if (stored == kSaturated32 || entry.size == kSaturated32 ||
        entry.header_offset == kSaturated32) {
      bool well_formed = true;
      auto extra = bytes_.subspan(at + kCentralSize + name_size, extra_size);
      std::span<const std::byte> block = zip64_block(extra, well_formed);
      // Saturated values follow in this order, 8 bytes each.
      std::uint64_t used = 0;
      for (std::uint64_t* value : {&entry.size, &stored, &entry.header_offset}) {
        if (*value != kSaturated32) continue;
        if (!well_formed || block.size() < used + 8) corrupt(record + " lacks its zip64 sizes");
        *value = Fields(block).u64(used);
        used += 8;
      }
    }
    if (stored != entry.size)
      corrupt(record + " is stored but has two sizes, " + str(stored) + " and " + str(entry.size));
    if (entry.size > bytes_.size())
      corrupt(record + " has " + str(entry.size) + " bytes, more than the whole file (" +
              str(bytes_.size()) + ")");
    ends.push_back(check_local_header(entry, flags, directory.offset));
    entries_.push_back(std::move(entry));
    at += total;
  }
  if (at != directory.end)
    corrupt(str(directory.end - at) + " bytes follow its last directory entry");
  check_layout(ends, directory.offset);
}

/// Sets entry.data_offset; returns the end of the record. `limit` is the start of the directory.
std::uint64_t ZipReader::check_local_header(ZipEntry& entry, std::uint16_t flags,
                                            std::uint64_t limit) const {
  const std::string record = "record " + shown(entry.name);
  if (entry.header_offset > limit || limit - entry.header_offset < kLocalSize)
    corrupt("the local header of " + record + " (offset " + str(entry.header_offset) +
            ") lies outside the records");
  Fields fields(bytes_.subspan(entry.header_offset, kLocalSize));
  if (fields.u32(0) != kLocalSignature)
    corrupt("there is no local header of " + record + " at offset " + str(entry.header_offset));
  const std::uint64_t name_size = fields.u16(26), extra_size = fields.u16(28);
  entry.data_offset = entry.header_offset + kLocalSize + name_size + extra_size;
  if (entry.data_offset > limit || entry.size > limit - entry.data_offset)
    corrupt(record + " (offset " + str(entry.data_offset) + ", " + str(entry.size) +
            " bytes) runs past the end of the records (" + str(limit) + ")");
  auto name = bytes_.subspan(entry.header_offset + kLocalSize, name_size);
  if (text_of(name) != entry.name)
    unsafe("the local header of " + record + " has another name: " + shown(text_of(name)));
  if (fields.u16(6) != flags || fields.u16(8) != 0)
    unsafe("the local header of " + record + " contradicts the directory on how it is stored");

  const bool has_descriptor = (flags & kFlagDescriptor) != 0;
  std::uint64_t stored = fields.u32(18), size = fields.u32(22);
  bool well_formed = true;
  auto extra = bytes_.subspan(entry.header_offset + kLocalSize + name_size, extra_size);
  std::span<const std::byte> block = zip64_block(extra, well_formed);
  // torch's writer adds a block without sizes to records whose offset needs 64 bits; any block
  // makes the descriptor wide.
  const bool zip64 = !block.empty();
  if (block.size() >= 16) {
    if (size == kSaturated32) size = Fields(block).u64(0);
    if (stored == kSaturated32) stored = Fields(block).u64(8);
  }
  auto agrees = [&](std::uint64_t local, std::uint64_t value) {
    return local == value || (has_descriptor && local == 0);
  };
  if (!agrees(size, entry.size) || !agrees(stored, entry.size) ||
      !agrees(fields.u32(14), entry.crc))
    unsafe("the local header of " + record + " contradicts the directory on size or checksum");

  const std::uint64_t end = entry.data_offset + entry.size;
  if (!has_descriptor) return end;
  // The descriptor: signature, CRC, two sizes of 4 bytes, or of 8 bytes with zip64.
  const std::uint64_t width = zip64 ? 8 : 4, descriptor_size = 8 + 2 * width;
  if (limit - end < descriptor_size) corrupt("the data descriptor of " + record + " is cut off");
  Fields descriptor(bytes_.subspan(end, descriptor_size));
  auto size_at = [&](std::uint64_t offset) {
    return zip64 ? descriptor.u64(offset) : descriptor.u32(offset);
  };
  if (descriptor.u32(0) != kDescriptorSignature) corrupt(record + " has no data descriptor");
  if (descriptor.u32(4) != entry.crc || size_at(8) != entry.size ||
      size_at(8 + width) != entry.size)
    unsafe("the data descriptor of " + record + " contradicts the directory");
  return end + descriptor_size;
}

void ZipReader::check_layout(const std::vector<std::uint64_t>& ends,
                             std::uint64_t directory_offset) const {
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return entries_[i].header_offset; });
  std::uint64_t expected = 0;
  for (std::size_t i : order) {
    const std::uint64_t start = entries_[i].header_offset;
    if (start < expected) unsafe("record " + shown(entries_[i].name) + " overlaps another record");
    if (start > expected)
      unsafe(str(start - expected) + " bytes before record " + shown(entries_[i].name) +
             " belong to no record");
    expected = ends[i];
  }
  if (expected != directory_offset)
    unsafe(str(directory_offset - expected) + " bytes before the directory belong to no record");
}

void ZipReader::index_names() {
  std::ranges::stable_sort(entries_, {}, &ZipEntry::header_offset);
  std::unordered_map<std::string, std::size_t> folded;
  folded.reserve(entries_.size());
  index_.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::string lower = entries_[i].name;
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    auto [it, inserted] = folded.emplace(std::move(lower), i);
    if (!inserted)
      unsafe(
          "the record names " + shown(entries_[it->second].name) + " and " +
          shown(entries_[i].name) +
          (entries_[it->second].name == entries_[i].name ? " are equal" : " are equal up to case"));
    index_.emplace(entries_[i].name, i);
  }
}

}  // namespace fx::io
