// What fx::save writes, fx::load gives back.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "fx/base/error.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/text.h"
#include "fx/io/mapped_file.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/save_module.h"
#include "fx/io/value_meta.h"
#include "fx/io/zip_writer.h"
#include "fx/passes/pass_manager.h"
#include "tests/io/saved_again.h"

namespace fx::io {
namespace {

using testing::expect_equal;
using testing::expect_import_error;
using testing::memory;
using testing::ramp;
using testing::read_file;
using testing::saved_and_loaded;
using testing::source_path;
using testing::TempDir;
namespace nn = torch::nn;

TEST(SavedModule, N_030_G_119_F_029_F_041_F_055_M_014_graph_comes_back_as_it_was) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", "Tensor");
  Node& scale = graph->create_node(Opcode::kPlaceholder, Target::string("scale"), {2.5}, {},
                                   "scale", "tuple");
  Node& sum = graph->call_function("aten::add.Tensor", {x, x}, {{"alpha", 3}});
  sum.set_type("Tensor");
  sum.meta().set("stack_trace", "line 1\nline 2 '\\x");
  sum.meta().set("count", std::int64_t{7});
  sum.meta().set("ratio", 0.1);
  sum.meta().set("flag", true);
  sum.meta().set("shape", Argument::list({1, 2}));
  sum.meta().set("not_kept", std::vector<int>{1});
  Node& part = graph->call_function(
      "operator.getitem", {sum, Argument::tuple({Argument::slice({}, 1), Argument::ellipsis()})});
  Node& product = graph->call_method("mul", {part, scale});
  graph->output(Argument::dict({{"y", product}, {"n", Argument()}, {"dtype", at::kHalf}}));
  GraphModule module(graph, "Net");
  module.eval();
  module.meta().set("note", "text");
  module.meta().set("ints", Argument::list({1}));
  module.meta().set("warnings", std::vector<std::string>{"one", "two"});
  module.meta().set("range_constraints", RangeConstraints{{"s0", {2, std::nullopt}}});
  module.set_input_guards({{"x", at::kFloat, {{.size = 2}, {.symbol = "s0", .min = 2, .max = 9}}}});
  module.set_mutations({"x", "scale"});
  TreeSpec leaf, args{TreeSpec::Kind::kTuple, {}, {}, {leaf, leaf}};
  TreeSpec kwargs{TreeSpec::Kind::kDict, {}, {}, {}};
  TreeSpec point{TreeSpec::Kind::kNamedTuple, {"a", "b"}, "Point", {leaf, {TreeSpec::Kind::kNone}}};
  module.set_specs(TreeSpec{TreeSpec::Kind::kTuple, {}, {}, {args, kwargs}}, point);

  const auto loaded = saved_and_loaded(module);
  expect_equal(module, *loaded);
  loaded->graph().lint({.strict = true});
  const Meta& meta = loaded->graph().find_node("add_tensor")->meta();
  EXPECT_EQ(*meta.get<std::string>("stack_trace"), "line 1\nline 2 '\\x");
  EXPECT_EQ(*meta.get<std::int64_t>("count"), 7);
  EXPECT_EQ(*meta.get<double>("ratio"), 0.1);
  EXPECT_TRUE(*meta.get<bool>("flag"));
  EXPECT_NE(meta.get<Argument>("shape"), nullptr);
  EXPECT_FALSE(meta.contains("not_kept"));
  EXPECT_EQ(*loaded->meta().get<std::string>("note"), "text");
  EXPECT_EQ(loaded->meta().get<std::vector<std::string>>("warnings")->at(1), "two");
  EXPECT_EQ(loaded->meta().get<RangeConstraints>("range_constraints")->at(0).second.first, 2);
  EXPECT_EQ(loaded->input_guards(), module.input_guards());
  EXPECT_EQ(loaded->mutations(), module.mutations());
  EXPECT_EQ(loaded->in_spec(), module.in_spec());
  EXPECT_EQ(loaded->out_spec(), module.out_spec());
}

TEST(SavedModule, F_207_E_031_attributes_of_all_kinds_also_unused_ones) {
  GraphModule gm;
  gm.set_parameter("deep.weight", ramp({2, 3}).set_requires_grad(true));
  gm.set_parameter("frozen", ramp({2}).to(torch::kDouble));
  gm.set_buffer("steps", torch::tensor(5));
  gm.set_buffer("deep.cache", ramp({4}), /*persistent=*/false);
  gm.set_buffer("none", at::Tensor());
  gm.set_buffer("empty", torch::empty({0, 3}));
  gm.set_buffer("mask", torch::tensor({true, false}));
  gm.set_constant("table", torch::tensor({1.5, -0.0}, torch::kBFloat16));
  gm.set_constant("z", torch::view_as_complex(ramp({2, 2})).conj());
  gm.set_submodule("unused", nn::Linear(2, 2).ptr());
  gm.graph().output(gm.graph().get_attr("table"));
  const auto loaded = saved_and_loaded(gm);
  expect_equal(gm, *loaded);
  EXPECT_TRUE(loaded->find_tensor("deep.weight").requires_grad());
  EXPECT_TRUE(at::equal(loaded->find_tensor("deep.cache"), ramp({4})));
  EXPECT_EQ(loaded->attr_kind("table"), GraphOwner::AttrKind::kConstant);
  EXPECT_TRUE(loaded->find_tensor("z").is_conj());
  EXPECT_TRUE(at::equal(loaded->find_tensor("z"), gm.find_tensor("z")));
  EXPECT_FALSE(loaded->find_tensor("none").defined());
  EXPECT_EQ(loaded->find_tensor("empty").sizes(), at::IntArrayRef({0, 3}));
  EXPECT_NE(std::dynamic_pointer_cast<nn::LinearImpl>(loaded->find_submodule("unused")), nullptr);
  EXPECT_TRUE(at::equal((*loaded)().toTensor(), gm.find_tensor("table")));
}

TEST(SavedModule, tensors_that_share_memory_share_it_again) {
  GraphModule gm;
  const at::Tensor state = ramp({3, 4});
  gm.set_parameter("a", state);
  gm.set_parameter("tied", state);
  gm.set_buffer("turned", state.t());
  gm.set_constant("row", state[1]);
  gm.set_buffer("bytes", state.view(torch::kInt));
  gm.set_buffer("tail", state.view({12}).slice(0, 5, 12, 3));
  const TempDir folder;
  save(gm, folder.path("m.fxa"));
  EXPECT_LT(std::filesystem::file_size(folder.path("m.fxa")), 3000u);
  const auto loaded = load(folder.path("m.fxa"));
  const at::Tensor a = loaded->find_tensor("a");
  EXPECT_TRUE(a.is_same(loaded->find_tensor("tied")));
  for (const char* path : {"turned", "row", "bytes", "tail"}) {
    const at::Tensor mine = gm.find_tensor(path), theirs = loaded->find_tensor(path);
    EXPECT_TRUE(at::equal(mine, theirs)) << path;
    EXPECT_EQ(mine.strides(), theirs.strides()) << path;
    EXPECT_EQ(mine.storage_offset(), theirs.storage_offset()) << path;
    EXPECT_EQ(memory(a), memory(theirs)) << path;
  }
  // Writing changes this process's memory, not the file.
  a.fill_(-1);
  EXPECT_TRUE((loaded->find_tensor("tail") == -1).all().item<bool>());
  EXPECT_TRUE(at::equal(load(folder.path("m.fxa"))->find_tensor("a"), state));
}

TEST(SavedModule, weights_lie_in_the_file) {
  GraphModule gm;
  gm.set_parameter("w", torch::randn({1000}));
  const TempDir folder;
  save(gm, folder.path("m.fxa"));
  const OpenedArchive archive = open_archive(folder.path("m.fxa"), FileAccess::kMap);
  const auto loaded = load_saved(archive, {});
  const auto* data = static_cast<const std::byte*>(loaded->find_tensor("w").const_data_ptr());
  const auto bytes = archive.file->bytes();
  EXPECT_TRUE(data >= bytes.data() && data < bytes.data() + bytes.size());
  EXPECT_EQ((data - bytes.data()) % 64, 0);
}

// Waiting for the disk changes no byte, and what stood there before is replaced as a whole.
TEST(SavedModule, without_waiting_for_the_disk) {
  GraphModule gm;
  gm.set_parameter("w", torch::randn({1000}));
  const TempDir folder;
  save(gm, folder.path("m.fxa"));
  save(GraphModule(), folder.path("fast.fxa"));
  save(gm, folder.path("fast.fxa"), {.flush = false});
  EXPECT_TRUE(read_file(folder.path("fast.fxa")) == read_file(folder.path("m.fxa")));
  EXPECT_TRUE(at::equal(load(folder.path("fast.fxa"))->find_tensor("w"), gm.find_tensor("w")));
}

TEST(SavedModule, nested_graphs_and_a_module_under_two_paths) {
  auto inner_graph = std::make_shared<Graph>();
  auto inner = std::make_shared<GraphModule>(inner_graph, "Inner");
  inner->set_parameter("w", ramp({4}));
  inner->set_constant("c", ramp({4}));
  Node& i = inner_graph->placeholder("i");
  Node& m = inner_graph->call_function("operator.mul", {i, inner_graph->get_attr("w")});
  inner_graph->output(inner_graph->call_function("operator.add", {m, inner_graph->get_attr("c")}));
  inner->recompile();
  auto graph = std::make_shared<Graph>();
  GraphModule outer(graph, "Outer");
  outer.set_submodule("block.inner", inner);
  outer.set_submodule("again", inner);
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module("again", {graph->call_module("block.inner", {x})}));
  outer.recompile();
  inner->eval();
  const auto loaded = saved_and_loaded(outer);
  expect_equal(outer, *loaded);
  const auto again = std::dynamic_pointer_cast<GraphModule>(loaded->find_submodule("again"));
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again, loaded->find_submodule("block.inner"));
  EXPECT_FALSE(again->is_training());
  EXPECT_TRUE(loaded->is_training());
  expect_equal(*inner, *again);
  EXPECT_TRUE(at::equal((*loaded)(ramp({4})).toTensor(), outer(ramp({4})).toTensor()));
}

TEST(SavedModule, F_042_F_061_targets_of_all_kinds) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->call_function("my_function", {x});
  Node& z = graph->call_function("torch.nn.functional.relu", {y});
  graph->output(graph->call_function("math.floor", {z}));
  expect_equal(GraphModule(graph), *saved_and_loaded(GraphModule(graph)));
}

TEST(SavedModule, R_078_what_cannot_be_saved_is_named) {
  const TempDir folder;
  auto refuse = [&](const GraphModule& gm, const std::vector<std::string>& parts) {
    expect_import_error(ErrorCode::kNotSavable, parts, [&] { save(gm, folder.path("m.fxa")); });
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  };
  GraphModule sparse;
  sparse.set_buffer("a.b", torch::eye(2).to_sparse());
  refuse(sparse, {"the tensor 'a.b'", "sparse"});
  GraphModule meta;
  meta.set_parameter("w", torch::empty({2}, torch::kMeta));
  refuse(meta, {"'w'", "on device meta"});
  GraphModule name(std::make_shared<Graph>(), "\xff");
  refuse(name, {"the class name of the module", "UTF-8"});
  GraphModule bools;
  bools.set_buffer("b", torch::full({2}, 7, torch::kByte).view(torch::kBool));
  refuse(bools, {"'b'", "no bools"});
  GraphModule broken;
  broken.set_buffer("gone", torch::ones({1}));
  broken.graph().output(broken.graph().get_attr("gone"));
  broken.delete_tensor("gone");
  EXPECT_THROW(save(broken, folder.path("m.fxa")), LintError);
  expect_import_error(ErrorCode::kWriteFailed, {"Cannot write"},
                      [&] { save(GraphModule(), folder.path("no/m.fxa")); });
}

TEST(SavedModule, an_exported_program_and_its_optimised_form) {
  torch::NoGradGuard no_grad;
  const auto module = load(source_path("models/digits.pt2"));
  PassManager("fuse_conv_bn,dce").run(*module);
  const auto loaded = saved_and_loaded(*module);
  expect_equal(*module, *loaded);
  const at::Tensor x = torch::randn({3, 1, 8, 8});
  EXPECT_TRUE(at::equal((*module)(x).toTensor(), (*loaded)(x).toTensor()));
  EXPECT_EQ(loaded->input_guards(), module->input_guards());
  const auto* before = module->graph().placeholders()[0]->meta().get<ValueMetaPtr>("val");
  const auto* after = loaded->graph().placeholders()[0]->meta().get<ValueMetaPtr>("val");
  ASSERT_NE(after, nullptr);
  EXPECT_EQ((*after)->str(), (*before)->str());
  EXPECT_EQ((*after)->strides.size(), (*before)->strides.size());
}

TEST(SavedModule, what_was_captured) {
  torch::NoGradGuard no_grad;
  nn::Sequential net(nn::Conv2d(3, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten());
  net->eval();
  const at::Tensor x = torch::randn({1, 3, 5, 5});
  const auto traced = symbolic_trace(net.ptr());
  EXPECT_TRUE(at::equal((*saved_and_loaded(*traced))(x).toTensor(), net->forward(x)));
}

TEST(ZipWriter, LargeNumbersAreWrittenInSixtyFourBits) {
  const TempDir folder;
  AtomicFile file(folder.path("z.zip"));
  ZipWriter zip(file, /*zip64_from=*/1);
  zip.add("a/empty", std::string_view());
  zip.add("a/b", "contents");
  zip.finish();
  file.commit();
  const auto mapped = MappedFile::open(folder.path("z.zip"));
  const ZipReader reader(mapped->bytes(), "z.zip");
  ASSERT_EQ(reader.entries().size(), 2u);
  const ZipEntry& entry = *reader.find("a/b");
  EXPECT_EQ(entry.size, 8u);
  EXPECT_EQ(entry.data_offset % 64, 0u);
  reader.check_crc(entry);
}

}  // namespace
}  // namespace fx::io
