#pragma once

// Builds zip archives and exported programs, sound and broken on purpose.

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fx/base/error.h"

namespace fx::io::testing {

/// A folder that is removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& contents) const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
/// A file of the source tree.
std::string source_path(const std::string& name);

/// A record of an archive to build. What is not set is as in a sound archive.
struct TestRecord {
  std::string name;
  std::string data;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t attributes = 0;
  std::uint16_t disk = 0;
  std::optional<std::string> local_name;
  std::optional<std::uint32_t> crc;
  std::optional<std::uint32_t> local_crc;
  std::optional<std::uint64_t> size;    ///< in the directory
  std::optional<std::uint64_t> stored;  ///< in the directory
  std::optional<std::uint64_t> header_offset;
  std::string local_extra;
  std::string central_extra;
  bool descriptor = false;         ///< sizes after the contents, as torch writes
  bool zip64 = false;              ///< sizes and offset in zip64 blocks
  bool in_directory_only = false;  ///< no local part: shares another record's
};

struct TestArchive {
  std::vector<TestRecord> records;
  std::string prefix;   ///< before the first record, offsets shifted
  std::string gap;      ///< between the records and the directory
  std::string comment;  ///< with the right length in the end record
  std::string suffix;   ///< behind the end record
  bool zip64_end = false;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> directory_offset;
  std::optional<std::uint64_t> directory_size;
  std::optional<std::uint64_t> zip64_end_offset;  ///< in the locator
  std::uint16_t disk = 0;

  std::string build() const;
};

/// The records of a sound archive.
std::vector<TestRecord> records_of(const std::string& path);

/// An exported program that can be taken apart and changed.
class ProgramFile {
 public:
  /// A program of tests/io/zoo.
  explicit ProgramFile(const std::string& zoo_name);

  std::vector<TestRecord>& records() { return records_; }
  /// The record of that name inside the root folder. @throws std::out_of_range
  TestRecord& record(const std::string& name);
  void add(const std::string& name, const std::string& data);
  void remove(const std::string& name);
  /// Reads a JSON record, lets `edit` change it and puts it back.
  void edit(const std::string& name, const std::function<void(nlohmann::ordered_json&)>& edit);
  void edit_model(const std::function<void(nlohmann::ordered_json&)>& change) {
    edit("models/model.json", change);
  }
  /// Replaces text in a record; it has to occur.
  void replace(const std::string& name, const std::string& from, const std::string& to);
  const std::string& root() const { return root_; }

  std::string build() const;
  /// Writes it into `folder` and returns the path.
  std::string write(const TempDir& folder, const std::string& name = "edited.pt2") const;

 private:
  std::string root_;
  std::vector<TestRecord> records_;
};

/// Runs `action`, which has to throw an ImportError of that code with every part in its text.
void expect_import_error(ErrorCode code, const std::vector<std::string>& parts,
                         const std::function<void()>& action);

}  // namespace fx::io::testing
