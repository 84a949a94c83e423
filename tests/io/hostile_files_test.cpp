// Files that are large, or that change while they are used.

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "fx/io/import_export.h"
#include "tests/io/archive_builder.h"
#include "tests/io/peak_memory.h"
#include "tests/io/zoo.h"

namespace fx::io {
namespace {

using testing::ProgramFile;
using testing::read_file;
using testing::source_path;
using testing::TempDir;
using testing::TestArchive;
using testing::TestRecord;

/// The program "buffers", whose first weight has `bytes` bytes, all but the first sixteen of them a
/// hole in the file, and starts at an offset that is `rest` modulo 64.
std::string write_sparse(const TempDir& folder, std::uint64_t bytes, std::size_t rest = 0) {
  ProgramFile program("buffers");
  TestArchive archive;
  archive.records = program.records();
  TestRecord weight = archive.records.front();
  archive.records.erase(archive.records.begin());
  const std::uint64_t stored = weight.data.size(), hole = bytes - stored;
  weight.zip64 = true;
  weight.crc = weight.local_crc = 0;
  weight.size = weight.stored = bytes;
  archive.records.push_back(weight);
  archive.zip64_end = true;
  TestRecord& last = archive.records.back();
  const std::size_t start = archive.build().rfind("PK\x03\x04") + 30 + weight.name.size() + 20;
  // A block of padding as torch writes it.
  const std::size_t padding = (64 + rest + 64 - (start + 4) % 64) % 64;
  last.local_extra =
      std::string("FB") + static_cast<char>(padding) + '\0' + std::string(padding, 'Z');
  const std::string draft = archive.build();
  // Both sizes of the local header, in its zip64 block behind the name.
  const std::size_t header = draft.rfind("PK\x03\x04"),
                    block = header + 30 + weight.name.size() + last.local_extra.size() + 4;
  const std::size_t split = block + 16 + stored;
  archive.directory_offset = split + hole;
  archive.zip64_end_offset = draft.size() - 22 - 20 - 56 + hole;
  std::string text = archive.build();
  for (std::size_t i = 0; i < 16; ++i) text[block + i] = static_cast<char>(bytes >> (8 * (i % 8)));
  const std::string path = folder.write("sparse.pt2", text.substr(0, split));
  std::filesystem::resize_file(path, split + hole);
  std::ofstream(path, std::ios::binary | std::ios::app) << text.substr(split);
  return path;
}

TEST(HostileFiles, X04_HugeSparseWeightsOpenAtOnce) {
  for (const std::uint64_t bytes : {std::uint64_t{5} << 30, std::uint64_t{1} << 40}) {
    const TempDir folder;
    const std::string path = write_sparse(folder, bytes);
    EXPECT_GT(std::filesystem::file_size(path), bytes);
    const testing::PeakMemory memory;
    const std::clock_t start = std::clock();
    const auto module = load(path);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.5);
    const at::Tensor mean = module->find_tensor("mean");
    EXPECT_TRUE(
        at::equal(mean, load(source_path("tests/io/zoo/buffers.pt2"))->find_tensor("mean")));
    EXPECT_EQ(mean.storage().nbytes(), bytes);
    if (testing::PeakMemory::kIsExact) {
      EXPECT_LT(memory.growth(), std::uint64_t{64} << 20);
    }
  }
}

TEST(HostileFiles, X04_WhatCannotBeCopiedIsAnError) {
  const TempDir folder;
  testing::expect_import_error(ErrorCode::kTooLarge,
                               {"sparse.pt2", "not aligned", "there is no memory"},
                               [&] { load(write_sparse(folder, std::uint64_t{1} << 42, 3)); });
}

TEST(HostileFiles, X04_WhatHasToBeCopiedIsInMemoryOnce) {
  const TempDir folder;
  const std::string path = write_sparse(folder, std::uint64_t{200} << 20, 3);
  const testing::PeakMemory memory;
  const auto module = load(path);
  EXPECT_EQ(module->find_tensor("mean").numel(), 4);
  if (testing::PeakMemory::kIsExact) {
    EXPECT_LT(memory.growth(), std::uint64_t{264} << 20);
  }
}

TEST(HostileFiles, X02_AFileThatIsReplacedStaysWhatItWas) {
  const TempDir folder;
  const std::string path =
      folder.write("m.pt2", read_file(source_path("tests/io/zoo/buffers.pt2")));
  const auto module = load(path);
  const at::Tensor before = module->find_tensor("mean").clone();
  const std::string other = folder.write("other.pt2", std::string(100'000, 'x'));
  ASSERT_EQ(std::rename(other.c_str(), path.c_str()), 0);
  EXPECT_TRUE(at::equal(module->find_tensor("mean"), before));
  EXPECT_THROW(load(path), ImportError);
}

}  // namespace
}  // namespace fx::io
