// What a loaded program is: values, weights, metadata, guards.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fx/io/export_schema.h"
#include "fx/io/import_export.h"
#include "fx/io/npy.h"
#include "fx/io/pt2_archive.h"
#include "fx/io/value_meta.h"
#include "fx/io/weights.h"
#include "tests/io/archive_builder.h"

namespace fx::io {
namespace {

using testing::ProgramFile;
using testing::read_file;
using testing::source_path;
using testing::TempDir;

std::shared_ptr<GraphModule> digits() { return load(source_path("models/digits.pt2")); }

TEST(Digits, AccuracyAndLogitsArePythons) {
  at::NoGradGuard no_grad;
  std::ifstream in(source_path("models/digits_expected.json"));
  const nlohmann::json expected = nlohmann::json::parse(in);
  const at::Tensor x = read_npy(source_path("models/digits_test_x.npy"));
  const at::Tensor y = read_npy(source_path("models/digits_test_y.npy"));
  const at::Tensor wanted = read_npy(source_path("models/digits_logits.npy"));
  auto module = digits();
  const at::Tensor logits = (*module)(x).toTensor();
  EXPECT_TRUE(at::allclose(logits, wanted, expected.at("logits_rtol"), expected.at("logits_atol")));
  EXPECT_EQ(logits.argmax(1).eq(y).sum().item<std::int64_t>(),
            expected.at("correct").get<std::int64_t>());
}

TEST(Digits, GraphIsReadable) {
  const std::string text = digits()->graph().str();
  EXPECT_NE(text.find("%conv2d : [num_users=1] = call_function[target=aten::conv2d](args = (%x, "
                      "%p_conv1_weight, None, [1, 1], [1, 1]), kwargs = {})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%p_conv1_weight : [num_users=1] = get_attr[target=conv1.weight]"),
            std::string::npos);
  // Buffers that nothing reads have no node, and are in the state all the same.
  EXPECT_EQ(text.find("num_batches_tracked"), std::string::npos);
  EXPECT_TRUE(digits()->find_tensor("bn1.num_batches_tracked").defined());
}

TEST(Digits, SchemaIsReadWhole) {
  const Pt2Archive archive = Pt2Archive::open(source_path("models/digits.pt2"));
  const schema::ExportedProgram program =
      schema::parse_exported_program(archive.text("models/model.json"), "here");
  EXPECT_EQ(program.schema_major, 8);
  EXPECT_EQ(program.torch_version.substr(0, 4), "2.15");
  EXPECT_EQ(program.range_constraints.size(), 1u);
  EXPECT_EQ(program.range_constraints[0].second.min, 1);
  EXPECT_EQ(program.range_constraints[0].second.max, 4096);
  EXPECT_TRUE(program.warnings.empty());
  const schema::Graph& graph = program.graph_module.graph;
  EXPECT_EQ(graph.nodes.size(), 13u);
  EXPECT_EQ(graph.nodes[0].target, "torch.ops.aten.conv2d.default");
  EXPECT_EQ(graph.nodes[0].inputs[2].name, "bias");
  EXPECT_EQ(graph.nodes[0].inputs[2].arg.tag(), "as_none");
  EXPECT_EQ(graph.nodes[0].inputs[3].arg.tag(), "as_ints");
  EXPECT_EQ(*graph.nodes[0].name, "conv2d");
  EXPECT_EQ(program.graph_module.signature.input_specs.size(), graph.inputs.size());
  EXPECT_EQ(program.graph_module.signature.input_specs[0].target, "conv1.weight");
  EXPECT_EQ(program.graph_module.module_call_graph.size(), 10u);
}

TEST(Digits, G_124_Metadata) {
  auto module = digits();
  const Node* conv = module->graph().find_node("conv2d");
  const ValueMetaPtr* meta = conv->meta().get<ValueMetaPtr>("val");
  ASSERT_NE(meta, nullptr);
  EXPECT_EQ((*meta)->str(), "f32[s77, 16, 8, 8]");
  EXPECT_EQ((*meta)->sizes[0].value, 2);  // at export
  EXPECT_NE(conv->stack_trace().find("train_digits.py"), std::string::npos);
  const auto* function = conv->meta().get<std::string>("torch_fn");
  ASSERT_NE(function, nullptr);
  EXPECT_NE(function->find("conv2d"), std::string::npos) << *function;
  using ModuleStack = std::vector<std::pair<std::string, std::string>>;
  const ModuleStack* stack = conv->meta().get<ModuleStack>("nn_module_stack");
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(*stack,
            (ModuleStack{{"", "__main__.DigitsNet"}, {"conv1", "torch.nn.modules.conv.Conv2d"}}));
  EXPECT_EQ(module->meta().get<std::string>("torch_version")->substr(0, 4), "2.15");
  const auto* ranges = module->meta().get<RangeConstraints>("range_constraints");
  ASSERT_NE(ranges, nullptr);
  EXPECT_EQ((*ranges)[0].first, "s77");
}

TEST(Digits, InputsAreChecked) {
  auto module = digits();
  const std::vector<InputGuard>& guards = module->input_guards();
  ASSERT_EQ(guards.size(), 1u);
  EXPECT_EQ(guards[0].str(), "f32[s77, 1, 8, 8]");
  EXPECT_FALSE(guards[0].dims[0].min.has_value());  // bounds up to 2 are no restriction
  EXPECT_EQ(guards[0].dims[0].max, 4096);
  EXPECT_THROW((*module)(at::zeros({2, 1, 8, 9})), RunError);
  EXPECT_THROW((*module)(at::zeros({5000, 1, 8, 8})), RunError);
  EXPECT_THROW((*module)(at::zeros({2, 1, 8, 8}, at::kDouble)), RunError);
  EXPECT_NO_THROW((*module)(at::zeros({7, 1, 8, 8})));
}

TEST(Digits, Summary) {
  const ArchiveSummary summary = inspect(source_path("models/digits.pt2"));
  EXPECT_EQ(summary.num_records, 30u);
  EXPECT_FALSE(summary.has_aoti_code);
  ASSERT_EQ(summary.programs.size(), 1u);
  const ProgramSummary& program = summary.programs[0];
  EXPECT_EQ(program.schema_version, "8.20");
  EXPECT_EQ(program.in_spec, "((*,), {})");
  EXPECT_EQ(program.out_spec, "*");
  ASSERT_EQ(program.inputs.size(), 1u);
  EXPECT_EQ(program.inputs[0].type, "f32[s77, 1, 8, 8]");
  EXPECT_EQ(program.outputs[0].type, "f32[s77, 10]");
  EXPECT_EQ(program.num_nodes, 13u);
  EXPECT_EQ(program.num_parameters, 12u);
  EXPECT_EQ(program.num_buffers, 9u);
  EXPECT_EQ(program.parameter_elements, 24122u);
  EXPECT_EQ(program.operators[0].second, 3u);
}

TEST(Summary, ConstantsMutationAndSymbols) {
  const auto inputs = inspect(source_path("tests/io/zoo/constant_inputs.pt2")).programs[0].inputs;
  ASSERT_EQ(inputs.size(), 6u);
  EXPECT_EQ(inputs[1].type, "= 2");
  EXPECT_EQ(inputs[2].type, "= 0.5");
  EXPECT_EQ(inputs[3].type, "= True");
  EXPECT_EQ(inputs[4].type, "= 'linear'");
  EXPECT_EQ(inputs[5].type, "= None");
  EXPECT_EQ(inspect(source_path("tests/io/zoo/buffer_mutation_functional.pt2")).programs[0].mutated,
            (std::vector<std::string>{"count", "total"}));
  EXPECT_EQ(inspect(source_path("tests/io/zoo/symbolic_sizes.pt2")).programs[0].outputs[0].type,
            "f32[2*s77 + 1, s77//2]");
}

TEST(Weights, LieInTheFileAndStayWhenItIsRemoved) {
  TempDir folder;
  const std::string path =
      folder.write("m.pt2", read_file(source_path("tests/io/zoo/buffers.pt2")));
  auto module = load(path);
  const at::Tensor mean = module->find_tensor("mean");
  const at::Tensor before = mean.clone();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mean.const_data_ptr()) % 64, 0u);
  std::remove(path.c_str());
  module.reset();
  EXPECT_TRUE(at::equal(mean, before));
}

TEST(Weights, WritingChangesThisLoadOnly) {
  TempDir folder;
  const std::string contents = read_file(source_path("tests/io/zoo/buffers.pt2"));
  const std::string path = folder.write("m.pt2", contents);
  auto first = load(path), second = load(path);
  first->find_tensor("mean").fill_(99);
  EXPECT_EQ(first->find_tensor("mean")[0].item<float>(), 99);
  EXPECT_NE(second->find_tensor("mean")[0].item<float>(), 99);
  EXPECT_EQ(read_file(path), contents);
}

TEST(Weights, SharedStorageStaysShared) {
  auto module = load(source_path("tests/io/zoo/tied_weights.pt2"));
  const at::Tensor embed = module->find_tensor("embed.weight");
  const at::Tensor head = module->find_tensor("head.weight");
  EXPECT_EQ(embed.const_data_ptr(), head.const_data_ptr());
  EXPECT_TRUE(embed.requires_grad());
  EXPECT_TRUE(embed.is_leaf());
  EXPECT_FALSE(embed.is_view());
  const at::Tensor right = module->find_tensor("right_t");
  EXPECT_FALSE(right.is_contiguous());
  EXPECT_EQ(right.storage_offset(), 6);
  EXPECT_EQ(right.strides(), (std::vector<std::int64_t>{1, 12}));
}

TEST(Weights, MisalignedRecordsAreCopied) {
  TempDir folder;
  ProgramFile file("buffers");
  for (int shift = 0; shift < 8; ++shift) {
    for (auto& record : file.records()) record.local_extra.clear();
    // An extra field before the first contents moves everything.
    file.records()[0].local_extra = std::string("FB") + static_cast<char>(shift) + '\0' +
                                    std::string(static_cast<std::size_t>(shift), 'Z');
    auto module = load(file.write(folder));
    auto original = load(source_path("tests/io/zoo/buffers.pt2"));
    for (const char* name : {"mean", "steps", "scale"}) {
      const at::Tensor tensor = module->find_tensor(name);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % tensor.itemsize(), 0u);
      EXPECT_TRUE(at::equal(tensor, original->find_tensor(name))) << name;
    }
  }
}

TEST(Weights, BuffersOutsideOfTheStateAndConstants) {
  auto module = load(source_path("tests/io/zoo/buffers.pt2"));
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : module->state_dict()) keys.push_back(key);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "scale"), 0);
  EXPECT_TRUE(module->find_tensor("scale").defined());
  auto constants = load(source_path("tests/io/zoo/lifted_constants.pt2"));
  EXPECT_TRUE(constants->state_dict().empty());
  EXPECT_TRUE(constants->find_tensor("lifted_tensor_0").defined());
}

TEST(Weights, GradientsFlowToParameters) {
  auto module = digits();
  const at::Tensor logits = (*module)(at::ones({2, 1, 8, 8})).toTensor();
  logits.sum().backward();
  EXPECT_TRUE(module->find_tensor("conv1.weight").grad().defined());
  EXPECT_FALSE(module->find_tensor("bn1.running_mean").requires_grad());
}

TEST(ConstantInputs, OtherValuesAreAnError) {
  auto module = load(source_path("tests/io/zoo/constant_inputs.pt2"));
  const at::Tensor x = at::ones({2, 3});
  EXPECT_NO_THROW((*module)(x, 2, 0.5, true, "linear", Value()));
  EXPECT_THROW((*module)(x, 3, 0.5, true, "linear", Value()), RunError);
  EXPECT_THROW((*module)(x, 2, 0.5, true, "other", Value()), RunError);
}

TEST(Structure, DictsTuplesAndKeywords) {
  auto dict = load(source_path("tests/io/zoo/dict_io.pt2"));
  c10::impl::GenericDict batch(c10::StringType::get(), c10::AnyType::get());
  batch.insert("a", at::ones({2, 3}));
  batch.insert("b", at::full({2, 3}, 2.f));
  const Value result = (*dict)(Value(batch));
  ASSERT_TRUE(result.isGenericDict());
  EXPECT_EQ(result.toGenericDict().at("sum").toTensor()[0][0].item<float>(), 3);
  EXPECT_TRUE(is_sequence(result.toGenericDict().at("diff")));

  auto keywords = load(source_path("tests/io/zoo/keyword_inputs.pt2"));
  const Value y = (*keywords)(Values{at::ones({2, 3})}, {{Symbol("bias"), at::ones({3})},
                                                         {Symbol("scale"), at::full({3}, 5.f)}});
  EXPECT_EQ(y.toTensor()[0][0].item<float>(), 6);
}

TEST(Threads, OneModelManyCallers) {
  at::NoGradGuard no_grad;
  auto module = digits();
  const at::Tensor x = read_npy(source_path("models/digits_test_x.npy")).slice(0, 0, 16);
  const at::Tensor wanted = (*module)(x).toTensor();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      at::NoGradGuard guard;
      for (int k = 0; k < 20; ++k)
        if (!at::allclose((*module)(x).toTensor(), wanted)) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(BitFlips, AreErrorsOrChangeNothing) {
  // One bit in 16; every byte is hit by the flips of its neighbours' bits over time.
  TempDir folder;
  const std::string whole = read_file(source_path("tests/io/zoo/buffers.pt2"));
  auto original = load(source_path("tests/io/zoo/buffers.pt2"));
  const std::string graph = original->graph().str();
  std::size_t errors = 0, same = 0;
  for (std::size_t bit = 3; bit < whole.size() * 8; bit += 31) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const std::string path = folder.write("flipped.pt2", flipped);
    try {
      auto module = load(path, {.verify_weights = true});
      EXPECT_EQ(module->graph().str(), graph) << "bit " << bit;
      for (const auto& [key, tensor] : original->state_dict())
        EXPECT_TRUE(at::equal(module->find_tensor(key), tensor)) << "bit " << bit;
      ++same;
    } catch (const ImportError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 100u);
  EXPECT_GT(same, 10u);  // padding and what is not read
}

// Python writes an input or buffer that the program changes at the end of the exported graph.
TEST(Mutations, OfAnExportedProgramShareNoMemory) {
  const at::NoGradGuard no_grad;
  auto module = load(source_path("tests/io/zoo/input_mutation_functional.pt2"));
  EXPECT_EQ(module->mutations(), std::vector<std::string>{"x"});
  const InputGuard& guard = module->input_guards().at(0);
  std::vector<std::int64_t> sizes;
  for (const InputGuard::Dim& dim : guard.dims) sizes.push_back(dim.size.value());
  const at::Tensor x = at::ones(sizes), y = at::ones(sizes);
  EXPECT_THROW((*module)(x, x), RunError);
  EXPECT_TRUE(at::equal(x, y));
  EXPECT_TRUE(at::equal((*module)(x, y).toTensor(), y * 4));
  EXPECT_TRUE(at::equal(x, y * 2));

  EXPECT_EQ(load(source_path("tests/io/zoo/buffer_mutation_functional.pt2"))->mutations(),
            (std::vector<std::string>{"count", "total"}));
  EXPECT_TRUE(load(source_path("tests/io/zoo/buffers.pt2"))->mutations().empty());
}

}  // namespace
}  // namespace fx::io
