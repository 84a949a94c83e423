#include "tests/io/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "fx/interpret/interpreter.h"
#include "fx/io/npy.h"

namespace fx::io::testing {

using nlohmann::json;

void PrintTo(const ZooEntry& entry, std::ostream* out) { *out << entry.path(); }

std::vector<ZooEntry> read_manifests() {
  std::vector<std::string> folders;
  if (const char* folder = std::getenv("FXCPP_ZOO"); folder != nullptr)
    folders = {folder};
  else
    for (const char* name : {"zoo", "versions/2.9", "versions/2.12"})
      folders.push_back(std::string(FXCPP_SOURCE_DIR "/tests/io/") + name);
  std::vector<ZooEntry> entries;
  for (const std::string& folder : folders) {
    std::ifstream in(folder + "/manifest.json");
    const json manifest = json::parse(in);
    std::string version = manifest.at("torch");
    version = version.substr(0, version.rfind('.'));
    std::replace(version.begin(), version.end(), '.', '_');
    for (const json& model : manifest.at("models")) entries.push_back({folder, version, model});
  }
  return entries;
}

Value read_value(const ZooEntry& entry, const json& item) {
  if (item.contains("file")) return io::read_npy(entry.path(item.at("file").get<std::string>()));
  const json& value = item.at("value");
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  return value.get<std::string>();
}

void expect_close(const Value& actual, const Value& expected, double rtol, double atol,
                  const std::string& what) {
  ASSERT_EQ(actual.isTensor(), expected.isTensor()) << what;
  if (!expected.isTensor()) {
    EXPECT_EQ(to_string(actual), to_string(expected)) << what;
    return;
  }
  const at::Tensor& a = actual.toTensor();
  const at::Tensor& b = expected.toTensor();
  ASSERT_EQ(a.scalar_type(), b.scalar_type()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_TRUE(at::allclose(a, b, rtol, atol, /*equal_nan=*/true))
      << what << ": largest difference "
      << (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

void flatten_value(const Value& value, Values& leaves) {
  if (is_sequence(value)) {
    for (const Value& item : elements(value)) flatten_value(item, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) flatten_value(item.value(), leaves);
  } else {
    leaves.push_back(value);
  }
}

Values call_flat(GraphModule& module, const Values& flat) {
  RunOptions options;
  Values args = flat;
  if (module.in_spec()) {
    std::size_t position = 0;
    const Values pair = elements(unflatten(*module.in_spec(), flat, position));
    args = elements(pair[0]);
    for (const auto& item : pair[1].toGenericDict())
      options.kwargs.push_back({Symbol(item.key().toStringRef()), item.value()});
  }
  Values leaves;
  flatten_value(Interpreter(module).run(std::move(args), options), leaves);
  return leaves;
}

}  // namespace fx::io::testing
