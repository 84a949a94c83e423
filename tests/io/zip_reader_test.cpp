#include "fx/io/zip_reader.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "fx/io/crc32.h"
#include "fx/io/mapped_file.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;
using testing::read_file;
using testing::source_path;
using testing::TempDir;
using testing::TestArchive;
using testing::TestRecord;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TestRecord record(const std::string& name, const std::string& data) {
  TestRecord r;
  r.name = name;
  r.data = data;
  return r;
}

/// Two records, to be changed.
TestArchive two_records() {
  TestArchive archive;
  archive.records = {record("m/a", "alpha"), record("m/b", "beta")};
  return archive;
}

void expect_error(ErrorCode code, const std::string& part, const TestArchive& archive) {
  const std::string bytes = archive.build();
  expect_import_error(code, {part, "'f.zip'"}, [&] { ZipReader(bytes_of(bytes), "f.zip"); });
}

TEST(Crc32, KnownValuesAndBothForms) {
  EXPECT_EQ(crc32(bytes_of("")), 0u);
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u);
  std::string data;
  for (int i = 0; i < 700; ++i) data += static_cast<char>(i * 37 + (i >> 3));
  for (std::size_t n = 0; n <= data.size(); ++n)
    ASSERT_EQ(crc32(bytes_of(data).first(n)), detail::crc32_portable(bytes_of(data).first(n))) << n;
  EXPECT_EQ(detail::crc32_portable(bytes_of("56789"), detail::crc32_portable(bytes_of("1234"))),
            0xCBF43926u);
}

TEST(ZipReader, ReadsPlainDescriptorAndZip64Records) {
  for (bool descriptor : {false, true}) {
    for (bool zip64 : {false, true}) {
      for (bool zip64_end : {false, true}) {
        TestArchive archive = two_records();
        for (TestRecord& r : archive.records) {
          r.descriptor = descriptor;
          r.zip64 = zip64;
        }
        archive.zip64_end = zip64_end;
        const std::string bytes = archive.build();
        ZipReader zip(bytes_of(bytes), "f.zip");
        ASSERT_EQ(zip.entries().size(), 2u);
        const ZipEntry* b = zip.find("m/b");
        ASSERT_NE(b, nullptr);
        EXPECT_EQ(text_of(zip.data(*b)), "beta");
        EXPECT_NO_THROW(zip.check_crc(*b));
        EXPECT_EQ(zip.find("m/c"), nullptr);
        EXPECT_EQ(zip.find("M/b"), nullptr);
      }
    }
  }
}

TEST(ZipReader, EmptyRecordsAndUnalignedOnes) {
  TestArchive archive;
  archive.records = {record("m/empty", ""), record("m/x", "x"), record("m/last", "")};
  const std::string bytes = archive.build();
  ZipReader zip(bytes_of(bytes), "f.zip");
  EXPECT_EQ(zip.find("m/empty")->size, 0u);
  EXPECT_EQ(text_of(zip.data(*zip.find("m/x"))), "x");
}

TEST(ZipReader, AgreesWithTorchOnEveryArchiveOfTheZoo) {
  for (const auto& item : std::filesystem::directory_iterator(source_path("tests/io/zoo"))) {
    if (item.path().extension() != ".pt2") continue;
    auto file = MappedFile::open(item.path().string());
    ZipReader zip(file->bytes(), item.path().string());
    caffe2::serialize::PyTorchStreamReader torch_reader(item.path().string());
    const auto names = torch_reader.getAllRecords();
    EXPECT_EQ(zip.entries().size(), names.size()) << item.path();
    const std::string root = zip.entries()[0].name.substr(0, zip.entries()[0].name.find('/') + 1);
    for (const std::string& name : names) {
      const ZipEntry* entry = zip.find(root + name);
      ASSERT_NE(entry, nullptr) << name;
      EXPECT_EQ(entry->data_offset, torch_reader.getRecordOffset(name)) << name;
      auto [data, size] = torch_reader.getRecord(name);
      ASSERT_EQ(entry->size, size) << name;
      EXPECT_EQ(std::memcmp(zip.data(*entry).data(), data.get(), size), 0) << name;
      EXPECT_NO_THROW(zip.check_crc(*entry));
    }
  }
}

TEST(ZipReader, ReadsWhatTorchWritesAlsoWithMoreThan65535Records) {
  TempDir folder;
  for (int count : {1, 3, 66000}) {
    const std::string path = folder.path("written.pt2");
    {
      caffe2::serialize::PyTorchStreamWriter writer(path);
      for (int i = 0; i < count; ++i) {
        std::string data(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26));
        writer.writeRecord("r" + std::to_string(i), data.data(), data.size());
      }
      writer.writeEndOfFile();
    }
    auto file = MappedFile::open(path);
    ZipReader zip(file->bytes(), path);
    EXPECT_GE(zip.entries().size(), static_cast<std::size_t>(count));
    const int last = count - 1;
    const ZipEntry* entry = zip.find("written/r" + std::to_string(last));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(text_of(zip.data(*entry)),
              std::string(static_cast<std::size_t>(last % 7), static_cast<char>('a' + last % 26)));
    EXPECT_EQ(entry->data_offset % 64, 0u);
  }
}

TEST(ZipReader, ChecksumIsComparedAndZeroMeansNone) {
  TestArchive archive = two_records();
  archive.records[0].crc = 12345;
  archive.records[1].crc = 0;
  const std::string bytes = archive.build();
  ZipReader zip(bytes_of(bytes), "f.zip");
  expect_import_error(ErrorCode::kChecksum, {"'m/a'", "checksum"},
                      [&] { zip.check_crc(*zip.find("m/a")); });
  EXPECT_NO_THROW(zip.check_crc(*zip.find("m/b")));
}

TEST(ZipReaderRefuses, TooSmallOrCut) {
  expect_import_error(ErrorCode::kCorruptArchive, {"3 bytes"},
                      [] { ZipReader(bytes_of("abc"), "f.zip"); });
  const std::string whole = two_records().build();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string cut = whole.substr(0, n);
    EXPECT_THROW(ZipReader(bytes_of(cut), "f.zip"), ImportError) << n;
  }
  const std::string half = whole.substr(0, whole.size() / 2);
  expect_import_error(ErrorCode::kCorruptArchive, {"end record is missing", "cut off"},
                      [&] { ZipReader(bytes_of(half), "f.zip"); });
}

TEST(ZipReaderRefuses, NoRecords) {
  expect_error(ErrorCode::kCorruptArchive, "holds no records", TestArchive{});
  TestArchive archive = two_records();
  archive.count = 0;
  expect_error(ErrorCode::kCorruptArchive, "says it has 0 entries", archive);
}

TEST(ZipReaderRefuses, CountThatCannotFit) {
  TestArchive archive = two_records();
  archive.count = 60000;
  expect_error(ErrorCode::kCorruptArchive, "60000 entries, which cannot fit", archive);
  archive.zip64_end = true;
  archive.count = std::uint64_t{1} << 60;
  expect_error(ErrorCode::kCorruptArchive, "which cannot fit", archive);
}

TEST(ZipReaderRefuses, CountThatIsTooSmall) {
  TestArchive archive = two_records();
  archive.count = 1;
  expect_error(ErrorCode::kCorruptArchive, "follow its last directory entry", archive);
}

TEST(ZipReaderRefuses, DirectoryOutsideOfTheFile) {
  TestArchive archive = two_records();
  archive.directory_offset = 0xFFFFFFF0;
  expect_error(ErrorCode::kCorruptArchive, "does not end where the end record starts", archive);
  archive.zip64_end = true;
  archive.directory_offset.reset();
  archive.directory_size = std::uint64_t{1} << 63;
  expect_error(ErrorCode::kCorruptArchive, "zip64 directory", archive);
}

TEST(ZipReaderRefuses, Zip64LocatorThatPointsElsewhere) {
  TestArchive archive = two_records();
  archive.zip64_end = true;
  for (std::uint64_t at : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    archive.zip64_end_offset = at;
    expect_error(ErrorCode::kCorruptArchive, "zip64", archive);
  }
}

TEST(ZipReaderRefuses, SeveralDisks) {
  TestArchive archive = two_records();
  archive.disk = 1;
  expect_error(ErrorCode::kCorruptArchive, "several disks", archive);
  archive.disk = 0;
  archive.records[1].disk = 3;
  expect_error(ErrorCode::kCorruptArchive, "another disk", archive);
}

TEST(ZipReaderRefuses, BytesAroundTheArchive) {
  TestArchive archive = two_records();
  archive.prefix = "#!/bin/sh\n";
  expect_error(ErrorCode::kUnsafeArchive, "10 bytes before record 'm/a' belong to no record",
               archive);
  archive = two_records();
  archive.suffix = std::string(1000, 'x');
  expect_error(ErrorCode::kUnsafeArchive, "1000 bytes follow its end record", archive);
  archive = two_records();
  archive.comment = "hello";
  expect_error(ErrorCode::kUnsafeArchive, "comment of 5 bytes", archive);
  archive.comment = two_records().build();
  expect_error(ErrorCode::kCorruptArchive, "does not end where", archive);
  archive = two_records();
  archive.gap = "gap";
  expect_error(ErrorCode::kUnsafeArchive, "3 bytes before the directory belong to no record",
               archive);
}

TEST(ZipReaderRefuses, OverlappingRecords) {
  TestArchive archive = two_records();
  for (int i = 0; i < 1000; ++i) {
    TestRecord bomb = record("m/a", "alpha");
    bomb.in_directory_only = true;
    bomb.header_offset = 0;
    archive.records.push_back(bomb);
  }
  expect_error(ErrorCode::kUnsafeArchive, "'m/a' overlaps another record", archive);
}

TEST(ZipReaderRefuses, RecordsOutsideOfTheFile) {
  TestArchive archive = two_records();
  archive.records[1].header_offset = archive.build().size() - 10;
  expect_error(ErrorCode::kCorruptArchive, "lies outside the records", archive);
  archive.records[1].zip64 = true;
  archive.records[1].header_offset = std::uint64_t{1} << 40;
  expect_error(ErrorCode::kCorruptArchive, "lies outside the records", archive);
  archive.records[1].header_offset = 3;
  expect_error(ErrorCode::kCorruptArchive, "no local header", archive);
}

TEST(ZipReaderRefuses, SizesThatAreNotThere) {
  TestArchive archive = two_records();
  archive.records[0].size = 2'200'000'000;
  expect_error(ErrorCode::kCorruptArchive, "more than the whole file", archive);
  archive = two_records();
  archive.records[0].stored = 3;
  expect_error(ErrorCode::kCorruptArchive, "two sizes, 3 and 5", archive);
  archive = two_records();
  archive.records[1].size = 60;
  expect_error(ErrorCode::kCorruptArchive, "runs past the end of the records", archive);
  archive = two_records();
  archive.records[0].size = 4;
  expect_error(ErrorCode::kUnsafeArchive, "contradicts the directory on size", archive);
  archive = two_records();
  archive.records[0].local_crc = 1;
  expect_error(ErrorCode::kUnsafeArchive, "contradicts the directory on size or checksum", archive);
  archive = two_records();
  archive.records[1].zip64 = true;
  archive.records[1].size = ~std::uint64_t{0};
  expect_error(ErrorCode::kCorruptArchive, "more than the whole file", archive);
}

TEST(ZipReaderRefuses, CompressedEncryptedAndSpecialRecords) {
  struct Case {
    std::function<void(TestRecord&)> change;
    std::string part;
  };
  const std::vector<Case> cases = {
      {[](TestRecord& r) { r.method = 8; }, "compressed (method 8)"},
      {[](TestRecord& r) { r.method = 99; }, "compressed (method 99)"},
      {[](TestRecord& r) { r.flags = 1; }, "encrypted"},
      {[](TestRecord& r) { r.flags = 0x40; }, "unknown features"},
      {[](TestRecord& r) { r.attributes = 0x10; }, "marked as a directory"},
      {[](TestRecord& r) { r.attributes = 0xA1FF0000; }, "a link or another special file"},
      {[](TestRecord& r) { r.attributes = 0x41FF0000; }, "a link or another special file"},
  };
  for (const Case& c : cases) {
    TestArchive archive = two_records();
    c.change(archive.records[1]);
    expect_error(ErrorCode::kUnsafeArchive, c.part, archive);
  }
  TestArchive regular = two_records();
  regular.records[1].attributes = 0x81A40000;  // -rw-r--r--
  const std::string bytes = regular.build();
  EXPECT_NO_THROW(ZipReader(bytes_of(bytes), "f.zip"));
}

TEST(ZipReaderRefuses, Names) {
  struct Case {
    std::string name;
    std::string part;
  };
  const std::vector<Case> cases = {
      {"", "empty name"},
      {std::string(513, 'n'), "513 bytes"},
      {std::string("m/a\0.txt", 8), "NUL"},
      {"m/\xff", "not UTF-8"},
      {"m/\xed\xa0\x80", "not UTF-8"},
      {"m/\x1b]0;x", "control characters"},
      {"m/\xc2\x9b", "control characters"},
      {"m\\a", "backslash"},
      {"../../evil", "\"..\" part"},
      {"m/../../evil", "\"..\" part"},
      {"/etc/passwd", "\"..\" part"},
      {"m//a", "\"..\" part"},
      {"m/./a", "\"..\" part"},
      {"m/d/", "is a directory"},
  };
  for (const Case& c : cases) {
    TestArchive archive = two_records();
    archive.records[1].name = c.name;
    expect_error(ErrorCode::kUnsafeArchive, c.part, archive);
  }
  TestArchive unicode = two_records();
  unicode.records[1].name = "m/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  const std::string bytes = unicode.build();
  EXPECT_NO_THROW(ZipReader(bytes_of(bytes), "f.zip"));
}

TEST(ZipReaderRefuses, DuplicateNamesAndTwins) {
  TestArchive archive = two_records();
  archive.records.push_back(record("m/a", "other"));
  expect_error(ErrorCode::kUnsafeArchive, "are equal", archive);
  archive.records.back().name = "M/A";
  expect_error(ErrorCode::kUnsafeArchive, "equal up to case", archive);
  archive = two_records();
  archive.records[0].local_name = "m/x";
  expect_error(ErrorCode::kUnsafeArchive, "has another name: 'm/x'", archive);
}

TEST(ZipReaderRefuses, BrokenDirectoryEntries) {
  TestArchive archive = two_records();
  archive.records[1].central_extra = "xx";  // less than a block; harmless
  std::string bytes = archive.build();
  EXPECT_NO_THROW(ZipReader(bytes_of(bytes), "f.zip"));

  bytes = two_records().build();
  const std::size_t entry = bytes.find("PK\x01\x02");
  std::string changed = bytes;
  changed[entry] = 'X';
  expect_import_error(ErrorCode::kCorruptArchive, {"does not start with its signature"},
                      [&] { ZipReader(bytes_of(changed), "f.zip"); });
  for (std::size_t field : {28u, 30u, 32u}) {  // lengths of name, extra and comment
    changed = bytes;
    changed[entry + field + 1] = '\x7f';
    expect_import_error(ErrorCode::kCorruptArchive, {"runs past the directory"},
                        [&] { ZipReader(bytes_of(changed), "f.zip"); });
  }
  archive = two_records();
  archive.records[0].zip64 = true;
  bytes = archive.build();
  const std::size_t block = bytes.rfind(std::string("\x01\0\x18\0", 4));
  changed = bytes;
  changed[block] = '\x02';
  expect_import_error(ErrorCode::kCorruptArchive, {"lacks its zip64 sizes"},
                      [&] { ZipReader(bytes_of(changed), "f.zip"); });
  changed = bytes;
  changed[block + 2] = '\x70';
  expect_import_error(ErrorCode::kCorruptArchive, {"lacks its zip64 sizes"},
                      [&] { ZipReader(bytes_of(changed), "f.zip"); });
}

TEST(ZipReaderRefuses, BrokenDataDescriptors) {
  TestArchive archive = two_records();
  archive.records[0].descriptor = true;
  const std::string bytes = archive.build();
  const std::size_t descriptor = bytes.find("PK\x07\x08");
  std::string changed = bytes;
  changed[descriptor] = 'X';
  expect_import_error(ErrorCode::kCorruptArchive, {"no data descriptor"},
                      [&] { ZipReader(bytes_of(changed), "f.zip"); });
  changed = bytes;
  changed[descriptor + 8] = '\x7f';
  expect_import_error(ErrorCode::kUnsafeArchive, {"data descriptor", "contradicts"},
                      [&] { ZipReader(bytes_of(changed), "f.zip"); });
}

TEST(ZipReader, EveryBitFlipIsAnErrorOrLeavesTheContents) {
  const std::string bytes = two_records().build();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      ZipReader zip(bytes_of(flipped), "f.zip");
      for (const ZipEntry& entry : zip.entries()) zip.check_crc(entry);
      ASSERT_EQ(zip.entries().size(), 2u) << bit;
      EXPECT_EQ(text_of(zip.data(zip.entries()[0])), "alpha") << bit;
      EXPECT_EQ(text_of(zip.data(zip.entries()[1])), "beta") << bit;
    } catch (const ImportError&) {
    }
  }
}

}  // namespace
}  // namespace fx::io
