#include "fx/io/pt2_archive.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "fx/base/error.h"
#include "fx/io/file_format.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

constexpr std::string_view kArchiveFormat = "pt2";
constexpr std::int64_t kArchiveVersion = 0;
/// Versions of torch's zip container (".data/version") that exist.
constexpr std::int64_t kMaxContainerVersion = 10;
constexpr std::string_view kModelsFolder = "models/";
constexpr std::string_view kJsonSuffix = ".json";
constexpr std::size_t kMaxTextRecord = 64;
/// Spare room behind a text, so that the JSON parser need not copy it again.
constexpr std::size_t kTextPadding = 64;

[[noreturn]] void fail(ErrorCode code, const std::string& path, const std::string& what) {
  throw ImportError(code, shown(path) + what);
}

/// Whether the last 22 bytes are the end record of a zip archive without a comment.
bool ends_like_zip(std::span<const std::byte> bytes) {
  constexpr std::string_view kSignature = "PK\x05\x06";
  return bytes.size() >= 22 &&
         std::memcmp(bytes.data() + bytes.size() - 22, kSignature.data(), kSignature.size()) == 0;
}

void check_format(const MappedFile& file) {
  FormatGuess guess = guess_format(file.bytes());
  // An archive behind something else has an end record too; the zip reader tells what is wrong.
  if (guess.format == FileFormat::kZip || ends_like_zip(file.bytes())) return;
  std::string what = " is " + guess.name + ", a torch.export archive (.pt2) is wanted";
  fail(guess.format == FileFormat::kPickle ? ErrorCode::kPickleFile : ErrorCode::kForeignFormat,
       file.path(), what);
}

void check_kind(const ZipReader& zip, ArchiveKind kind) {
  if (kind == ArchiveKind::kExport) return;
  ErrorCode code = ErrorCode::kForeignFormat;
  if (kind == ArchiveKind::kAotInductor) code = ErrorCode::kAotiPackage;
  if (kind == ArchiveKind::kTorchScript || kind == ArchiveKind::kTorchSave ||
      kind == ArchiveKind::kTorchPackage || kind == ArchiveKind::kLegacyExport)
    code = ErrorCode::kPickleFile;
  fail(code, zip.path(), " is " + describe(kind) + "; a torch.export archive (.pt2) is wanted");
}

/// A number of up to 18 digits, with white space after it.
std::optional<std::int64_t> parse_number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t value = 0;
  if (text.empty() || text.size() > 18) return std::nullopt;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_model_name(std::string_view name) {
  if (name.empty() || name.front() == '.') return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

}  // namespace

OpenedArchive open_archive(const std::string& path, FileAccess access) {
  OpenedArchive opened;
  opened.file = MappedFile::open(path, access);
  check_format(*opened.file);
  opened.zip = std::make_shared<const ZipReader>(opened.file->bytes(), path);
  opened.kind = classify_zip(*opened.zip);
  return opened;
}

std::string read_text(const ZipReader& zip, const ZipEntry& entry, std::string_view name,
                      std::uint64_t max_bytes) {
  if (entry.size > max_bytes)
    fail(ErrorCode::kTooLarge, zip.path(),
         ": the record " + shown(name) + " has " + std::to_string(entry.size) + " bytes, at most " +
             std::to_string(max_bytes) + " are read");
  std::span<const std::byte> data = zip.data(entry);
  std::string copy;
  copy.reserve(data.size() + kTextPadding);
  copy.assign(reinterpret_cast<const char*>(data.data()), data.size());
  zip.check_crc(entry, std::as_bytes(std::span(copy)));
  return copy;
}

Pt2Archive::Pt2Archive(OpenedArchive opened, const ArchiveOptions& options)
    : file_(std::move(opened.file)), zip_(std::move(opened.zip)), options_(options) {
  check_kind(*zip_, opened.kind);
  find_root();
  check_versions();
  list_models();
}

void Pt2Archive::find_root() {
  const std::string& first = zip_->entries().front().name;
  std::size_t slash = first.find('/');
  if (slash != std::string::npos) root_ = first.substr(0, slash);
  for (const ZipEntry& entry : zip_->entries())
    if (root_.empty() || !entry.name.starts_with(root_ + "/"))
      fail(ErrorCode::kUnsafeArchive, path(),
           " is refused: its records do not lie in one root folder (" + shown(entry.name) + ")");
}

void Pt2Archive::check_versions() const {
  std::string format = text("archive_format");
  if (format != kArchiveFormat)
    fail(ErrorCode::kUnsupportedVersion, path(),
         " has the archive format " + shown(format, kMaxTextRecord) + ", 'pt2' is wanted");
  std::string version = text("archive_version");
  if (parse_number(version) != kArchiveVersion)
    fail(
        ErrorCode::kUnsupportedVersion, path(),
        " has the archive version " + shown(version, kMaxTextRecord) + ", 0 is the only one known");
  for (const char* name : {".data/version", "version"}) {
    if (find(name) == nullptr) continue;
    std::string container = text(name);
    std::optional<std::int64_t> number = parse_number(container);
    if (!number || *number < 1 || *number > kMaxContainerVersion)
      fail(ErrorCode::kUnsupportedVersion, path(),
           " has the container version " + shown(container, kMaxTextRecord) + " in " + name +
               ", a number from 1 to " + std::to_string(kMaxContainerVersion) + " is wanted");
  }
  if (find("byteorder") != nullptr) {
    std::string order = text("byteorder");
    if (order != "little")
      fail(ErrorCode::kUnsupportedVersion, path(),
           " was written with byte order " + shown(order, kMaxTextRecord) + ", 'little' is wanted");
  }
}

void Pt2Archive::list_models() {
  const std::string folder = root_ + "/" + std::string(kModelsFolder);
  for (const ZipEntry& entry : zip_->entries()) {
    std::string_view name = entry.name;
    if (!name.starts_with(folder) || !name.ends_with(kJsonSuffix)) continue;
    name = name.substr(folder.size(), name.size() - folder.size() - kJsonSuffix.size());
    if (!is_model_name(name))
      fail(ErrorCode::kUnsafeArchive, path(),
           " is refused: " + shown(entry.name) +
               " is no model name (letters, digits, '_', '-' and '.' are allowed)");
    model_names_.emplace_back(name);
  }
  std::ranges::sort(model_names_);
}

const ZipEntry* Pt2Archive::find(std::string_view name) const {
  return zip_->find(root_ + "/" + std::string(name));
}

const ZipEntry& Pt2Archive::get(std::string_view name, std::string_view wanted_by) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr)
    fail(ErrorCode::kMissingRecord, path(),
         " lacks the record " + shown(name) +
             (wanted_by.empty() ? "" : ", which " + std::string(wanted_by) + " names"));
  return *entry;
}

std::string Pt2Archive::text(std::string_view name) const {
  const ZipEntry& entry = get(name);
  std::string text = read_text(*zip_, entry, name, options_.max_json_bytes);
  file_->forget(zip_->data(entry));
  return text;
}

std::span<const std::byte> Pt2Archive::weight(const ZipEntry& entry) const {
  if (options_.verify_weights) zip_->check_crc(entry);
  return zip_->data(entry);
}

}  // namespace fx::io
