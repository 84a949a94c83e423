#include "fx/io/file_format.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "fx/io/zip_reader.h"

namespace fx::io {
namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  const char* name;
};

constexpr std::array kMagics = {
    Magic{0, "PYTORCH1"sv, "a file in the preview format of PyTorch 1.0"},
    Magic{0, "\x93NUMPY"sv, "a NumPy array (.npy)"},
    Magic{0, "GGUF"sv, "a GGUF model (llama.cpp)"},
    Magic{4, "TFL3"sv, "a TensorFlow Lite model"},
    Magic{4, "ET1"sv, "an ExecuTorch program (.pte)"},
    Magic{0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras .h5)"},
    Magic{0, "\x1f\x8b"sv, "a gzip file"},
    Magic{0, "BZh"sv, "a bzip2 file"},
    Magic{0, "\xfd\x37zXZ\0"sv, "an xz file"},
    Magic{0, "\x28\xb5\x2f\xfd"sv, "a zstd file"},
    Magic{0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
    Magic{0, "Rar!"sv, "a RAR archive"},
    Magic{0, "\x7f\x45LF"sv, "a compiled ELF file (.so or program)"},
    Magic{257, "ustar"sv, "a tar archive"},
    Magic{0, "version https://git-lfs"sv,
          "a Git LFS pointer, not the file itself (run git lfs pull)"},
    Magic{0, "<!DOCTYPE"sv, "an HTML page, perhaps a failed download"},
    Magic{0, "<!doctype"sv, "an HTML page, perhaps a failed download"},
    Magic{0, "<html"sv, "an HTML page, perhaps a failed download"},
    Magic{0, "<?xml"sv, "an XML file (OpenVINO models start so)"},
    Magic{0, "{"sv, "a text file that looks like JSON"},
};

bool has(std::span<const std::byte> bytes, std::size_t offset, std::string_view magic) {
  if (bytes.size() < offset || bytes.size() - offset < magic.size()) return false;
  return std::equal(magic.begin(), magic.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, std::byte b) {
                      return static_cast<unsigned char>(a) == std::to_integer<unsigned char>(b);
                    });
}

/// 8 bytes of header length, then a JSON object.
bool is_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 || bytes[8] != std::byte{'{'}) return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return length >= 2 && length <= bytes.size() - 8;
}

/// An ONNX ModelProto starts with field 1 (ir_version, a small varint), then a field of
/// length-delimited or varint kind with a number up to 20.
bool is_onnx(std::span<const std::byte> bytes) {
  if (bytes.size() < 4 || bytes[0] != std::byte{0x08}) return false;
  auto version = std::to_integer<unsigned>(bytes[1]), next = std::to_integer<unsigned>(bytes[2]);
  return version >= 1 && version < 64 && (next & 7) == 2 && (next >> 3) >= 2 && (next >> 3) <= 20;
}

}  // namespace

FormatGuess guess_format(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {FileFormat::kEmpty, "an empty file"};
  if (has(bytes, 0, "PK\x03\x04"sv) || has(bytes, 0, "PK\x05\x06"sv))
    return {FileFormat::kZip, "a zip archive"};
  // Legacy torch.save starts with a pickled magic number, every protocol 2 to 5 pickle with 0x80
  // and it.
  if (bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] >= std::byte{2} &&
      bytes[1] <= std::byte{5}) {
    if (has(bytes, 2, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv))
      return {FileFormat::kPickle, "a torch.save file of PyTorch 1.5 or older (a pickle)"};
    return {FileFormat::kPickle, "a Python pickle"};
  }
  if (is_safetensors(bytes))
    return {FileFormat::kForeign, "a safetensors file: weights without a program"};
  for (const Magic& magic : kMagics)
    if (has(bytes, magic.offset, magic.bytes)) return {FileFormat::kForeign, magic.name};
  if (is_onnx(bytes)) return {FileFormat::kForeign, "an ONNX model"};
  return {FileFormat::kForeign, "not in a known format"};
}

ArchiveKind classify_zip(const ZipReader& zip) {
  bool export_program = false, aoti = false, data_pkl = false, constants_pkl = false, numpy = false;
  bool package = false;
  for (const ZipEntry& entry : zip.entries()) {
    std::string_view name = entry.name;
    if (name == "fxa/version") return ArchiveKind::kSaved;
    if (name == "serialized_exported_program.json") return ArchiveKind::kLegacyExport;
    if (name == "model.weights.h5") return ArchiveKind::kKeras;
    numpy = numpy || name.ends_with(".npy");
    std::size_t slash = name.find('/');
    if (slash == std::string_view::npos) continue;
    std::string_view inside = name.substr(slash + 1);
    export_program = export_program || (inside.starts_with("models/") && inside.ends_with(".json"));
    aoti = aoti || inside.starts_with("data/aotinductor/");
    data_pkl = data_pkl || inside == "data.pkl";
    constants_pkl = constants_pkl || inside == "constants.pkl";
    package = package || inside == ".data/extern_modules";
  }
  if (export_program) return ArchiveKind::kExport;
  if (aoti) return ArchiveKind::kAotInductor;
  if (constants_pkl) return ArchiveKind::kTorchScript;
  if (data_pkl) return ArchiveKind::kTorchSave;
  if (package) return ArchiveKind::kTorchPackage;
  if (numpy) return ArchiveKind::kNumpy;
  return ArchiveKind::kOther;
}

std::string describe(ArchiveKind kind) {
  switch (kind) {
    case ArchiveKind::kSaved:
      return "a module that fx::save wrote";
    case ArchiveKind::kExport:
      return "a torch.export archive";
    case ArchiveKind::kAotInductor:
      return "an AOTInductor package: it holds compiled code and no program that could be read";
    case ArchiveKind::kLegacyExport:
      return "a torch.export file of torch 2.7 or older, which keeps its weights in a pickle";
    case ArchiveKind::kTorchScript:
      return "a TorchScript archive (torch.jit.save)";
    case ArchiveKind::kTorchSave:
      return "a torch.save file: tensors in a pickle, no program";
    case ArchiveKind::kTorchPackage:
      return "a torch.package archive: Python code and pickles";
    case ArchiveKind::kNumpy:
      return "a NumPy archive (.npz)";
    case ArchiveKind::kKeras:
      return "a Keras model";
    case ArchiveKind::kOther:
      break;
  }
  return "a zip archive without models/*.json, so it holds no exported program";
}

}  // namespace fx::io
