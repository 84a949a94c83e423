#include "fx/io/zip_writer.h"

#include <algorithm>
#include <bit>

#include "fx/io/crc32.h"

// The layout is explained in zip_reader.cpp.

namespace fx::io {
namespace {

constexpr std::uint16_t kVersionZip64 = 45;
constexpr std::uint16_t kVersionUnix = 3 << 8;
constexpr std::uint16_t kFlagUtf8 = 0x0800;
constexpr std::uint16_t kFirstDay = 0x0021;  // 1980-01-01, the first date there is
constexpr std::uint32_t kRegularFile = 0100644u << 16;
constexpr std::uint16_t kZip64Extra = 0x0001;
constexpr std::uint16_t kPaddingExtra = 0x4246;  // as torch's writer marks it
constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint64_t kExtraHeader = 4;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

static_assert(std::endian::native == std::endian::little);

/// Appends little-endian numbers.
class Block {
 public:
  template <typename T>
  Block& add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Block& u16(std::uint64_t value) { return add(static_cast<std::uint16_t>(value)); }
  Block& u32(std::uint64_t value) { return add(static_cast<std::uint32_t>(value)); }
  Block& u64(std::uint64_t value) { return add(value); }
  Block& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

void ZipWriter::write(std::span<const std::byte> bytes) {
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes)
    file_.write(bytes);
  else
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void ZipWriter::flush() {
  file_.write(buffer_);
  buffer_.clear();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> contents) {
  const Entry entry{name, position_, contents.size(), crc32(contents)};
  const bool large = entry.size >= zip64_from_;
  Block extra;
  if (large) extra.u16(kZip64Extra).u16(16).u64(entry.size).u64(entry.size);
  const std::uint64_t start =
      position_ + kLocalSize + name.size() + extra.bytes().size() + kExtraHeader;
  const std::uint64_t padding = (kRecordAlignment - start % kRecordAlignment) % kRecordAlignment;
  extra.u16(kPaddingExtra).u16(padding).text(std::string(padding, '\0'));

  const std::uint64_t size = large ? 0xFFFFFFFF : entry.size;
  Block header;
  header.u32(0x04034b50).u16(kVersionZip64).u16(kFlagUtf8).u16(0).u16(0).u16(kFirstDay);
  header.u32(entry.crc).u32(size).u32(size).u16(name.size()).u16(extra.bytes().size());
  write(header.text(name).text(extra.bytes()).bytes());
  write(contents);
  entries_.push_back(entry);
}

void ZipWriter::finish() {
  const std::uint64_t start = position_;
  for (const Entry& entry : entries_) {
    const bool large = entry.size >= zip64_from_, far = entry.offset >= zip64_from_;
    Block extra;
    if (large || far) extra.u16(kZip64Extra).u16((large ? 16 : 0) + (far ? 8 : 0));
    if (large) extra.u64(entry.size).u64(entry.size);
    if (far) extra.u64(entry.offset);
    const std::uint64_t size = large ? 0xFFFFFFFF : entry.size;
    Block header;
    header.u32(0x02014b50).u16(kVersionUnix | kVersionZip64).u16(kVersionZip64).u16(kFlagUtf8);
    header.u16(0).u16(0).u16(kFirstDay).u32(entry.crc).u32(size).u32(size);
    header.u16(entry.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(kRegularFile);
    header.u32(far ? 0xFFFFFFFF : entry.offset).text(entry.name).text(extra.bytes());
    write(header.bytes());
  }
  const std::uint64_t size = position_ - start, count = entries_.size();
  const std::uint64_t end64 = position_;
  Block end;
  if (count >= 0xFFFF || start >= zip64_from_ || size >= zip64_from_) {
    end.u32(0x06064b50).u64(44).u16(kVersionUnix | kVersionZip64).u16(kVersionZip64).u32(0).u32(0);
    end.u64(count).u64(count).u64(size).u64(start);
    end.u32(0x07064b50).u32(0).u64(end64).u32(1);
  }
  auto small = [](std::uint64_t value, std::uint64_t limit) { return std::min(value, limit); };
  end.u32(0x06054b50).u16(0).u16(0).u16(small(count, 0xFFFF)).u16(small(count, 0xFFFF));
  end.u32(small(size, 0xFFFFFFFF)).u32(small(start, 0xFFFFFFFF)).u16(0);
  write(end.bytes());
  flush();
}

}  // namespace fx::io
