#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fx::io {

class ZipReader;

/// What a file is, as far as its first bytes tell.
enum class FileFormat {
  kZip,      ///< starts with a zip record; classify_zip() tells more
  kEmpty,    ///< no bytes
  kPickle,   ///< Python pickle, for example an old torch.save file
  kForeign,  ///< another known or unknown format
};

struct FormatGuess {
  FileFormat format;
  std::string name;  ///< "an ONNX model", "a safetensors file"; fit for "<path> is <name>"
};

/// Guesses from magic numbers. Reads at most 128 bytes. Never throws.
FormatGuess guess_format(std::span<const std::byte> bytes);

/// The kinds of zip archive that PyTorch's tools write, and ours.
enum class ArchiveKind {
  kSaved,         ///< fx::save: a GraphModule (docs/archive-format.md)
  kExport,        ///< torch.export.save, torch 2.8 and later: a program with its weights
  kAotInductor,   ///< torch._inductor.aoti_compile_and_package: compiled code
  kLegacyExport,  ///< torch.export.save of torch 2.7 and older
  kTorchScript,   ///< torch.jit.save
  kTorchSave,     ///< torch.save: a pickle with tensors
  kTorchPackage,  ///< torch.package
  kNumpy,         ///< numpy.savez
  kKeras,         ///< Keras 3
  kOther,
};

/// Tells the kind by record names alone.
ArchiveKind classify_zip(const ZipReader& zip);

/// The name of a kind, fit for "<path> is <name>".
std::string describe(ArchiveKind kind);

}  // namespace fx::io
