#include "tests/io/archive_builder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "fx/io/crc32.h"
#include "fx/io/mapped_file.h"
#include "fx/io/zip_reader.h"

namespace fx::io::testing {
namespace {

template <typename T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
}

std::uint32_t crc_of(const std::string& data) {
  return crc32(std::as_bytes(std::span(data.data(), data.size())));
}

std::string zip64_block(std::initializer_list<std::uint64_t> values) {
  std::string block;
  put<std::uint16_t>(block, 1);
  put<std::uint16_t>(block, static_cast<std::uint16_t>(8 * values.size()));
  for (std::uint64_t value : values) put(block, value);
  return block;
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "fxcpp-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& contents) const {
  // Not over an old file: some file systems write that to disk at once.
  std::filesystem::remove(path(name));
  std::ofstream(path(name), std::ios::binary) << contents;
  return path(name);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string source_path(const std::string& name) { return FXCPP_SOURCE_DIR "/" + name; }

std::string TestArchive::build() const {
  std::string out = prefix, directory;
  for (const TestRecord& r : records) {
    const std::uint64_t offset = r.header_offset.value_or(out.size());
    const std::uint32_t crc = r.crc.value_or(crc_of(r.data));
    const std::uint16_t flags = static_cast<std::uint16_t>(r.flags | (r.descriptor ? 8 : 0));
    const std::uint64_t size = r.data.size();
    if (!r.in_directory_only) {
      const std::string local_name = r.local_name.value_or(r.name);
      std::string extra = r.local_extra;
      if (r.zip64) extra += zip64_block({size, size});
      put<std::uint32_t>(out, 0x04034b50);
      put<std::uint16_t>(out, 20);
      put(out, flags);
      put(out, r.method);
      put<std::uint32_t>(out, 0);
      put<std::uint32_t>(out, r.local_crc.value_or(r.descriptor ? 0 : crc));
      for (int i = 0; i < 2; ++i)
        put<std::uint32_t>(
            out, r.descriptor ? 0 : static_cast<std::uint32_t>(r.zip64 ? 0xFFFFFFFF : size));
      put<std::uint16_t>(out, static_cast<std::uint16_t>(local_name.size()));
      put<std::uint16_t>(out, static_cast<std::uint16_t>(extra.size()));
      out += local_name + extra + r.data;
      if (r.descriptor) {
        put<std::uint32_t>(out, 0x08074b50);
        put(out, crc);
        for (int i = 0; i < 2; ++i) {
          if (r.zip64)
            put<std::uint64_t>(out, size);
          else
            put<std::uint32_t>(out, static_cast<std::uint32_t>(size));
        }
      }
    }
    const std::uint64_t listed = r.size.value_or(size), stored = r.stored.value_or(listed);
    std::string extra = r.central_extra;
    if (r.zip64) extra += zip64_block({listed, stored, offset});
    put<std::uint32_t>(directory, 0x02014b50);
    put<std::uint16_t>(directory, 20);
    put<std::uint16_t>(directory, 20);
    put(directory, flags);
    put(directory, r.method);
    put<std::uint32_t>(directory, 0);
    put(directory, crc);
    put(directory, static_cast<std::uint32_t>(r.zip64 ? 0xFFFFFFFF : stored));
    put(directory, static_cast<std::uint32_t>(r.zip64 ? 0xFFFFFFFF : listed));
    put(directory, static_cast<std::uint16_t>(r.name.size()));
    put(directory, static_cast<std::uint16_t>(extra.size()));
    put<std::uint16_t>(directory, 0);
    put(directory, r.disk);
    put<std::uint16_t>(directory, 0);
    put(directory, r.attributes);
    put(directory, static_cast<std::uint32_t>(r.zip64 ? 0xFFFFFFFF : offset));
    directory += r.name + extra;
  }
  out += gap;
  const std::uint64_t directory_at = directory_offset.value_or(out.size());
  const std::uint64_t directory_bytes = directory_size.value_or(directory.size());
  const std::uint64_t entries = count.value_or(records.size());
  out += directory;
  if (zip64_end) {
    const std::uint64_t at = out.size();
    put<std::uint32_t>(out, 0x06064b50);
    put<std::uint64_t>(out, 44);
    put<std::uint32_t>(out, 0x2d001e);
    put<std::uint64_t>(out, 0);  // disks
    put(out, entries);
    put(out, entries);
    put(out, directory_bytes);
    put(out, directory_at);
    put<std::uint32_t>(out, 0x07064b50);
    put<std::uint32_t>(out, 0);
    put(out, zip64_end_offset.value_or(at));
    put<std::uint32_t>(out, 1);
  }
  put<std::uint32_t>(out, 0x06054b50);
  put(out, disk);
  put<std::uint16_t>(out, 0);
  for (int i = 0; i < 2; ++i) put(out, static_cast<std::uint16_t>(zip64_end ? 0xFFFF : entries));
  put(out, static_cast<std::uint32_t>(zip64_end ? 0xFFFFFFFF : directory_bytes));
  put(out, static_cast<std::uint32_t>(zip64_end ? 0xFFFFFFFF : directory_at));
  put(out, static_cast<std::uint16_t>(comment.size()));
  return out + comment + suffix;
}

std::vector<TestRecord> records_of(const std::string& path) {
  auto file = MappedFile::open(path);
  ZipReader zip(file->bytes(), path);
  std::vector<TestRecord> records;
  for (const ZipEntry& entry : zip.entries()) {
    TestRecord record;
    record.name = entry.name;
    auto data = zip.data(entry);
    record.data.assign(reinterpret_cast<const char*>(data.data()), data.size());
    records.push_back(std::move(record));
  }
  return records;
}

ProgramFile::ProgramFile(const std::string& zoo_name)
    : root_(zoo_name), records_(records_of(source_path("tests/io/zoo/" + zoo_name + ".pt2"))) {}

TestRecord& ProgramFile::record(const std::string& name) {
  for (TestRecord& record : records_)
    if (record.name == root_ + "/" + name) return record;
  throw std::out_of_range("no record " + name);
}

void ProgramFile::add(const std::string& name, const std::string& data) {
  TestRecord record;
  record.name = root_ + "/" + name;
  record.data = data;
  records_.push_back(record);
}

void ProgramFile::remove(const std::string& name) {
  record(name);
  std::erase_if(records_, [&](const TestRecord& r) { return r.name == root_ + "/" + name; });
}

void ProgramFile::edit(const std::string& name,
                       const std::function<void(nlohmann::ordered_json&)>& edit) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(record(name).data);
  edit(json);
  record(name).data = json.dump();
}

void ProgramFile::replace(const std::string& name, const std::string& from, const std::string& to) {
  std::string& data = record(name).data;
  std::size_t at = data.find(from);
  if (at == std::string::npos) throw std::out_of_range("no text " + from + " in " + name);
  data.replace(at, from.size(), to);
}

std::string ProgramFile::build() const {
  TestArchive archive;
  archive.records = records_;
  return archive.build();
}

std::string ProgramFile::write(const TempDir& folder, const std::string& name) const {
  return folder.write(name, build());
}

void expect_import_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::function<void()>& action) {
  try {
    action();
  } catch (const ImportError& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "missing: " << part << "\nin: " << error.what();
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error; wanted one with: " << (parts.empty() ? "" : parts[0]);
}

}  // namespace fx::io::testing
