#include "fx/io/npy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "fx/io/atomic_file.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;
using testing::read_file;
using testing::source_path;
using testing::TempDir;
using namespace std::string_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

at::Tensor numpy_file(const std::string& name) {
  return read_npy(source_path("tests/io/npy/" + name + ".npy"));
}

/// A version 1.0 file with that header dict and data.
std::string npy(const std::string& header, const std::string& data = "") {
  const std::string padded = header + "\n";
  return "\x93NUMPY\x01"s + '\0' + static_cast<char>(padded.size() & 0xFF) +
         static_cast<char>(padded.size() >> 8) + padded + data;
}

std::size_t files_in(const TempDir& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator(folder.path()))
    ++count;
  return count;
}

TEST(NpyRead, EveryElementTypeThatNumpyWrites) {
  const std::vector<std::pair<std::string, at::ScalarType>> types = {
      {"bool", at::kBool},       {"i1", at::kChar},          {"u1", at::kByte},
      {"i2", at::kShort},        {"u2", at::kUInt16},        {"i4", at::kInt},
      {"u4", at::kUInt32},       {"i8", at::kLong},          {"u8", at::kUInt64},
      {"f2", at::kHalf},         {"f4", at::kFloat},         {"f8", at::kDouble},
      {"c8", at::kComplexFloat}, {"c16", at::kComplexDouble}};
  for (const auto& [name, type] : types) {
    const at::Tensor tensor = numpy_file(name);
    EXPECT_EQ(tensor.scalar_type(), type) << name;
    EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{2, 3})) << name;
    EXPECT_TRUE(tensor.is_contiguous());
    const std::string file = read_file(source_path("tests/io/npy/" + name + ".npy"));
    const std::string data(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    EXPECT_EQ(data, file.substr(file.size() - tensor.nbytes())) << name;
  }
}

TEST(NpyRead, ShapesOrdersAndVersions) {
  const at::Tensor wanted = at::arange(24, at::kFloat).reshape({2, 3, 4});
  for (const char* name : {"c_order", "fortran", "version2", "version3"}) {
    EXPECT_TRUE(at::equal(numpy_file(name), wanted)) << name;
    EXPECT_TRUE(numpy_file(name).is_contiguous()) << name;
  }
  EXPECT_EQ(numpy_file("scalar").dim(), 0);
  EXPECT_EQ(numpy_file("scalar").item<double>(), 2.5);
  EXPECT_TRUE(at::equal(numpy_file("one_dim"), at::arange(5)));
  EXPECT_EQ(numpy_file("empty").sizes(), (std::vector<std::int64_t>{0, 3}));
}

TEST(NpyWrite, RoundTrips) {
  TempDir folder;
  std::vector<at::Tensor> tensors = {
      at::randn({3, 4}),
      at::randn({2, 3, 4}).transpose(0, 2),
      at::randn({}, at::kDouble),
      at::randn({5}).to(at::kHalf),
      at::randn({5}).to(at::kBFloat16),
      at::randn({2, 0, 3}),
      at::randint(0, 2, {7}).to(at::kBool),
      at::randint(-100, 100, {4, 4}).to(at::kChar),
      at::randint(0, 100, {4, 4}).to(at::kUInt64),
      at::randn({3}, at::kComplexFloat),
      at::conj(at::randn({3}, at::kComplexDouble)),
      at::randn({4}).set_requires_grad(true),
      at::randn({1}).expand({3}),
      at::ones({1, 1, 1, 1, 1, 1, 1, 1}),
  };
  for (const at::Tensor& tensor : tensors) {
    write_npy(folder.path("t.npy"), tensor);
    const at::Tensor back = read_npy(folder.path("t.npy"));
    EXPECT_EQ(back.scalar_type(), tensor.scalar_type());
    EXPECT_EQ(back.sizes(), tensor.sizes());
    EXPECT_TRUE(at::equal(back, tensor.detach().contiguous())) << tensor;
    EXPECT_EQ(files_in(folder), 1u);
  }
}

TEST(NpyWrite, GivesTheBytesThatNumpyGives) {
  TempDir folder;
  for (const char* name :
       {"bool", "i1", "u8", "f2", "f4", "c16", "scalar", "one_dim", "empty", "c_order"}) {
    write_npy(folder.path("t.npy"), numpy_file(name));
    EXPECT_EQ(read_file(folder.path("t.npy")),
              read_file(source_path("tests/io/npy/"s + name + ".npy")))
        << name;
  }
}

TEST(NpyErrors, TypesThatTorchLacks) {
  const auto code = ErrorCode::kNpyDtype;
  auto file = [](const std::string& name) { return [name] { numpy_file(name); }; };
  expect_import_error(code, {"pickled Python objects", "'|O'"}, file("object"));
  expect_import_error(code, {"a structured type"}, file("structured"));
  expect_import_error(code, {"strings", "'<U2'"}, file("unicode"));
  expect_import_error(code, {"dates"}, file("date"));
  expect_import_error(code, {"big endian", "newbyteorder"}, file("big_endian"));
  TempDir folder;
  auto write = [&](const at::Tensor& tensor) {
    return [&folder, tensor] { write_npy(folder.path("t.npy"), tensor); };
  };
  expect_import_error(code, {"undefined"}, write(at::Tensor()));
  expect_import_error(code, {"sparse"}, write(at::eye(3).to_sparse()));
  expect_import_error(code, {"NumPy has no type for Float8_e4m3fn"},
                      write(at::zeros({2}).to(at::kFloat8_e4m3fn)));
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(NpyErrors, MalformedFiles) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(read_npy(bytes_of(npy(good, "12345678")), "t").numel(), 2);
  struct Case {
    std::string bytes, part;
  };
  auto shape = [](const std::string& text) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + ", }", "12345678");
  };
  const std::vector<Case> cases = {
      {"", "an empty file, a .npy file is wanted"},
      {"PK\x03\x04", "a zip archive"},
      {"\x93NUMPY", "ends inside its header"},
      {"\x93NUMPY\x01\0\xff\xff"s, "ends inside its header"},
      {"\x93NUMPY\x04\0\x01\0"s, "format version 4.0"},
      {"\x93NUMPY\x01\x01\x01\0"s, "format version 1.1"},
      {"\x93NUMPY\x02\0\xff\xff\xff\x7f"s, "its header has 2147483647 bytes"},
      {npy("x"), "no '{' at byte 0"},
      {npy("{}"), "not all of descr, fortran_order and shape"},
      {npy("{'descr': '<f4'}"), "not all of"},
      {npy("{'descr': '<f4', 'descr': '<f4'}"), "the key 'descr' twice"},
      {npy("{'evil': 1}"), "an unknown key 'evil'"},
      {npy("{'descr' '<f4'}"), "no ':'"},
      {npy("{'descr': '<f4' 'shape': ()}"), "no comma after the value of 'descr'"},
      {npy("{'descr': '<f4"), "a string without end"},
      {npy("{'descr': '\\x3cf4'}"), "an escape"},
      {npy("{'descr': 4}"), "no string"},
      {npy("{'fortran_order': None}"), "neither True nor False"},
      {npy(good + "x", "12345678"), "text after the dict"},
      {shape("(2"), "something else than 64-bit integers"},
      {shape("(2 3)"), "no comma in its shape"},
      {shape("(-2,)"), "a negative size"},
      {shape("(2.5,)"), "no comma in its shape"},
      {shape("('a',)"), "something else than 64-bit integers"},
      {shape("(99999999999999999999,)"), "something else than 64-bit integers"},
      {shape("(" + std::string(195, '1').insert(0, "") + ",)"), "64-bit integers"},
      {shape("(3,)"), "8 bytes of data, its shape wants 12"},
      {shape("(1,)"), "8 bytes of data, its shape wants 4"},
      {shape("(4611686018427387904, 4)"), "its shape wants more than 2^63"},
      {shape("(0, 4611686018427387904, 4)"), "its shape wants more than 2^63"},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\0\1\2"s),
       "neither 0 nor 1"},
  };
  for (const Case& c : cases)
    expect_import_error(ErrorCode::kBadNpy, {"here", c.part},
                        [&] { read_npy(bytes_of(c.bytes), "here"); });
  std::string dims = "(";
  for (int i = 0; i < 65; ++i) dims += "1, ";
  expect_import_error(ErrorCode::kBadNpy, {"more than 64 dimensions"},
                      [&] { read_npy(bytes_of(shape(dims + ")")), "t"); });
  for (const char* descr : {"", "f4", "<q9", "<f16", "x"})
    expect_import_error(ErrorCode::kNpyDtype, {}, [&] {
      read_npy(bytes_of(npy("{'descr': '"s + descr + "', 'fortran_order': False, 'shape': (), }")),
               "t");
    });
}

TEST(NpyErrors, EveryPrefixAndEveryBitFlip) {
  const std::string whole = read_file(source_path("tests/io/npy/f4.npy"));
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(read_npy(bytes_of(whole.substr(0, n)), "t"), ImportError) << n;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      const at::Tensor tensor = read_npy(bytes_of(flipped), "t");
      EXPECT_LE(tensor.nbytes(), whole.size());
    } catch (const ImportError&) {
    }
  }
}

TEST(AtomicFile, NothingIsLeftWithoutCommit) {
  TempDir folder;
  const std::string path = folder.write("f", "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(files_in(folder), 2u);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
  AtomicFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFile, FoldersThatAreNotThere) {
  TempDir folder;
  auto write = [&](const std::string& path) { return [path] { write_npy(path, at::ones({2})); }; };
  expect_import_error(ErrorCode::kWriteFailed, {"Cannot write", "No such file"},
                      write(folder.path("no/such/folder.npy")));
  expect_import_error(ErrorCode::kWriteFailed, {"Cannot write"}, write(""));
  expect_import_error(ErrorCode::kWriteFailed, {"Cannot write"}, write("a\0b"s));
  std::filesystem::create_directory(folder.path("d"));
  expect_import_error(ErrorCode::kWriteFailed, {"Is a directory"}, write(folder.path("d")));
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFile, AFullDiskLeavesTheOldFile) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  // A link to /dev/full cannot be reached, since the temporary file lies beside the target; a limit
  // on the size of files stands in for the full disk.
  TempDir folder;
  const std::string path = folder.write("f", "old");
  const std::string program = "ulimit -f 1; exec 2>/dev/null; trap \"\" XFSZ; \"" +
                              std::filesystem::read_symlink("/proc/self/exe").string() +
                              "\" --gtest_filter=AtomicFile.DISABLED_WriteLarge "
                              "--gtest_also_run_disabled_tests >/dev/null";
  ::setenv("FXCPP_TEST_TARGET", path.c_str(), 1);
  EXPECT_NE(std::system(("bash -c '" + program + "'").c_str()), -1);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

/// Run by the test above in a process that may write 1 kB only.
TEST(AtomicFile, DISABLED_WriteLarge) {
  expect_import_error(ErrorCode::kWriteFailed, {"File too large"},
                      [] { write_npy(std::getenv("FXCPP_TEST_TARGET"), at::zeros({100'000})); });
}

TEST(NpyPython, NumpyReadsWhatWeWrite) {
  const char* python = std::getenv("FXCPP_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "FXCPP_PYTHON names no Python";
  TempDir folder;
  write_npy(folder.path("a.npy"), at::arange(6, at::kFloat).reshape({2, 3}));
  write_npy(folder.path("b.npy"), at::scalar_tensor(7, at::kLong));
  write_npy(folder.path("c.npy"), at::ones({2}, at::kBFloat16));
  const std::string script = folder.write(
      "check.py",
      "import sys, numpy as np\n"
      "d = sys.argv[1]\n"
      "a = np.load(d + '/a.npy'); b = np.load(d + '/b.npy'); c = np.load(d + '/c.npy')\n"
      "assert a.dtype == np.float32 and (a == np.arange(6).reshape(2, 3)).all()\n"
      "assert b.shape == () and b == 7 and b.dtype == np.int64\n"
      "assert c.dtype == np.dtype('V2') and c.tobytes() == b'\\x80\\x3f' * 2\n");
  EXPECT_EQ(std::system((std::string(python) + " " + script + " " + folder.path()).c_str()), 0);
}

}  // namespace
}  // namespace fx::io
