// Files that are no sound exported program: what they are is said, and nothing else happens.

#include "fx/io/pt2_archive.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fx/io/file_format.h"
#include "fx/io/import_export.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;
using testing::ProgramFile;
using testing::read_file;
using testing::source_path;
using testing::TempDir;
using testing::TestArchive;
using testing::TestRecord;
using namespace std::string_literals;

std::string zip_of(std::initializer_list<std::string> names) {
  TestArchive archive;
  for (const std::string& name : names) {
    TestRecord record;
    record.name = name;
    record.data = "x";
    archive.records.push_back(record);
  }
  return archive.build();
}

TEST(Pt2Archive, OpensAndFindsItsRecords) {
  const Pt2Archive archive = Pt2Archive::open(source_path("models/digits.pt2"));
  EXPECT_EQ(archive.root(), "digits");
  EXPECT_EQ(archive.model_names(), std::vector<std::string>{"model"});
  EXPECT_EQ(archive.text("archive_format"), "pt2");
  EXPECT_EQ(archive.find("data/weights/weight_99"), nullptr);
  expect_import_error(ErrorCode::kMissingRecord, {"'data/weights/weight_99'", "which me names"},
                      [&] { archive.get("data/weights/weight_99", "me"); });
}

TEST(Pt2Archive, OneCharacterMoreThanTheLimitIsTooLarge) {
  ArchiveOptions options;
  options.max_json_bytes = 2;
  expect_import_error(ErrorCode::kTooLarge, {"'archive_format' has 3 bytes, at most 2"},
                      [&] { Pt2Archive::open(source_path("models/digits.pt2"), options); });
}

TEST(Pt2Archive, CopiedFileSurvivesItsTruncation) {
  TempDir folder;
  const std::string path =
      folder.write("m.pt2", read_file(source_path("tests/io/zoo/buffers.pt2")));
  const Pt2Archive archive = Pt2Archive::open(path, {.access = FileAccess::kCopy});
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(archive.text("archive_format"), "pt2");
}

TEST(MappedFile, WritingToItLeavesTheFile) {
  TempDir folder;
  const std::string path = folder.write("f", "hello");
  for (FileAccess access : {FileAccess::kMap, FileAccess::kCopy}) {
    auto file = MappedFile::open(path, access);
    file->mutable_data()[0] = std::byte{'J'};
    EXPECT_EQ(file->bytes()[0], std::byte{'J'});
    EXPECT_EQ(read_file(path), "hello");
  }
  EXPECT_EQ(MappedFile::open(folder.write("empty", ""))->size(), 0u);
}

TEST(OpenErrors, WhatIsNotARegularFile) {
  TempDir folder;
  auto expect = [](const std::string& path, const std::string& part) {
    expect_import_error(ErrorCode::kOpenFailed, {"Cannot open", part}, [&] { load(path); });
  };
  expect(folder.path("absent.pt2"), "No such file");
  expect(folder.path(), "a directory");
  expect("/dev/zero", "a device");
  expect("", "No such file");
  expect("a\0b"s, "NUL character");
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  expect(folder.path("pipe"), "a pipe");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THROW(load(folder.path("socket")), ImportError);
  ::close(fd);
  if (::geteuid() != 0) {
    const std::string secret = folder.write("secret.pt2", "x");
    ::chmod(secret.c_str(), 0);
    expect(secret, "Permission denied");
  }
}

TEST(ForeignFormats, AreNamed) {
  struct Case {
    std::string bytes;
    ErrorCode code;
    std::string part;
  };
  const std::string zeros(16, '\0');
  const std::vector<Case> cases = {
      {"", ErrorCode::kForeignFormat, "an empty file"},
      {"PYTORCH1"s + zeros, ErrorCode::kForeignFormat, "preview format"},
      {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s, ErrorCode::kPickleFile,
       "PyTorch 1.5 or older"},
      {"\x80\x04\x95\x0b"s + zeros, ErrorCode::kPickleFile, "a Python pickle"},
      {"\x10\0\0\0\0\0\0\0{\"a\":{}}        "s + zeros, ErrorCode::kForeignFormat, "safetensors"},
      {"\x08\x07\x12\x07pytorch"s, ErrorCode::kForeignFormat, "an ONNX model"},
      {"GGUF\x03"s + zeros, ErrorCode::kForeignFormat, "GGUF"},
      {"\x1c\0\0\0TFL3"s + zeros, ErrorCode::kForeignFormat, "TensorFlow Lite"},
      {"\x1c\0\0\0ET12"s + zeros, ErrorCode::kForeignFormat, "ExecuTorch"},
      {"\x89HDF\r\n\x1a\n"s, ErrorCode::kForeignFormat, "HDF5"},
      {"\x93NUMPY\x01"s, ErrorCode::kForeignFormat, "NumPy array"},
      {"\x1f\x8b\x08"s, ErrorCode::kForeignFormat, "gzip"},
      {"\x7f"s + "ELF", ErrorCode::kForeignFormat, "ELF"},
      {std::string(257, 'a') + "ustar", ErrorCode::kForeignFormat, "tar archive"},
      {"version https://git-lfs.github.com/spec/v1\n", ErrorCode::kForeignFormat, "git lfs pull"},
      {"<!DOCTYPE html>", ErrorCode::kForeignFormat, "HTML page"},
      {"{\"a\": 1}", ErrorCode::kForeignFormat, "JSON"},
      {"hello world", ErrorCode::kForeignFormat, "not in a known format"},
      {zip_of({"archive/data.pkl", "archive/data/0"}), ErrorCode::kPickleFile, "torch.save file"},
      {zip_of({"m/constants.pkl", "m/data.pkl", "m/code/x.py"}), ErrorCode::kPickleFile,
       "TorchScript"},
      {zip_of({"m/data/aotinductor/model/x.so", "m/archive_format"}), ErrorCode::kAotiPackage,
       "AOTInductor package"},
      {zip_of({"serialized_exported_program.json", "serialized_state_dict.pt", "version"}),
       ErrorCode::kPickleFile, "torch 2.7 or older"},
      {zip_of({"p/.data/extern_modules"}), ErrorCode::kPickleFile, "torch.package"},
      {zip_of({"a.npy", "b.npy"}), ErrorCode::kForeignFormat, ".npz"},
      {zip_of({"model.weights.h5", "config.json"}), ErrorCode::kForeignFormat, "Keras"},
      {zip_of({"m/readme.txt"}), ErrorCode::kForeignFormat, "holds no exported program"},
  };
  TempDir folder;
  for (const Case& c : cases) {
    const std::string path = folder.write("file", c.bytes);
    expect_import_error(c.code, {c.part, "torch.export"}, [&] { load(path); });
    expect_import_error(c.code, {c.part}, [&] { inspect(path); });
  }
}

TEST(ForeignFormats, AnArchiveBehindSomethingElseIsAPolyglot) {
  TempDir folder;
  const std::string junk = "#!/bin/sh\n";
  const std::string path =
      folder.write("file", junk + read_file(source_path("tests/io/zoo/relu.pt2")));
  EXPECT_THROW(load(path), ImportError);
}

TEST(ArchiveErrors, EveryPrefixOfAnArchive) {
  TempDir folder;
  const std::string whole = read_file(source_path("tests/io/zoo/relu.pt2"));
  for (std::size_t n = 0; n < whole.size(); n += n < 100 || n + 200 > whole.size() ? 1 : 13) {
    const std::string path = folder.write("cut.pt2", whole.substr(0, n));
    EXPECT_THROW(load(path), ImportError) << n;
  }
}

TEST(ArchiveErrors, RootFolder) {
  TempDir folder;
  ProgramFile file("relu");
  for (TestRecord& record : file.records()) record.name = record.name.substr(5);
  expect_import_error(ErrorCode::kForeignFormat, {"holds no exported program"},
                      [&] { load(file.write(folder)); });
  ProgramFile two("relu");
  two.records().back().name = "other/x";
  expect_import_error(ErrorCode::kUnsafeArchive, {"one root folder", "'other/x'"},
                      [&] { load(two.write(folder)); });
}

TEST(ArchiveErrors, Versions) {
  struct Case {
    std::string record, contents, part;
  };
  const std::vector<Case> cases = {
      {"archive_format", "pt3", "archive format 'pt3', 'pt2' is wanted"},
      {"archive_version", "999", "archive version '999'"},
      {"archive_version", "-1", "archive version '-1'"},
      {"archive_version", "", "archive version ''"},
      {".data/version", "abc", "container version 'abc'"},
      {".data/version", "99999999999999999999999", "container version"},
      {".data/version", "11", "container version '11'"},
      {"byteorder", "big", "byte order 'big'"},
  };
  TempDir folder;
  for (const Case& c : cases) {
    ProgramFile file("relu");
    file.record(c.record).data = c.contents;
    expect_import_error(ErrorCode::kUnsupportedVersion, {c.part},
                        [&] { load(file.write(folder)); });
  }
  for (const char* record : {"archive_format", "archive_version"}) {
    ProgramFile file("relu");
    file.remove(record);
    expect_import_error(ErrorCode::kMissingRecord, {record}, [&] { load(file.write(folder)); });
  }
}

TEST(ArchiveErrors, JsonIsAlwaysCompared) {
  TempDir folder;
  ProgramFile file("relu");
  file.record("models/model.json").crc = 77;
  expect_import_error(ErrorCode::kChecksum, {"'relu/models/model.json'"},
                      [&] { load(file.write(folder)); });
}

TEST(ArchiveErrors, WeightsAreComparedOnRequest) {
  TempDir folder;
  ProgramFile file("buffers");
  file.record("data/weights/weight_0").crc = 77;
  const std::string path = file.write(folder);
  EXPECT_NO_THROW(load(path));
  expect_import_error(ErrorCode::kChecksum, {"weight_0"},
                      [&] { load(path, {.verify_weights = true}); });
}

TEST(ArchiveErrors, ModelNames) {
  TempDir folder;
  ProgramFile file("relu");
  file.record("models/model.json").name = "relu/models/a b.json";
  expect_import_error(ErrorCode::kUnsafeArchive, {"is no model name"},
                      [&] { load(file.write(folder)); });
  ProgramFile ignored("relu");
  ignored.add("models/readme.txt", "hello");
  EXPECT_NO_THROW(load(ignored.write(folder)));
}

TEST(ArchiveErrors, SeveralPrograms) {
  TempDir folder;
  ProgramFile file("relu");
  file.add("models/second.json", file.record("models/model.json").data);
  for (const char* name : {"weights", "constants"})
    file.add("data/"s + name + "/second_" + name + "_config.json", R"({"config": {}})");
  const std::string path = file.write(folder);
  expect_import_error(ErrorCode::kMissingRecord, {"several programs ('model', 'second')"},
                      [&] { load(path); });
  expect_import_error(ErrorCode::kMissingRecord, {"no program 'third'"},
                      [&] { load(path, {.model = "third"}); });
  EXPECT_NO_THROW(load(path, {.model = "second"}));
  EXPECT_EQ(inspect(path).programs.size(), 2u);
}

TEST(ArchiveErrors, ConfigsThatAreMissingOrPickled) {
  TempDir folder;
  ProgramFile missing("relu");
  missing.remove("data/weights/model_weights_config.json");
  expect_import_error(ErrorCode::kMissingRecord, {"model_weights_config.json"},
                      [&] { load(missing.write(folder)); });
  ProgramFile pickled("relu");
  pickled.add("data/weights/model.pt", "cos\nsystem\n(S'true'\ntR.");
  expect_import_error(ErrorCode::kPickleFile, {"data/weights/model.pt", "2.8"},
                      [&] { load(pickled.write(folder)); });
}

TEST(ArchiveErrors, SampleInputsAreNeverLookedAt) {
  TempDir folder;
  ProgramFile file("relu");
  file.record("data/sample_inputs/model.pt").data = "cos\nsystem\n(S'touch executed'\ntR.";
  EXPECT_NO_THROW(load(file.write(folder)));
  file.remove("data/sample_inputs/model.pt");
  EXPECT_NO_THROW(load(file.write(folder)));
}

TEST(ArchiveErrors, OlderConfigNames) {
  TempDir folder;
  ProgramFile file("buffers");
  file.record("data/weights/model_weights_config.json").name =
      "buffers/data/weights/model_model_param_config.json";
  file.record("data/constants/model_constants_config.json").name =
      "buffers/data/constants/model_model_constants_config.json";
  EXPECT_NO_THROW(load(file.write(folder)));
}

}  // namespace
}  // namespace fx::io
