// What save_pt2 writes is read again by fx::load as the same graph. That Python runs it is tested
// in save_pt2_python_test.cpp.

#include "fx/io/save_pt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fx/base/error.h"
#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/export_schema.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/save_module.h"
#include "fx/io/schema_writer.h"
#include "fx/io/value_meta.h"
#include "fx/passes/pass_manager.h"
#include "tests/io/archive_builder.h"
#include "tests/io/save_pt2_programs.h"
#include "tests/io/zoo.h"

namespace fx {
namespace {

using nlohmann::json;
using namespace io::testing;

class SavedZoo : public testing::TestWithParam<ZooEntry> {};

TEST_P(SavedZoo, IsTheSameProgram) {
  const at::NoGradGuard no_grad;
  const TempDir folder;
  const std::shared_ptr<GraphModule> before = load(GetParam().path());
  const std::string path = folder.path("again.pt2");
  const std::shared_ptr<GraphModule> after = written_and_read(*before, path);
  EXPECT_EQ(text_of(*before), text_of(*after));
  EXPECT_EQ(before->in_spec(), after->in_spec());
  EXPECT_EQ(before->out_spec(), after->out_spec());
  EXPECT_EQ(before->input_guards(), after->input_guards());
  const auto state = before->state_dict(), state_after = after->state_dict();
  ASSERT_EQ(state.size(), state_after.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].first, state_after[i].first);
    EXPECT_EQ(state[i].second.requires_grad(), state_after[i].second.requires_grad());
    EXPECT_EQ(state[i].second.strides(), state_after[i].second.strides());
    EXPECT_TRUE(at::equal(state[i].second, state_after[i].second)) << state[i].first;
  }
  // The file depends on the program alone.
  const std::string bytes = read_file(path);
  save_pt2(*after, path);
  EXPECT_TRUE(read_file(path) == bytes);

  for (const json& call : GetParam().data.at("calls")) {
    Values flat, copies;
    for (const json& input : call.at("inputs")) {
      flat.push_back(read_value(GetParam(), input));
      copies.push_back(flat.back().isTensor() ? Value(flat.back().toTensor().clone())
                                              : flat.back());
    }
    const Values expected = call_flat(*before, flat), actual = call_flat(*after, copies);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      expect_close(actual[i], expected[i], 0, 0, "output " + std::to_string(i));
  }
}

TEST_P(SavedZoo, KeepsEveryValueOfTheSchema) {
  const io::Pt2Archive archive(io::open_archive(GetParam().path(), io::FileAccess::kMap), {});
  const std::string text = archive.text("models/model.json");
  json wanted = json::parse(text);
  json found =
      json::parse(io::schema::to_json(io::schema::parse_exported_program(text, GetParam().path())));
  // A null and a missing key are the same: older versions lack the keys of newer ones.
  const auto strip = [](auto&& self, json& value) -> void {
    if (value.is_array())
      for (json& item : value) self(self, item);
    if (!value.is_object()) return;
    for (auto it = value.begin(); it != value.end();) {
      self(self, it.value());
      it = it->is_null() ? value.erase(it) : std::next(it);
    }
  };
  strip(strip, wanted);
  strip(strip, found);
  found.merge_patch(json{{"schema_version", wanted.at("schema_version")}});
  EXPECT_TRUE(found == wanted) << json::diff(wanted, found).dump(1);
}

INSTANTIATE_TEST_SUITE_P(Zoo, SavedZoo, testing::ValuesIn(running_programs()),
                         [](const auto& info) {
                           return info.param.name() + "_torch_" + info.param.version;
                         });

// --- edits of loaded programs

/// The values that the file says of its tensors.
json tensor_values(const std::string& path) {
  const io::Pt2Archive archive(io::open_archive(path, io::FileAccess::kMap), {});
  return json::parse(archive.text("models/model.json"))
      .at("graph_module")
      .at("graph")
      .at("tensor_values");
}

TEST(SavePt2, NewNodesOfADynamicGraphHaveSymbolicSizes) {
  const TempDir folder;
  auto module = load(zoo_path("dynamic_batch"));
  Graph& graph = module->graph();
  Node* x = graph.placeholders().front();
  const auto& claim = **x->meta().get<io::ValueMetaPtr>("val");
  ASSERT_FALSE(claim.sizes[0].is_known());
  const std::string symbol = claim.sizes[0].str();
  Node* output = &graph.output_node();
  const auto guard = graph.inserting_before(*output);
  Node& doubled = graph.call_function("aten::cat", {Argument::list({*x, *x}), 0});
  Node& flat = graph.call_function("aten::flatten.using_ints", {doubled});
  Node& used = graph.call_function("aten::relu", {*x});
  std::vector<Argument> results(output->arg(0).items().begin(), output->arg(0).items().end());
  results[0] = Argument(used);
  output->set_args({Argument::tuple(results)});
  Node& sum = graph.call_function("aten::sum", {flat});
  results[1] = Argument(sum);
  output->set_args({Argument::tuple(results)});
  module->recompile();

  const std::string path = folder.path("edited.pt2");
  const auto again = written_and_read(*module, path);
  auto type = [&](const std::string& name) {
    return (*again->graph().find_node(name)->meta().get<io::ValueMetaPtr>("val"))->str();
  };
  EXPECT_THAT(type(std::string(used.name())), testing::HasSubstr("[" + symbol + ", "));
  EXPECT_THAT(type(std::string(doubled.name())), testing::HasSubstr("[2*" + symbol + ", "));
  EXPECT_THAT(type(std::string(flat.name())), testing::HasSubstr("*" + symbol + "]"));
  EXPECT_EQ(text_of(*again), text_of(*written_and_read(*again, path)));
}

TEST(SavePt2, StaleMetadataIsReplaced) {
  const TempDir folder;
  auto module = load(zoo_path("relu"));
  Graph& graph = module->graph();
  Node* relu = graph.find_calls("aten::relu").front();
  const auto guard = graph.inserting_before(*relu);
  Node& narrowed = graph.call_function("aten::narrow", {relu->arg(0), 1, 0, 2});
  relu->update_arg(0, narrowed);
  const std::string path = folder.path("narrowed.pt2");
  save_pt2(*module, path);
  EXPECT_EQ(tensor_values(path).at(std::string(relu->name())).at("sizes"),
            json::parse(R"([{"as_int": 3}, {"as_int": 2}])"));
}

TEST(SavePt2, TheExtensionDecides) {
  const TempDir folder;
  auto module = load(zoo_path("relu"));
  save(*module, folder.path("a.pt2"));
  EXPECT_FALSE(io::inspect(folder.path("a.pt2")).is_saved);
  save(*module, folder.path("a.fxa"));
  EXPECT_TRUE(io::inspect(folder.path("a.fxa")).is_saved);
}

TEST(SavePt2, OnlyTheNeededPartOfAMemoryIsWritten) {
  const TempDir folder;
  auto module = by_hand();
  const at::Tensor large = torch::randn({1000, 3});
  module->set_parameter("w", large.narrow(0, 500, 4));
  const std::string path = folder.path("part.pt2");
  save_pt2(*module, path, {.example_inputs = {torch::randn({2, 3})}});
  EXPECT_LT(read_file(path).size(), 12000u);
  EXPECT_TRUE(at::equal(load(path)->find_tensor("w"), large.narrow(0, 500, 4)));
}

// --- what is refused

void expect_refused(const GraphModule& module, const std::vector<std::string>& parts,
                    const SavePt2Options& options = {}) {
  const TempDir folder;
  const std::string path = folder.path("refused.pt2");
  expect_import_error(ErrorCode::kNotExportable, parts, [&] { save_pt2(module, path, options); });
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(SavePt2, RefusesWithACompleteList) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& method = graph->call_method("relu", {x});
  Node& function = graph->call_function("torch.add", {method, 1});
  Node& own = graph->call_function("my_function", {function});
  graph->output(graph->call_function("operator.mul", {own, x}));
  GraphModule module(graph);
  module.set_input_guards({exact_guard("x", torch::ones({2}))});
  expect_refused(module, {"method 'relu'", "function 'torch.add'", "function 'my_function'",
                          "function 'operator.mul'", "example_inputs"});
}

TEST(SavePt2, RefusesChecksOfValuesAndSaysHowToDoWithout) {
  const TempDir folder;
  const auto program = [](at::Tensor x) { return x.sum().item<float>() > 0 ? x * 2 : -x; };
  const auto checked = make_fx(program, {torch::ones({2})});
  expect_refused(*checked, {"a check of a value (torch._assert)", "torch::where",
                            "MakeFxOptions::guard_values", ".fxa"});
  // Without them the graph is what the example showed.
  const auto unchecked = make_fx(program, {torch::ones({2})}, {.guard_values = false});
  unchecked->graph().eliminate_dead_code();
  unchecked->recompile();
  const auto read = written_and_read(*unchecked, folder.path("unchecked.pt2"));
  EXPECT_TRUE(torch::equal((*read)(torch::ones({2})).toTensor(), torch::full({2}, 2.)));
}

TEST(SavePt2, RefusesWhatIsNotKnownOfInputs) {
  auto graph = std::make_shared<Graph>();
  graph->output(graph->call_function("torch.relu", {graph->placeholder("x")}));
  expect_refused(GraphModule(graph), {"input 'x'", "example_inputs", "function 'torch.relu'"});
}

TEST(SavePt2, RefusesTensorsWithoutForm) {
  auto module = by_hand();
  module->set_parameter("w", torch::randn({4, 3}).to_sparse());
  expect_refused(*module, {"'w'", "sparse"}, {.example_inputs = {torch::randn({2, 3})}});
}

TEST(SavePt2, RefusesTiesThatAWriteWouldBreak) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& total = graph->call_function("aten::add_.Tensor", {graph->get_attr("total"), x});
  graph->output(graph->call_function("aten::mul.Tensor", {total, graph->get_attr("view")}));
  GraphModule module(graph);
  const at::Tensor memory = torch::zeros({2});
  module.set_buffer("total", memory);
  module.set_constant("view", memory.view({1, 2}));
  module.set_input_guards({exact_guard("x", torch::ones({2}))});
  expect_refused(module, {"'total'", "'view'", "share memory"});
}

TEST(SavePt2, RefusesADefaultThatIsComputedWith) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& n = graph->placeholder_with_default("n", 2);
  graph->output(graph->call_function("aten::mul.Tensor", {x, n}));
  GraphModule module(graph);
  module.set_input_guards({exact_guard("x", torch::ones({2}))});
  expect_refused(module, {"input 'n'", "default"});
}

}  // namespace
}  // namespace fx
