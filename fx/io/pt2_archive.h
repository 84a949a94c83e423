#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/io/mapped_file.h"
#include "fx/io/zip_reader.h"

namespace fx::io {

enum class ArchiveKind;  // file_format.h

/// How an archive is opened.
struct ArchiveOptions {
  FileAccess access = FileAccess::kMap;
  /// Compare weights with their checksums too (about 15 GB/s). JSON records are always compared.
  bool verify_weights = false;
  /// Largest JSON record that is read, in bytes.
  std::uint64_t max_json_bytes = std::uint64_t{256} << 20;
};

/// A file that is a sound zip archive, of any kind.
struct OpenedArchive {
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const ZipReader> zip;
  ArchiveKind kind{};
};

/// @throws ImportError kOpenFailed, kForeignFormat, kPickleFile, kCorruptArchive, kUnsafeArchive.
///   O(records).
OpenedArchive open_archive(const std::string& path, FileAccess access);

/// The contents of a text record, its checksum compared, as a copy (the file may change under a
/// mapping while the text is parsed), with room behind it for the JSON parser. `name` is for
/// messages. @throws ImportError kChecksum, kTooLarge.
std::string read_text(const ZipReader& zip, const ZipEntry& entry, std::string_view name,
                      std::uint64_t max_bytes);

/// A torch.export archive (.pt2): the records of one file, found by their names inside the root
/// folder. Reads nothing but names and a few small records until asked. Copies share the file.
class Pt2Archive {
 public:
  /// Opens and checks the archive: zip structure, kind of file, versions, byte order. Throws
  /// ImportError: kOpenFailed, kForeignFormat, kAotiPackage, kPickleFile, kCorruptArchive,
  /// kUnsafeArchive, kUnsupportedVersion, kMissingRecord, kChecksum. O(records).
  static Pt2Archive open(const std::string& path, const ArchiveOptions& options = {}) {
    return Pt2Archive(open_archive(path, options.access), options);
  }
  Pt2Archive(OpenedArchive opened, const ArchiveOptions& options);

  const std::string& path() const { return file_->path(); }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  const ArchiveOptions& options() const { return options_; }
  const ZipReader& zip() const { return *zip_; }
  /// Folder that all records lie in, without a slash; torch uses the file's name.
  const std::string& root() const { return root_; }

  /// The names of the programs in the archive ("model" if torch.export.save was given one), sorted.
  const std::vector<std::string>& model_names() const { return model_names_; }

  /// The record `name` inside the root folder, or null.
  const ZipEntry* find(std::string_view name) const;
  /// The same; throws ImportError kMissingRecord. `wanted_by` says who names it, for the message.
  const ZipEntry& get(std::string_view name, std::string_view wanted_by = {}) const;

  /// The contents of a text record, its checksum compared, as a copy (the file may change under a
  /// mapping while the text is parsed). Throws kMissingRecord, kChecksum, kTooLarge.
  std::string text(std::string_view name) const;

  /// The contents of a weight; compares the checksum if the options say so.
  std::span<const std::byte> weight(const ZipEntry& entry) const;

 private:
  void find_root();
  void check_versions() const;
  void list_models();

  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const ZipReader> zip_;
  ArchiveOptions options_;
  std::string root_;
  std::vector<std::string> model_names_;
};

}  // namespace fx::io
