// Decompositions (make_fx with a decomposition_table, DecompositionInterpreter,
// selective_decompose), sizes one by one, and the lean split. Results are compared with the module
// as it was.
#include "fx/passes/decompose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/capture/make_fx.h"
#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/tensor_type.h"
#include "fx/passes/decompose_sizes.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/split_module.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> calls_of(const GraphModule& module) {
  std::vector<std::string> calls;
  for (const Node& node : module.graph().nodes())
    if (node.op() == Opcode::kCallFunction) calls.push_back(node.target().str());
  return calls;
}

struct GatedImpl : torch::nn::Module {
  at::Tensor forward(at::Tensor x) {
    const at::Tensor gate = torch::silu(linear(x));
    return gate + torch::silu(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(4, 4));
};
TORCH_MODULE(Gated);

const DecompositionTable& table() {
  static const DecompositionTable all = {
      {"aten::silu",
       [](Values args, KwValues) -> Value {
         const at::Tensor x = args.at(0).toTensor();
         return x * torch::sigmoid(x);
       }},
      {"aten::addmm",
       [](Values args, KwValues) -> Value {
         return torch::mm(args.at(1).toTensor(), args.at(2).toTensor()) + args.at(0).toTensor();
       }},
  };
  return all;
}

TEST(Decompose, X_012_X_015_operators_become_others) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  Gated net;
  const at::Tensor x = torch::randn({3, 4}), y = torch::randn({3, 4});
  const auto module = make_fx(net, {x});
  EXPECT_THAT(calls_of(*module), ElementsAre("aten::t", "aten::addmm", "aten::silu", "aten::silu",
                                             "aten::add.Tensor"));
  const auto simple = decompose(*module, table(), {x});
  EXPECT_THAT(calls_of(*simple), ElementsAre("aten::t", "aten::mm", "aten::add.Tensor",
                                             "aten::sigmoid", "aten::mul.Tensor", "aten::sigmoid",
                                             "aten::mul.Tensor", "aten::add.Tensor"));
  EXPECT_TRUE(torch::allclose((*simple)(y).toTensor(), net->forward(y), 1e-6, 1e-6));
  // Parameters keep their names and are shared.
  ASSERT_EQ(simple->state_dict().size(), 2u);
  EXPECT_EQ(simple->state_dict()[0].first, "linear.weight");
  net->linear->bias.fill_(3);
  EXPECT_TRUE(torch::allclose((*simple)(y).toTensor(), net->forward(y), 1e-6, 1e-6));
  // The module is what it was; no table, no change.
  EXPECT_EQ(calls_of(*module).size(), 5u);
  EXPECT_EQ(calls_of(*decompose(*module, {}, {x})), calls_of(*module));
  EXPECT_TRUE(torch::equal((*module)(y).toTensor(), net->forward(y)));
}

TEST(Decompose, X_015_torch_functions_and_rounds) {
  // The table knows operators; a trace calls functions of torch, which the capture resolves.
  const auto module = symbolic_trace(
      [](Proxy x) { return torch::hardtanh(static_cast<at::Tensor>(x), -0.5, 0.75); });
  const DecompositionTable nested = {
      {"aten::hardtanh",
       [](Values args, KwValues) -> Value {
         return torch::clamp(args[0].toTensor(), args[1].toScalar(), args[2].toScalar());
       }},
      {"aten::clamp",
       [](Values args, KwValues) -> Value {
         const at::Tensor low = at::full({}, args[1].toScalar());
         const at::Tensor high = at::full({}, args[2].toScalar());
         return at::minimum(at::maximum(args[0].toTensor(), low), high);
       }},
  };
  const at::Tensor x = torch::linspace(-2, 2, 9);
  const auto simple = decompose(*module, nested, {x});
  EXPECT_THAT(calls_of(*simple),
              ElementsAre("aten::full", "aten::full", "aten::maximum", "aten::minimum"));
  EXPECT_TRUE(torch::equal((*simple)(x).toTensor(), torch::hardtanh(x, -0.5, 0.75)));
  const DecompositionTable endless = {
      {"aten::neg", [](Values args, KwValues) -> Value { return torch::neg(args[0].toTensor()); }}};
  const auto neg = symbolic_trace([](Proxy a) { return -a; });
  EXPECT_FX_ERROR(decompose(*neg, endless, {x}), PassError, kPassNotStable, "after 10 rounds");
}

TEST(Decompose, X_015_selective_decompose) {
  torch::NoGradGuard no_grad;
  Gated net;
  const at::Tensor x = torch::randn({3, 4});
  const auto module = make_fx(net, {x});
  const auto first_only =
      decompose(*module, table(), {x},
                {.should_decompose = [](const Node& node) { return node.name() == "silu"; }});
  EXPECT_THAT(calls_of(*first_only),
              ElementsAre("aten::t", "aten::addmm", "aten::sigmoid", "aten::mul.Tensor",
                          "aten::silu", "aten::add.Tensor"));
  EXPECT_TRUE(torch::allclose((*first_only)(x).toTensor(), net->forward(x), 1e-6, 1e-6));
}

TEST(Decompose, X_015_the_interpreter_alone) {
  const auto module = make_fx([](at::Tensor x) { return torch::silu(x) + 1; }, {torch::ones({2})});
  int asked = 0;
  const DecompositionTable counting = {{"aten::silu", [&](Values args, KwValues) -> Value {
                                          ++asked;
                                          return args[0].toTensor() * 100;
                                        }}};
  const at::Tensor x = torch::tensor({1.f, 2.f});
  EXPECT_TRUE(
      torch::equal(DecompositionInterpreter(*module, counting).run({x}).toTensor(), x * 100 + 1));
  EXPECT_EQ(asked, 1);
  DecompositionInterpreter none(*module, counting, [](const Node&) { return false; });
  EXPECT_TRUE(torch::equal(none.run({x}).toTensor(), torch::silu(x) + 1));
  EXPECT_EQ(asked, 1);
}

// --- sizes ---------------------------------------------------------------------------------------

TEST(DecomposeSizes, P_027_sizes_one_by_one) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x", TensorType::of({std::nullopt, 4}).to_string());
  Node& size = graph->call_method("size", {x});
  Node& rows = graph->call_function("operator.getitem", {size, 0});
  Node& columns = graph->call_function("operator.getitem", {size, -1});
  Node& product = graph->call_function("operator.mul", {rows, columns});
  Node& view = graph->call_method("view", {x, size});
  Node& one = graph->call_method("size", {x, 1});
  Node& shape = graph->call_function("builtins.getattr", {x, "shape"});
  graph->output(Argument::tuple({product, view, one, shape}));
  GraphModule module(graph);
  const at::Tensor in = torch::randn({3, 4});
  const PassResult result = decompose_sizes(module);
  EXPECT_EQ(result.rewrites, 2);
  module.graph().lint();
  EXPECT_EQ(names(*graph),
            (Names{"x", "sym_size_int", "mul", "view", "size_1", "sym_size_int_1", "output"}))
      << *graph;
  EXPECT_EQ(product.args()[1], Argument(4)) << "the type has this number";
  module.recompile();
  const Values out = elements(module(in));
  EXPECT_EQ(out[0].toInt(), 12);
  EXPECT_TRUE(torch::equal(out[1].toTensor(), in));
  EXPECT_EQ(out[2].toInt(), 4);
  EXPECT_EQ(elements(out[3]).at(0).toInt(), 3);
  EXPECT_EQ(elements(out[3]).at(1).toInt(), 4);
  // Another number of rows: the size is asked for, not stored.
  EXPECT_EQ(elements(module(torch::randn({5, 4})))[0].toInt(), 20);
  EXPECT_FALSE(decompose_sizes(module).changed);
}

TEST(DecomposeSizes, P_027_the_number_of_dimensions_has_to_be_known) {
  const auto module = symbolic_trace([](Proxy x) { return x.reshape(x.size()); });
  EXPECT_FALSE(decompose_sizes(*module).changed);
  ShapeProp(*module).propagate({torch::ones({2, 3})});
  EXPECT_TRUE(decompose_sizes(*module).changed);
  module->recompile();
  EXPECT_EQ((*module)(torch::ones({7, 3})).toTensor().sizes(), at::IntArrayRef({7, 3}));
}

// --- the lean split ------------------------------------------------------------------------------

TEST(SplitModuleSimple, P_027_as_split_module_but_lazy) {
  torch::NoGradGuard no_grad;
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  const auto module = symbolic_trace(net);
  std::unordered_map<const Node*, int> partitions;
  int next = 0;
  for (const Node& node : module->graph().nodes())
    if (node.op() == Opcode::kCallModule) partitions.emplace(&node, next++ < 2 ? 0 : 1);
  const auto split = split_module_simple(*module, partitions);
  const auto wanted = split_module(*module, [&](const Node& node) { return partitions.at(&node); },
                                   {.keep_original_order = true});
  EXPECT_EQ(split->graph().str(), wanted->graph().str());
  for (const char* name : {"submod_0", "submod_1"}) {
    const auto part = std::dynamic_pointer_cast<GraphModule>(split->find_submodule(name));
    const auto other = std::dynamic_pointer_cast<GraphModule>(wanted->find_submodule(name));
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->graph().str(), other->graph().str());
    EXPECT_TRUE(part->needs_recompile());
    EXPECT_FALSE(other->needs_recompile());
  }
  const at::Tensor x = torch::randn({3, 4});
  EXPECT_TRUE(torch::equal((*split)(x).toTensor(), (*module)(x).toTensor()));
  EXPECT_NE(split_module_simple(*module, partitions, "stage")->find_submodule("submod_stage_1"),
            nullptr);
  partitions.erase(partitions.begin());
  EXPECT_FX_ERROR(split_module_simple(*module, partitions), PassError, kBadPartition,
                  "has no partition");
}

// Partitions that need each other in turns have no order; torch.fx's lean split does not notice.
TEST(SplitModuleSimple, P_027_partitions_that_cannot_run_in_order) {
  const auto module = symbolic_trace([](Proxy x) { return ((x + 1) * 2) - 3; });
  std::unordered_map<const Node*, int> partitions;
  int next = 0;
  for (const Node& node : module->graph().nodes())
    if (node.op() == Opcode::kCallFunction) partitions.emplace(&node, next++ % 2);
  EXPECT_THROW(split_module_simple(*module, partitions), PassError);
}

}  // namespace
}  // namespace fx
