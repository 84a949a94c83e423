// Arguments by the names of the schema; extracting and replacing parts.

#include "fx/passes/named_arguments.h"

#include "fx/passes/extract.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/replace_modules.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

std::optional<NamedArguments> arguments_of(const std::string& call) {
  static std::vector<std::shared_ptr<Graph>> kept;
  kept.push_back(parse_text("fx 1\n%x = placeholder[target=x]\n%c = " + call + "\nreturn %c\n"));
  return NamedArguments::of(*kept.back()->find_node("c"));
}

TEST(NamedArguments, N_045_G_105_ByPositionKeywordAndDefault) {
  const auto args = arguments_of(
      "call_function[target=aten::sum.dim_IntList](args = (%x,), kwargs = {keepdim: True, dim: "
      "[1]})");
  ASSERT_TRUE(args.has_value());
  EXPECT_EQ(args->find("self")->node().name(), "x");
  EXPECT_EQ(*args->find("dim"), Argument(std::vector<std::int64_t>{1}));
  EXPECT_EQ(*args->find("keepdim"), Argument(true));
  EXPECT_TRUE(args->find("dtype")->is_none());
  EXPECT_EQ(args->find("other"), nullptr);
  EXPECT_EQ(args->position("keepdim"), 2u);
  EXPECT_EQ(args->position("dtype"), std::nullopt);  // keyword only
  EXPECT_EQ(args->values().size(), 4u);
  // Python's name of the first argument.
  EXPECT_TRUE(arguments_of("call_function[target=torch.relu](args = (), kwargs = {input: %x})")
                  .has_value());
  EXPECT_EQ(*arguments_of("call_method[target=flatten](args = (%x, 1))")->find("end_dim"),
            Argument(-1));
}

// F56: what does not fit is no answer, and neither is what fits in two ways.
TEST(NamedArguments, F56_NoGuesses) {
  for (const char* call : {
           "call_function[target=aten::relu](args = (%x, 1))",
           "call_function[target=aten::relu](args = ())",
           "call_function[target=aten::relu](args = (%x,), kwargs = {inplace: True})",
           "call_function[target=aten::relu](args = (%x,), kwargs = {self: %x})",
           "call_function[target=aten::no_such_operator](args = (%x,))",
           "call_function[target=operator.add](args = (%x, 1))",
           "call_function[target=some_function](args = (%x, 1))",
           "call_method[target=no_such_method](args = (%x,))",
           "call_method[target=view](args = (%x, %x))",  // of sizes or of a dtype
           "call_method[target=to](args = (%x, %x))",
       })
    EXPECT_FALSE(arguments_of(call).has_value()) << call;
}

TEST(NamedArguments, LiteralsTellOverloadsApart) {
  const auto ints =
      arguments_of("call_function[target=torch.conv2d](args = (%x, %x, None, [1, 1], [0, 0]))");
  ASSERT_TRUE(ints.has_value());
  EXPECT_EQ(ints->position("padding"), 4u);
  const auto text =
      arguments_of("call_function[target=torch.conv2d](args = (%x, %x, None, [1, 1], 'same'))");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text->find("padding"), Argument("same"));
}

std::shared_ptr<GraphModule> layered() {
  auto module = parse_module(R"(
%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_module[target=first](args = (%x,))
%b = call_function[target=torch.relu](args = (%a,))
%c = call_module[target=second](args = (%b,))
%d = call_function[target=operator.add](args = (%c, %y))
return %d
)");
  module->set_submodule("first", std::make_shared<torch::nn::LinearImpl>(3, 4));
  module->set_submodule("second", std::make_shared<torch::nn::LinearImpl>(4, 2));
  module->recompile();
  return module;
}

// S4-70: intermediate values as results.
TEST(Extract, S4_70_Outputs) {
  const auto module = layered();
  const at::Tensor x = torch::randn({5, 3});
  const at::Tensor y = torch::randn({5, 2});
  const auto middle = extract_outputs(*module, {"b"});
  EXPECT_EQ(names(middle->graph()), (Names{"x", "y", "a", "b", "output"}));
  const at::Tensor b = (*middle)(x, y).toTensor();
  EXPECT_EQ(b.sizes(), (std::vector<std::int64_t>{5, 4}));
  const auto both = extract_outputs(*module, {"output", "b"});
  const Values results = elements((*both)(x, y));
  EXPECT_VALUES_EQ(results[0], (*module)(x, y));
  EXPECT_VALUES_EQ(results[1], b);
  // Shared, and no more than needed.
  EXPECT_EQ(middle->find_submodule("first"), module->find_submodule("first"));
  EXPECT_EQ(middle->find_submodule("second"), nullptr);
  EXPECT_EQ(names(module->graph()).size(), 7u);
  EXPECT_FALSE(module->needs_recompile());
  EXPECT_EQ(module->graph().owner(), module.get());
  EXPECT_FX_ERROR(extract_outputs(*module, {"outptu"}), PassError, kBadExtract,
                  "there is no node 'outptu'; did you mean 'output'?");
}

TEST(Extract, X_005_S4_70_Subgraph) {
  const auto module = layered();
  const auto part = extract_subgraph(*module, {"a"}, {"c", "b"});
  EXPECT_EQ(names(part->graph()), (Names{"a", "b", "c", "output"}));
  EXPECT_EQ(part->graph().placeholders().size(), 1u);
  const at::Tensor x = torch::randn({5, 3});
  const at::Tensor y = torch::randn({5, 2});
  const at::Tensor a = (*extract_outputs(*module, {"a"}))(x, y).toTensor();
  const Values results = elements((*part)(a));
  EXPECT_VALUES_EQ((*module)(x, y), at::Tensor(results[0].toTensor() + y));
  const auto whole = extract_subgraph(*module, {"x", "y"}, {"output"});
  EXPECT_VALUES_EQ((*module)(x, y), (*whole)(x, y));
  EXPECT_FX_ERROR(
      extract_subgraph(*module, {"a"}, {"d"}), PassError, kBadExtract,
      "an output depends on the placeholder 'y' by a path that avoids the given inputs");
}

// S4-71: one kind of activation for another, in the whole model.
TEST(ReplaceModules, S4_71_ReluToGelu) {
  using torch::nn::GELUImpl, torch::nn::ReLUImpl, torch::nn::LinearImpl;
  auto module = parse_module(R"(
%x = placeholder[target=x]
%a = call_module[target=act](args = (%x,))
%b = call_module[target=block.act](args = (%a,))
%c = call_module[target=act](args = (%b,))
%d = call_module[target=same](args = (%c,))
%e = call_module[target=lin](args = (%d,))
return %e
)");
  const auto act = std::make_shared<ReLUImpl>();
  module->set_submodule("act", act);
  module->set_submodule("same", act);
  module->set_submodule("block.act", std::make_shared<ReLUImpl>());
  module->set_submodule("lin", std::make_shared<LinearImpl>(3, 3));
  int made = 0;
  PassManager manager({Pass("gelu",
                            [&](GraphModule& gm) {
                              return replace_modules<ReLUImpl>(gm, [&](ReLUImpl&) {
                                ++made;
                                return std::make_shared<GELUImpl>();
                              });
                            })},
                      {.check_claims = true});
  EXPECT_EQ(manager.run(*module).passes[0].rewrites, 2);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(module->find_submodule("act"), module->find_submodule("same"));
  EXPECT_TRUE(std::dynamic_pointer_cast<GELUImpl>(module->find_submodule("block.act")));
  EXPECT_TRUE(std::dynamic_pointer_cast<LinearImpl>(module->find_submodule("lin")));
  EXPECT_FALSE(manager.run(*module).changed);
  const at::Tensor x = torch::randn({2, 3});
  at::Tensor wanted = x;
  for (int i = 0; i < 4; ++i) wanted = at::gelu(wanted);
  EXPECT_VALUES_EQ(
      (*module)(x),
      std::dynamic_pointer_cast<LinearImpl>(module->find_submodule("lin"))->forward(wanted));
}

// A module below one with behaviour belongs to the original model: the new one goes elsewhere.
TEST(ReplaceModules, LeavesTheOriginalAlone) {
  torch::nn::Sequential net(torch::nn::ReLU(), torch::nn::Linear(2, 2));
  auto module = parse_module(
      "%x = placeholder[target=x]\n%a = call_module[target=net.0](args = (%x,))\nreturn %a\n");
  module->set_submodule("net", net.ptr());
  module->recompile();
  const auto before = net->children();
  replace_modules<torch::nn::ReLUImpl>(
      *module, [](auto&) { return std::make_shared<torch::nn::TanhImpl>(); });
  EXPECT_EQ(net->children(), before);
  EXPECT_EQ(module->graph().find_nodes(Opcode::kCallModule)[0]->target().str(), "net_0_0");
  module->recompile();
  EXPECT_VALUES_EQ((*module)(torch::ones(1)), at::Tensor(torch::ones(1).tanh()));
}

}  // namespace
}  // namespace fx
