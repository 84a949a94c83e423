#include "fx/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "fx/base/error.h"
#include "fx/capture/make_fx.h"
#include "fx/io/import_export.h"
#include "tests/io/archive_builder.h"

namespace fx {
namespace {

using namespace io::testing;

std::string fixture(const std::string& name) {
  return source_path("tests/io/safetensors/" + name + ".safetensors");
}

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

void expect_bad(const std::string& file, const std::vector<std::string>& parts) {
  const TempDir folder;
  const std::string path = folder.write("bad.safetensors", file);
  expect_import_error(ErrorCode::kBadSafetensors, parts, [&] { load_safetensors(path); });
}

constexpr const char* kOne = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

TEST(Safetensors, ReadsWhatTheReferenceLibraryWrote) {
  const Safetensors file = load_safetensors(fixture("dtypes"));
  ASSERT_EQ(file.tensors.size(), 17u);
  for (const auto& [name, tensor] : file.tensors) {
    SCOPED_TRACE(name);
    if (name == "t.bool") {
      EXPECT_TRUE(at::equal(tensor, torch::tensor({true, false, true})));
      continue;
    }
    ASSERT_EQ(tensor.sizes(), (std::vector<std::int64_t>{2, 3}));
    const bool fractions = at::isFloatingType(tensor.scalar_type()) || tensor.is_complex();
    const at::Tensor wanted = fractions ? torch::tensor({1.0, 2.0, 0.5, 4.0, 8.0, 1.0}).view({2, 3})
                                        : torch::arange(6).to(torch::kDouble).view({2, 3});
    const at::Tensor found = tensor.is_complex() ? at::real(tensor) : tensor;
    EXPECT_TRUE(at::equal(found.to(torch::kDouble), wanted));
  }
}

TEST(Safetensors, WritesTheBytesOfTheReferenceLibrary) {
  const TempDir folder;
  for (const char* name : {"dtypes", "odd"}) {
    Safetensors file = load_safetensors(fixture(name));
    std::ranges::reverse(file.tensors);  // the order of the caller does not matter
    save_safetensors(file.tensors, folder.path(name), file.metadata);
    EXPECT_TRUE(read_file(folder.path(name)) == read_file(fixture(name))) << name;
  }
}

TEST(Safetensors, TensorsLieInTheFileAndOutliveTheReader) {
  const TempDir folder;
  const std::string path = folder.path("w.safetensors");
  save_safetensors({{"w", torch::arange(1000).to(torch::kFloat)}}, path);
  const std::string before = read_file(path);
  at::Tensor tensor = load_safetensors(path).tensors[0].second;
  EXPECT_EQ(tensor[999].item<float>(), 999);
  tensor.fill_(1);  // this process's copy of the pages
  EXPECT_TRUE(read_file(path) == before);
}

TEST(Safetensors, AFileOfTerabytesOpensAtOnce) {
  // Sparse: 64 GB of nothing behind a header.
  const TempDir folder;
  const std::uint64_t bytes = std::uint64_t{64} << 30;
  const std::string path = folder.write(
      "large.safetensors", file_of(R"({"w":{"dtype":"U8","shape":[)" + std::to_string(bytes) +
                                       R"(],"data_offsets":[0,)" + std::to_string(bytes) + "]}}",
                                   ""));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + bytes);
  const at::Tensor tensor = load_safetensors(path).tensors[0].second;
  EXPECT_EQ(tensor.numel(), static_cast<std::int64_t>(bytes));
  EXPECT_EQ(tensor[tensor.numel() - 1].item<int>(), 0);
}

TEST(Safetensors, RefusesBrokenFiles) {
  const std::string data(8, '\0');
  expect_bad("", {"0 bytes", "no header"});
  expect_bad("1234567", {"7 bytes"});
  expect_bad(file_of(kOne, data).substr(0, 30), {"a header of", "in a file of 30"});
  expect_bad(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8) + "{}", {"at most 100000000"});
  expect_bad(file_of("", data), {"does not start with '{'"});
  expect_bad(file_of(" " + std::string(kOne), data), {"does not start with '{'"});
  expect_bad(file_of("[]", ""), {"does not start with '{'"});
  expect_bad(file_of("{", ""), {"bad.safetensors"});
  expect_bad(file_of(std::string(kOne) + "x", data), {"bad.safetensors"});
  expect_bad(file_of("{\"w\":" + std::string(1000, '['), ""), {"bad.safetensors"});
}

TEST(Safetensors, RefusesLyingHeaders) {
  const std::string data(8, '\0');
  auto one = [&](const std::string& entry) { return file_of("{\"w\":" + entry + "}", data); };
  expect_bad(one(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})"), {"w.dtype", "'F31'"});
  expect_bad(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
             {"w.data_offsets", "8 bytes, dtype and shape want 12"});
  expect_bad(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), {"w.shape[0]", "-2"});
  expect_bad(one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), {"w.shape[0]"});
  expect_bad(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"),
             {"w.shape", "multiply"});
  expect_bad(one(R"({"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]})"),
             {"w.shape", "multiply"});
  expect_bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), {"from 8 to 0"});
  expect_bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})"), {"from 0 to 9 of 8"});
  expect_bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), {"two offsets"});
  expect_bad(one(R"({"dtype":"F32","shape":[2]})"), {"data_offsets"});
  expect_bad(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})"), {"more"});
  expect_bad(one(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})"), {"dtype"});
  expect_bad(
      one(R"({"dtype":"BOOL","shape":[8],"data_offsets":[0,8]})")
          .replace(file_of("{\"w\":{\"dtype\":\"BOOL\",\"shape\":[8],\"data_offsets\":[0,8]}}", "")
                       .size(),
                   1, "\x02"),
      {"neither 0 nor 1"});
  const std::string shape(65 * 2 - 1, '1');
  std::string ones = shape;
  for (std::size_t i = 1; i < ones.size(); i += 2) ones[i] = ',';
  expect_bad(one(R"({"dtype":"F32","shape":[)" + ones + R"(],"data_offsets":[0,4]})"),
             {"65 dimensions"});
}

TEST(Safetensors, RefusesOverlapsHolesAndTwins) {
  auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    return file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                       R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                   std::string(bytes, '\0'));
  };
  expect_bad(two("[0,4]", "[2,6]", 6), {"'b'", "inside the tensor before it"});
  expect_bad(two("[0,4]", "[5,9]", 9), {"'b'", "hole from byte 4"});
  expect_bad(two("[1,5]", "[5,9]", 9), {"'a'", "hole from byte 0"});
  expect_bad(two("[0,4]", "[4,8]", 9), {"1 bytes behind"});
  expect_bad(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                     "12"),
             {"'a' occurs twice"});
  expect_bad(file_of(R"({"__metadata__":{"a":1}})", ""), {"__metadata__", "string"});
  expect_bad(file_of(R"({"a\u0000":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1"),
             {"control characters"});
}

TEST(Safetensors, EveryPrefixAndEveryFlippedBitOfTheHeaderIsAnErrorOrSound) {
  const std::string whole = read_file(fixture("odd"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(io::parse_safetensors(std::as_bytes(std::span(whole.data(), size)), "prefix"),
                 ImportError);
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      for (const auto& [name, tensor] :
           io::parse_safetensors(std::as_bytes(std::span(flipped)), "flipped").tensors)
        EXPECT_LE(tensor.nbytes(), whole.size());
      ++accepted;
    } catch (const ImportError&) {
    }
  }
  EXPECT_GT(accepted, 0u);  // bits of values and of names
}

TEST(Safetensors, RefusesToWriteWhatHasNoForm) {
  const TempDir folder;
  const std::string path = folder.path("w.safetensors");
  const at::Tensor one = torch::ones({2});
  auto refused = [&](const NamedTensors& tensors, const std::vector<std::string>& parts) {
    expect_import_error(ErrorCode::kBadSafetensors, parts,
                        [&] { save_safetensors(tensors, path); });
    EXPECT_FALSE(std::filesystem::exists(path));
  };
  refused({{"w", one.to_sparse()}}, {"'w'", "sparse"});
  refused({{"w", one.to(torch::kComplexDouble)}}, {"'w'", "ComplexDouble"});
  refused({{"w", one}, {"w", one}}, {"'w'", "twice"});
  refused({{"\xFF", one}}, {"name"});
  refused({{"__metadata__", one}}, {"name"});
  refused({{"w", at::Tensor()}}, {"'w'", "undefined"});
}

// --- into a module

std::shared_ptr<GraphModule> net() {
  torch::manual_seed(1);
  torch::nn::Sequential layers(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  return make_fx(layers, {torch::randn({2, 3})});
}

TEST(AssignStateDict, TheModuleGetsTheMemoryOfTheFile) {
  const at::NoGradGuard no_grad;
  const TempDir folder;
  const auto source = net();
  for (const auto& [name, tensor] : source->state_dict()) tensor.mul_(2);
  const std::string path = folder.path("w.safetensors");
  save_safetensors(source->state_dict(), path);

  const auto target = net();
  const at::Tensor x = torch::randn({2, 3});
  const std::vector<at::Tensor> held = target->parameters();
  EXPECT_FALSE(at::equal((*target)(x).toTensor(), (*source)(x).toTensor()));
  const Safetensors file = load_safetensors(path);
  assign_state_dict(*target, file.tensors);
  EXPECT_TRUE(at::equal((*target)(x).toTensor(), (*source)(x).toTensor()));
  for (const auto& [name, tensor] : file.tensors)
    EXPECT_EQ(target->find_tensor(name).data_ptr(), tensor.data_ptr()) << name;
  EXPECT_TRUE(held[0].is_same(target->parameters()[0]));
  EXPECT_TRUE(held[0].requires_grad());
}

TEST(AssignStateDict, RefusesWhatDoesNotFitAndChangesNothing) {
  const auto module = net();
  const auto before = module->find_tensor("0.weight").clone();
  NamedTensors state = module->state_dict();
  for (auto& [name, tensor] : state) tensor = tensor.detach().clone().zero_();
  NamedTensors fewer = state;
  fewer.pop_back();
  EXPECT_THROW(assign_state_dict(*module, fewer), GraphError);
  NamedTensors more = state;
  more.emplace_back("x.y", torch::ones({1}));
  EXPECT_THROW(assign_state_dict(*module, more), GraphError);
  NamedTensors wrong = state;
  wrong[0].second = torch::ones({1});
  EXPECT_THROW(assign_state_dict(*module, wrong), RunError);
  wrong[0].second = state[0].second.to(torch::kDouble);
  EXPECT_THROW(assign_state_dict(*module, wrong), RunError);
  EXPECT_TRUE(at::equal(module->find_tensor("0.weight"), before));
  assign_state_dict(*module, fewer, /*strict=*/false);
  EXPECT_EQ(module->find_tensor("0.weight").abs().sum().item<float>(), 0);
}

TEST(AssignStateDict, TiedNamesNeedOneTensorOnly) {
  const auto module = load(source_path("tests/io/zoo/tied_weights.pt2"));
  NamedTensors state = module->state_dict();
  std::map<const void*, std::string> seen;
  NamedTensors once;
  for (const auto& [name, tensor] : state)
    if (seen.emplace(tensor.data_ptr(), name).second)
      once.emplace_back(name, torch::ones_like(tensor));
  ASSERT_LT(once.size(), state.size());
  assign_state_dict(*module, once);
  for (const auto& [name, tensor] : module->state_dict())
    EXPECT_EQ(tensor.min().item<float>(), 1) << name;
}

}  // namespace
}  // namespace fx
