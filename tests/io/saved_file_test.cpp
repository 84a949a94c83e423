// Files that fx::save did not write, or that were damaged since: an ImportError, never a crash.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/io/atomic_file.h"
#include "fx/io/save_module.h"
#include "fx/io/zip_writer.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::expect_import_error;
using testing::read_file;
using testing::records_of;
using testing::TempDir;
using testing::TestRecord;
using Json = nlohmann::ordered_json;

/// A small file with a bit of everything, to be taken apart and changed.
class SavedFile {
 public:
  SavedFile() {
    namespace nn = torch::nn;
    auto inner_graph = std::make_shared<Graph>();
    auto inner = std::make_shared<GraphModule>(inner_graph, "Inner");
    inner->set_buffer("cache", torch::tensor({true, false}), /*persistent=*/false);
    inner_graph->output(inner_graph->get_attr("cache"));
    nn::Module root;
    root.register_module("fc", nn::Linear(3, 2));
    root.register_module("conv", nn::Conv1d(1, 1, 2));
    auto graph = std::make_shared<Graph>();
    Node& x = graph->placeholder("x");
    Node& y = graph->call_module("fc", {x});
    graph->call_module("conv", {y});
    graph->output(Argument::list({graph->call_function("aten::relu", {y})}));
    GraphModule module(root, graph, "Net");
    module.set_submodule("inner", inner);
    module.set_constant("c", torch::ones({2}));
    module.set_input_guards({{"x", at::kFloat, {{.size = 3}}}});
    module.set_specs(TreeSpec{TreeSpec::Kind::kTuple, {}, {}, {}}, TreeSpec{});
    module.meta().set("note", "text");
    save(module, path());
    records_ = records_of(path());
  }

  std::string path() const { return folder_.path("m.fxa"); }
  std::string bytes() const { return read_file(path()); }
  TestRecord& record(const std::string& name) {
    for (TestRecord& record : records_)
      if (record.name == name) return record;
    throw std::out_of_range(name);
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) {
    std::string& data = record(name).data;
    const std::size_t at = data.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << data;
    data.replace(at, from.size(), to);
  }
  void edit(const std::function<void(Json&)>& change) {
    std::string& data = record("fxa/module.json").data;
    Json json = Json::parse(data);
    change(json);
    data = json.dump();
  }
  void erase(const std::string& name) {
    std::erase_if(records_, [&](const TestRecord& record) { return record.name == name; });
  }
  void write() const {
    AtomicFile file(path());
    ZipWriter zip(file);
    for (const TestRecord& record : records_) zip.add(record.name, record.data);
    zip.finish();
    file.commit();
  }
  void expect(ErrorCode code, const std::vector<std::string>& parts) const {
    write();
    expect_import_error(code, parts, [&] { load(path()); });
  }

 private:
  TempDir folder_;
  std::vector<TestRecord> records_;
};

// Entries of module.json by class.
Json& module_of(Json& json, const std::string& name) {
  for (Json& module : json["modules"])
    if (module["class"] == name) return module;
  throw std::out_of_range(name);
}

TEST(SavedFile, WrittenAgainItLoads) {
  SavedFile file;
  file.write();
  EXPECT_EQ(load(file.path())->class_name(), "Net");
}

TEST(SavedFile, EveryPrefixIsAnError) {
  const SavedFile file;
  const std::string bytes = file.bytes();
  const TempDir folder;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string path = folder.write("cut.fxa", bytes.substr(0, size));
    EXPECT_THROW(load(path), ImportError) << size;
  }
}

TEST(SavedFile, EveryFlippedByteIsAnErrorOrAModule) {
  const SavedFile file;
  const std::string bytes = file.bytes();
  const std::string text = to_text(load(file.path())->graph());
  const TempDir folder;
  LoadOptions options;
  options.verify_weights = true;
  std::size_t loaded = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    const std::string path = folder.write("flipped.fxa", flipped);
    try {
      // Only bytes that mean nothing may change: padding, attributes, dates.
      EXPECT_EQ(to_text(load(path, options)->graph()), text) << at;
      ++loaded;
    } catch (const ImportError&) {
    }
  }
  EXPECT_LT(loaded, bytes.size() / 2);
}

TEST(SavedFile, Version) {
  SavedFile file;
  file.record("fxa/version").data = "fxcpp module 2\n";
  file.expect(ErrorCode::kSavedVersion, {"'fxcpp module 2\\n'", "'fxcpp module 1' is wanted"});
  file.record("fxa/version").data = std::string(1000, 'x');
  file.expect(ErrorCode::kSavedVersion, {"''"});
}

TEST(SavedFile, MissingRecords) {
  for (const char* name : {"fxa/module.json", "fxa/graph/0.fx", "fxa/data/0"}) {
    SavedFile file;
    file.erase(name);
    file.expect(ErrorCode::kBadSavedModule, {"lacks the record", name});
  }
}

TEST(SavedFile, TensorsThatDoNotFitTheirRecord) {
  const std::vector<std::pair<std::string, Json>> changes = {
      {"sizes", Json::array({3, 3})},
      {"sizes", Json::array({-1, 2})},
      {"sizes", Json::array({2})},
      {"strides", Json::array({-1, 1})},
      {"offset", -1},
      {"offset", 1},
      {"strides", Json::array({1LL << 62, 1LL << 62})},
      {"dtype", "float64"},
      {"sizes", Json::array({1LL << 62, 1LL << 62})}};
  for (const auto& [key, value] : changes) {
    SavedFile file;
    file.edit([&](Json& json) {
      for (Json& tensor : json["tensors"])
        if (tensor["sizes"] == Json::array({2, 3})) tensor[key] = value;
    });
    file.expect(ErrorCode::kBadWeight, {"tensors["});
  }
  SavedFile bools;
  bools.edit([&](Json& json) { json["tensors"][0]["dtype"] = "bool"; });
  bools.expect(ErrorCode::kBadWeight, {"bools"});
}

TEST(SavedFile, WrongKindsAndNumbers) {
  const std::vector<std::pair<std::string, std::function<void(Json&)>>> changes = {
      {"there is no tensor 99",
       [](Json& j) { module_of(j, "torch.nn.Linear")["parameters"][0][1] = 99; }},
      {"there is no tensor -1",
       [](Json& j) { module_of(j, "torch.nn.Linear")["parameters"][0][1] = -1; }},
      {"occurs twice",
       [](Json& j) {
         auto& p = module_of(j, "torch.nn.Linear")["parameters"];
         p[1][0] = p[0][0];
       }},
      {"cannot name an entry", [](Json& j) { j["modules"].back()["children"][0][0] = "a.b"; }},
      {"there is no module",
       [](Json& j) { j["modules"].back()["children"][0][1] = j["modules"].size() - 1; }},
      {"is no dtype", [](Json& j) { j["tensors"][0]["dtype"] = "float31"; }},
      {"hold no QInt8", [](Json& j) { j["tensors"][0]["dtype"] = "qint8"; }},
      {"is not known",
       [](Json& j) { module_of(j, "torch.nn.Linear")["class"] = "torch.nn.Nothing"; }},
      {"the parameter 'bias'",
       [](Json& j) { module_of(j, "torch.nn.Linear")["options"]["bias"] = false; }},
      {"no parameter 'extra'",
       [](Json& j) {
         module_of(j, "torch.nn.Linear")["parameters"].push_back(Json::array({"extra", 0}));
       }},
      {"the option 'bias' is missing",
       [](Json& j) { module_of(j, "torch.nn.Linear")["options"].erase("bias"); }},
      {"larger than the weight",
       [](Json& j) {
         module_of(j, "torch.nn.Conv1d")["options"]["kernel_size"] = Json::array({1 << 30});
       }},
      {"a list of 1 values",
       [](Json& j) { module_of(j, "torch.nn.Conv1d")["options"]["kernel_size"] = Json::array(); }},
      {"none of the values",
       [](Json& j) { module_of(j, "torch.nn.Conv1d")["options"]["padding_mode"] = "kSum"; }},
      {"the last module has to be a graph",
       [](Json& j) {
         while (j["modules"].size() > 1) j["modules"].erase(1);
       }},
      {"there is no buffer 'x'",
       [](Json& j) { j["modules"].back()["state"]["non_persistent"] = Json::array({"x"}); }},
      {"bad attribute path", [](Json& j) { j["modules"].back()["constants"][0][0] = "a..b"; }},
      {"unknown kind 'heap'", [](Json& j) { j["modules"].back()["state"]["in_spec"] = "heap"; }},
      {"keys for",
       [](Json& j) {
         j["modules"].back()["state"]["in_spec"] = {{"kind", "dict"}, {"children", {"leaf"}}};
       }},
      {"unknown kind 'code'", [](Json& j) { j["modules"].back()["state"]["meta"][0][1] = "code"; }},
      {"meta", [](Json& j) { j["modules"].back()["state"]["meta"][0][1] = "ranges"; }},
      {"meta", [](Json& j) { j["modules"].back()["state"]["meta"][0][2] = "'open"; }},
      {"the graph has no node 'nix'",
       [](Json& j) {
         j["modules"].back()["state"]["values"] =
             Json::array({Json::array({"nix", {{"kind", "float"}}})});
       }},
  };
  for (const auto& [part, change] : changes) {
    SCOPED_TRACE(part);
    SavedFile file;
    file.edit(change);
    file.expect(ErrorCode::kBadSavedModule, {part});
  }
}

TEST(SavedFile, Graphs) {
  const std::string root = "fxa/graph/1.fx";
  SavedFile syntax;
  syntax.replace(root, "aten::relu", "aten::relu[");
  syntax.expect(ErrorCode::kBadSavedModule, {root, "line 5"});
  SavedFile attribute;
  attribute.replace(root, "target=fc", "target=nix");
  attribute.expect(ErrorCode::kBadSavedModule, {root, "nix"});
  for (const char* name : {"aten::from_file", "torch.from_file", "mylib::op"}) {
    SavedFile forbidden;
    forbidden.replace(root, "aten::relu", name);
    forbidden.expect(ErrorCode::kForbiddenOperator, {root, "relu calls"});
  }
  SavedFile method;
  method.replace(root, "call_function[target=aten::relu]", "call_method[target=set_data]");
  method.expect(ErrorCode::kForbiddenOperator, {"set_data"});
}

// Modules that hold one another many times over: few bytes, an endless number of paths.
TEST(SavedFile, PathsAndDepthAreBounded) {
  auto containers = [](std::size_t count, std::size_t children) {
    SavedFile file;
    file.edit([&](Json& json) {
      Json root = json["modules"].back();
      Json modules = Json::array();
      for (std::size_t i = 0; i < count; ++i) {
        Json names = Json::array();
        for (std::size_t k = 0; k < children && i > 0; ++k)
          names.push_back(Json::array({std::to_string(k), i - 1}));
        modules.push_back({{"class", "torch.nn.Module"},
                           {"training", true},
                           {"parameters", Json::array()},
                           {"buffers", Json::array()},
                           {"children", names}});
      }
      json["modules"] = modules;
    });
    return file.record("fxa/module.json").data;
  };
  for (const auto& [count, children, part] : {std::tuple(40, 2, "paths lead to modules"),
                                              std::tuple(101, 1, "nest more than 100 deep")}) {
    SavedFile file;
    file.record("fxa/module.json").data =
        containers(static_cast<std::size_t>(count), static_cast<std::size_t>(children));
    file.expect(ErrorCode::kBadSavedModule, {part});
  }
  SavedFile deep;
  deep.edit([](Json& json) {
    Json spec = "leaf";
    for (int i = 0; i < 105; ++i) spec = {{"kind", "list"}, {"children", Json::array({spec})}};
    json["modules"].back()["state"]["in_spec"] = spec;
  });
  deep.expect(ErrorCode::kBadSavedModule, {"too deep"});
}

}  // namespace
}  // namespace fx::io
