// torch.fx's TypeCheckerTest (test_gradual_type.py): programs with annotated inputs, and the types
// that all nodes get, or the refusal. Where types say more than a refusal, the program runs as well
// and its shapes are compared.
#include "fx/passes/type_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "benchmarks/nets.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/tensor_meta.h"
#include "fx/passes/shape_prop.h"
#include "fx/passes/union_find.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::nullopt_t kDyn = std::nullopt;

void annotate(Node& node, std::vector<TypeDim> dims) {
  node.set_type(TensorType::of(std::move(dims)).to_string());
}

// A traced program whose inputs have these types, "" for none.
template <typename Program>
std::shared_ptr<GraphModule> typed(Program&& program, const std::vector<std::string>& types) {
  auto module = symbolic_trace(std::forward<Program>(program));
  const std::vector<Node*> inputs = module->graph().placeholders();
  EXPECT_EQ(inputs.size(), types.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!types[i].empty()) inputs[i]->set_type(types[i]);
  return module;
}

std::vector<std::string> types_of(const GraphModule& module) {
  std::vector<std::string> types;
  for (const Node& node : module.graph().nodes()) types.push_back(node.type());
  return types;
}

void expect_refused(GraphModule& module, const std::string& part) {
  const std::vector<std::string> before = types_of(module);
  EXPECT_FX_ERROR(type_check(module), PassError, kTypeMismatch, part);
  EXPECT_EQ(types_of(module), before) << "a failed check left something behind";
}

// Every type fits the shape that the node has in a run.
void expect_true_of_a_run(GraphModule& module, const Values& inputs) {
  ShapeProp(module).propagate(inputs);
  for (const Node& node : module.graph().nodes())
    if (const TensorMeta* meta = tensor_meta(node)) {
      const std::optional<TensorType> type = TensorType::parse(node.type());
      ASSERT_TRUE(type) << node.name() << ": " << node.type();
      const TensorType shape = TensorType::of({meta->shape.begin(), meta->shape.end()});
      EXPECT_TRUE(is_consistent(*type, shape))
          << node.name() << ": " << type->to_string() << " " << shape.to_string();
    }
}

const auto kAdd = [](Proxy x, Proxy y) { return x + y; };

TEST(TypeCheck, R_092_X_017_add_with_broadcast) {
  const auto module = typed(kAdd, {"TensorType[1, 2, 3, Dyn]", "TensorType[2, 3, 4]"});
  EXPECT_TRUE(type_check(*module).changed);
  EXPECT_THAT(types_of(*module),
              ElementsAre("TensorType[1, 2, 3, Dyn]", "TensorType[2, 3, 4]",
                          "TensorType[1, 2, 3, Dyn]", "TensorType[1, 2, 3, Dyn]"));
  EXPECT_FALSE(type_check(*module).changed) << "a second check has nothing to add";
  expect_true_of_a_run(*module, {torch::ones({1, 2, 3, 4}), torch::ones({2, 3, 4})});
}

TEST(TypeCheck, R_092_add_with_scalar) {
  const auto module = typed(kAdd, {"int", "TensorType[2, 3, 4]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module), ElementsAre("int", "TensorType[2, 3, 4]", "TensorType[2, 3, 4]",
                                             "TensorType[2, 3, 4]"));
  const auto immediate = typed([](Proxy x) { return 2 * x + 1; }, {"TensorType[2, Dyn]"});
  type_check(*immediate);
  EXPECT_THAT(types_of(*immediate), ElementsAre("TensorType[2, Dyn]", "TensorType[2, Dyn]",
                                                "TensorType[2, Dyn]", "TensorType[2, Dyn]"));
}

TEST(TypeCheck, R_092_add_false) {
  expect_refused(*typed(kAdd, {"TensorType[1, 2, 3, Dyn]", "TensorType[1, 2, 4]"}),
                 "node add, operator.add: the operands have types TensorType[1, 2, 3, Dyn] and "
                 "TensorType[1, 2, 4], which do not broadcast");
}

TEST(TypeCheck, R_092_add_true) {
  const auto module = typed(kAdd, {"TensorType[1, 2, Dyn]", "TensorType[1, 2, 3]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module), ElementsAre("TensorType[1, 2, Dyn]", "TensorType[1, 2, 3]",
                                             "TensorType[1, 2, Dyn]", "TensorType[1, 2, Dyn]"));
}

TEST(TypeCheck, R_092_add_of_unknown_types) {
  const auto module = typed(kAdd, {"", "TensorType[1, 2]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module), ElementsAre("Dyn", "TensorType[1, 2]", "Dyn", "Dyn"));
}

// An annotation of a result that cannot be.
TEST(TypeCheck, R_092_annotation_of_a_result) {
  const auto module = typed(kAdd, {"TensorType[2, Dyn]", "TensorType[2, Dyn]"});
  Node& add = *module->graph().output_node().all_input_nodes()[0];
  annotate(add, {kDyn, 7});
  type_check(*module);
  EXPECT_EQ(add.type(), "TensorType[2, 7]");
  annotate(add, {3, kDyn});
  expect_refused(*module,
                 "node add: its annotation is TensorType[3, Dyn], which does not fit "
                 "TensorType[2, Dyn]");
}

TEST(TypeCheck, R_092_reshape) {
  const auto reshape = [](std::vector<std::int64_t> sizes) {
    return [sizes](Proxy x) { return torch::reshape(static_cast<at::Tensor>(x), sizes); };
  };
  const auto check = [&](const std::string& from, const std::vector<std::int64_t>& sizes,
                         const std::string& to) {
    const auto module = typed(reshape(sizes), {from});
    type_check(*module);
    EXPECT_EQ(module->graph().output_node().type(), to);
  };
  check("TensorType[1, 6]", {1, 2, 3}, "TensorType[1, 2, 3]");
  check("TensorType[1, 5]", {1, -1}, "TensorType[1, 5]");
  check("Dyn", {2, -1}, "TensorType[2, Dyn]");
  check("TensorType[Dyn, 5]", {2, 5}, "TensorType[2, 5]");
  check("TensorType[0, 5]", {0, 7}, "TensorType[0, 7]");
  check("TensorType[0, 5]", {0, -1}, "TensorType[0, Dyn]");
  // torch.fx refuses this one, which runs for an input of [2, 5].
  check("TensorType[Dyn, 5]", {1, 2, -1}, "TensorType[1, 2, Dyn]");
  expect_refused(*typed(reshape({1, 2, 3}), {"TensorType[1, 5]"}),
                 "the input has type TensorType[1, 5], which does not reshape to "
                 "TensorType[1, 2, 3]");
  expect_refused(*typed(reshape({1, 2, -1}), {"TensorType[1, 5]"}), "does not reshape");
  expect_refused(*typed(reshape({2, 4}), {"TensorType[Dyn, 5]"}), "does not reshape");
  // torch.fx accepts these two, which never run: 16 % 2 is 0, but the numbers of elements differ.
  expect_refused(*typed(reshape({2}), {"TensorType[4, 4]"}), "does not reshape");
  expect_refused(*typed(reshape({0}), {"TensorType[4, 4]"}), "does not reshape");
  const auto method = typed([](Proxy x) { return x.view(2, -1); }, {"TensorType[4, 3]"});
  type_check(*method);
  EXPECT_EQ(method->graph().output_node().type(), "TensorType[2, 6]");
}

TEST(TypeCheck, R_092_transpose) {
  const auto program = [](std::int64_t a, std::int64_t b) {
    return [a, b](Proxy x) { return torch::transpose(static_cast<at::Tensor>(x), a, b); };
  };
  const auto module = typed(program(0, 1), {"TensorType[1, 2, 3, 5]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module), ElementsAre("TensorType[1, 2, 3, 5]", "TensorType[2, 1, 3, 5]",
                                             "TensorType[2, 1, 3, 5]"));
  expect_refused(*typed(program(0, 10), {"TensorType[1, 2, 3, 5]"}),
                 "axis 10 is out of range for type TensorType[1, 2, 3, 5]");
  const auto negative = typed(program(-1, -2), {"TensorType[1, 2, 3, 5]"});
  type_check(*negative);
  EXPECT_EQ(negative->graph().output_node().type(), "TensorType[1, 2, 5, 3]");
  expect_true_of_a_run(*negative, {torch::ones({1, 2, 3, 5})});
}

struct NormImpl : torch::nn::Module {
  explicit NormImpl(std::int64_t channels)
      : bn1(register_module("bn1", nn::BatchNorm2d(channels))) {}
  Proxy forward(Proxy x) { return bn1(x) + x; }
  nn::BatchNorm2d bn1;
};
FX_MODULE(Norm);

TEST(TypeCheck, R_092_batch_norm_2d) {
  const auto module = typed(Norm(2), {"TensorType[2, 2, 5, 4]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module), ElementsAre("TensorType[2, 2, 5, 4]", "TensorType[2, 2, 5, 4]",
                                             "TensorType[2, 2, 5, 4]", "TensorType[2, 2, 5, 4]"));
  // Nothing is known of the input: four dimensions.
  const auto open = typed(Norm(2), {""});
  type_check(*open);
  EXPECT_EQ(open->graph().placeholders()[0]->type(), "TensorType[Dyn, Dyn, Dyn, Dyn]");
}

TEST(TypeCheck, R_092_batch_norm_2d_false) {
  expect_refused(*typed(Norm(10), {"TensorType[2, 2, 5, 4]"}),
                 "node bn1, torch.nn.BatchNorm2d: type TensorType[2, 2, 5, 4] has 2 at axis 1, "
                 "wanted 10 (num_features)");
  expect_refused(*typed(Norm(2), {"TensorType[2, 2, 5]"}), "wanted 4 dimensions");
}

TEST(TypeCheck, R_092_batch_norm_2d_with_broadcast) {
  const auto module = typed(Norm(2), {"TensorType[2, 2, Dyn, 4]"});
  Node* bn = module->graph().find_nodes(Opcode::kCallModule, Target::string("bn1"))[0];
  annotate(*bn, {kDyn, kDyn, 5, kDyn});
  type_check(*module);
  EXPECT_THAT(types_of(*module),
              ElementsAre("TensorType[2, 2, Dyn, 4]", "TensorType[2, 2, 5, 4]",
                          "TensorType[2, 2, Dyn, 4]", "TensorType[2, 2, Dyn, 4]"));
}

// ResNet's block of two convolutions, as torch.fx's tests have it.
struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", resnet::conv(in, out, 3, stride))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        relu(register_module("relu", nn::ReLU())),
        conv2(register_module("conv2", resnet::conv(out, out, 3, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {}
  Proxy forward(Proxy x) {
    Proxy out = relu(bn1(conv1(x)));
    return relu(bn2(conv2(out)) + x);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::ReLU relu;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
};
FX_MODULE(Block);

TEST(TypeCheck, R_092_conv2d_in_a_basic_block) {
  const auto module = typed(Block(2, 2, 1), {"TensorType[2, 2, 4, 5]"});
  type_check(*module);
  for (const Node& node : module->graph().nodes())
    EXPECT_EQ(node.type(), "TensorType[2, 2, 4, 5]") << node.name();
  expect_true_of_a_run(*module, {torch::ones({2, 2, 4, 5})});
  // A stride of 2 makes what is added half as large.
  expect_refused(*typed(Block(2, 2, 2), {"TensorType[2, 2, 4, 5]"}), "which do not broadcast");
  expect_refused(*typed(Block(3, 3, 1), {"TensorType[2, 2, 4, 5]"}), "wanted 3 (in_channels)");
}

struct ConvImpl : torch::nn::Module {
  explicit ConvImpl(torch::nn::Conv2dOptions options)
      : conv(register_module("conv", nn::Conv2d(options))) {}
  Proxy forward(Proxy x) { return conv(x); }
  nn::Conv2d conv;
};
FX_MODULE(Conv);

// Sizes for all kinds of windows, against what the layer gives.
TEST(TypeCheck, R_092_conv2d_sizes) {
  using Options = torch::nn::Conv2dOptions;
  const std::vector<Options> all = {
      Options(3, 6, 5),
      Options(3, 6, {3, 5}).stride({2, 1}).padding({1, 0}),
      Options(3, 6, {3, 5}).stride({1, 3}).padding({0, 4}).dilation({2, 1}),
      Options(3, 6, 3).padding(torch::kSame).dilation(2),
      Options(3, 6, {2, 3}).padding(torch::kValid).stride(2),
  };
  for (const Options& options : all)
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{2, 3, 13, 17}, {2, 3, 8, 9}, {3, 11, 12}}) {
      Conv net(options);
      const at::Tensor x = torch::ones(sizes);
      const auto module = typed(net, {TensorType::of({sizes.begin(), sizes.end()}).to_string()});
      type_check(*module);
      const at::Tensor y = (*module)(x).toTensor();
      EXPECT_EQ(module->graph().output_node().type(),
                TensorType::of({y.sizes().begin(), y.sizes().end()}).to_string());
    }
  const auto open = typed(Conv(all[1]), {"TensorType[Dyn, 3, Dyn, 17]"});
  type_check(*open);
  EXPECT_EQ(open->graph().output_node().type(), "TensorType[Dyn, 6, Dyn, 13]");
  expect_refused(*typed(Conv(all[0]), {"TensorType[1, 3, 4, 9]"}),
                 "has 4 where 5 is the least that the window fits into");
  expect_refused(*typed(Conv(all[0]), {"TensorType[1, 3]"}), "wanted 3 or 4 dimensions");
}

// Annotations of the input and of both convolutions say different things that fit together.
TEST(TypeCheck, R_092_conv2d_with_annotations) {
  const auto module = typed(Block(2, 2, 1), {"TensorType[Dyn, 2, 4, Dyn]"});
  annotate(*module->graph().find_nodes(Opcode::kCallModule, Target::string("conv1"))[0],
           {kDyn, kDyn, kDyn, 5});
  type_check(*module);
  EXPECT_THAT(types_of(*module),
              ElementsAre("TensorType[Dyn, 2, 4, Dyn]", "TensorType[Dyn, 2, 4, 5]",
                          "TensorType[Dyn, 2, 4, 5]", "TensorType[Dyn, 2, 4, 5]",
                          "TensorType[Dyn, 2, 4, 5]", "TensorType[Dyn, 2, 4, 5]",
                          "TensorType[Dyn, 2, 4, Dyn]", "TensorType[Dyn, 2, 4, Dyn]",
                          "TensorType[Dyn, 2, 4, Dyn]"));
  annotate(*module->graph().find_nodes(Opcode::kCallModule, Target::string("conv2"))[0],
           {kDyn, kDyn, kDyn, 6});
  expect_refused(*module, "node conv2: its annotation is TensorType[Dyn, Dyn, Dyn, 6]");
}

TEST(TypeCheck, R_092_max_pool_2d) {
  using Options = torch::nn::MaxPool2dOptions;
  const std::vector<Options> all = {
      Options(3).stride(2).padding(1),
      Options({2, 3}).stride({3, 1}),
      Options(3).stride(2).ceil_mode(true),
      Options(2).dilation({2, 3}),
      Options(3).stride(5).padding(1).ceil_mode(true),
  };
  for (const Options& options : all)
    for (std::int64_t height = 5; height < 14; ++height)
      for (const bool batched : {true, false}) {
        std::vector<std::int64_t> sizes = {2, height, 11};
        if (batched) sizes.insert(sizes.begin(), 4);
        const auto module = typed(nn::Sequential(nn::MaxPool2d(options)),
                                  {TensorType::of({sizes.begin(), sizes.end()}).to_string()});
        type_check(*module);
        const at::Tensor y = (*module)(torch::ones(sizes)).toTensor();
        EXPECT_EQ(module->graph().output_node().type(),
                  TensorType::of({y.sizes().begin(), y.sizes().end()}).to_string())
            << sizes;
      }
  expect_refused(*typed(nn::Sequential(nn::MaxPool2d(3)), {"TensorType[7, 7]"}),
                 "wanted 3 or 4 dimensions");
}

TEST(TypeCheck, R_092_flatten) {
  const auto flatten = [](std::int64_t start, std::int64_t end) {
    return [start, end](Proxy x) { return torch::flatten(static_cast<at::Tensor>(x), start, end); };
  };
  const auto check = [&](const std::string& from, std::int64_t start, std::int64_t end,
                         const std::string& to) {
    const auto module = typed(flatten(start, end), {from});
    type_check(*module);
    EXPECT_EQ(module->graph().output_node().type(), to);
  };
  check("TensorType[1, 2, 3, 5, Dyn]", 1, 2, "TensorType[1, 6, 5, Dyn]");
  check("TensorType[1, Dyn, 3, 5, Dyn]", 1, 2, "TensorType[1, Dyn, 5, Dyn]");
  check("TensorType[1, 2, 3]", 0, -1, "TensorType[6]");
  check("TensorType[1, 2, 3]", -2, -1, "TensorType[1, 6]");
  check("TensorType[4, Dyn]", 1, 1, "TensorType[4, Dyn]");
  check("TensorType[]", 0, -1, "TensorType[1]");
  check("Dyn", 1, -1, "Dyn");
  expect_refused(*typed(flatten(3, 1), {"TensorType[1, 2, 3, 5]"}), "in the wrong order");
  expect_refused(*typed(flatten(0, 4), {"TensorType[1, 2, 3, 5]"}), "axis 4 is out of range");
}

struct PooledImpl : torch::nn::Module {
  PooledImpl()
      : conv1(register_module("conv1", nn::Conv2d(torch::nn::Conv2dOptions(3, 6, 5)))),
        pool(register_module("pool", nn::MaxPool2d(2))),
        conv2(register_module("conv2", nn::Conv2d(torch::nn::Conv2dOptions(6, 16, 5)))),
        fc1(register_module("fc1", nn::Linear(5, 120))),
        average(register_module(
            "average", nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions({6, 7})))) {}
  Proxy forward(Proxy x) {
    x = pool(conv1(x));
    x = pool(conv2(x));
    x = fc1(x);
    x = average(x);
    return torch::flatten(static_cast<at::Tensor>(x), 1);
  }
  nn::Conv2d conv1;
  nn::MaxPool2d pool;
  nn::Conv2d conv2;
  nn::Linear fc1;
  nn::AdaptiveAvgPool2d average;
};
FX_MODULE(Pooled);

TEST(TypeCheck, R_092_conv2d_max_pool_2d_linear_flatten) {
  const auto module = typed(Pooled(), {"TensorType[4, 3, 32, 32]"});
  type_check(*module);
  EXPECT_THAT(types_of(*module),
              ElementsAre("TensorType[4, 3, 32, 32]", "TensorType[4, 6, 28, 28]",
                          "TensorType[4, 6, 14, 14]", "TensorType[4, 16, 10, 10]",
                          "TensorType[4, 16, 5, 5]", "TensorType[4, 16, 5, 120]",
                          "TensorType[4, 16, 6, 7]", "TensorType[4, 672]", "TensorType[4, 672]"));
  expect_true_of_a_run(*module, {torch::ones({4, 3, 32, 32})});
  const auto open = typed(Pooled(), {"TensorType[4, 3, 32, Dyn]"});
  type_check(*open);
  EXPECT_EQ(open->graph().output_node().type(), "TensorType[4, 672]");
  expect_refused(*typed(Pooled(), {"TensorType[4, 3, 32, 36]"}), "wanted 5 (in_features)");
}

TEST(TypeCheck, R_092_resnet50) {
  bench::ResNet50 net;
  net->eval();
  const auto module = typed(net, {"TensorType[1, 3, 224, 224]"});
  type_check(*module);
  for (const Node& node : module->graph().nodes())
    EXPECT_EQ(node.type().find("Dyn"), std::string::npos) << node.name() << ": " << node.type();
  EXPECT_EQ(module->graph().output_node().type(), "TensorType[1, 1000]");
  const torch::NoGradGuard no_grad;
  expect_true_of_a_run(*module, {torch::ones({1, 3, 224, 224})});
  const auto open = typed(net, {"TensorType[Dyn, 3, Dyn, Dyn]"});
  type_check(*open);
  expect_true_of_a_run(*open, {torch::ones({2, 3, 97, 64})});
  EXPECT_EQ(open->graph().output_node().type(), "TensorType[Dyn, 1000]");
}

TEST(TypeCheck, R_092_symbolic_add_with_broadcast) {
  const auto module = typed(kAdd, {"TensorType[1, 2, 3, Dyn]", "TensorType[2, 3, 4]"});
  EXPECT_EQ(infer_symbolic_types(*module).num_symbols, 2);
  EXPECT_THAT(types_of(*module), ElementsAre("TensorType[1, 2, 3, s0]", "TensorType[2, 3, 4]",
                                             "TensorType[1, 2, 3, s1]", "TensorType[1, 2, 3, s1]"));
  const auto same = typed(kAdd, {"TensorType[1, 2]", "TensorType[Dyn, 2]"});
  infer_symbolic_types(*same);
  EXPECT_THAT(types_of(*same), ElementsAre("TensorType[1, 2]", "TensorType[s0, 2]",
                                           "TensorType[s0, 2]", "TensorType[s0, 2]"));
}

TEST(TypeCheck, R_092_symbolic_sizes_behind_convolutions) {
  const auto module = typed(Pooled(), {"TensorType[Dyn, 3, Dyn, 32]"});
  const SymbolicTypes found = infer_symbolic_types(*module);
  EXPECT_EQ(found.num_symbols, 2);
  EXPECT_TRUE(found.changed);
  EXPECT_THAT(
      types_of(*module),
      ElementsAre("TensorType[s0, 3, s1, 32]", "TensorType[s0, 6, s1 - 4, 28]",
                  "TensorType[s0, 6, (s1 - 6)//2 + 1, 14]",
                  "TensorType[s0, 16, (s1 - 6)//2 - 3, 10]",
                  "TensorType[s0, 16, ((s1 - 6)//2 - 5)//2 + 1, 5]",
                  "TensorType[s0, 16, ((s1 - 6)//2 - 5)//2 + 1, 120]", "TensorType[s0, 16, 6, 7]",
                  "TensorType[s0, 672]", "TensorType[s0, 672]"));
  EXPECT_FALSE(infer_symbolic_types(*module).changed);
  // The expressions are true: with numbers for the symbols they are the sizes of a run.
  for (const std::int64_t height : {29, 32, 35, 64}) {
    ShapeProp(*module).propagate({torch::ones({2, 3, height, 32})});
    for (const Node& node : module->graph().nodes()) {
      const TensorMeta* meta = tensor_meta(node);
      const std::vector<TypeDim> dims = TensorType::parse(node.type())->dims();
      ASSERT_EQ(meta->shape.size(), dims.size());
      for (std::size_t i = 0; i < dims.size(); ++i)
        EXPECT_EQ(dims[i].substitute(0, 2).substitute(1, height).number(), meta->shape[i])
            << node.name() << " " << node.type();
    }
  }
}

TEST(TypeCheck, R_092_symbolic_resnet50) {
  bench::ResNet50 net;
  net->eval();
  const auto module = typed(net, {"TensorType[Dyn, 3, Dyn, Dyn]"});
  infer_symbolic_types(*module);
  // The batch is one symbol all the way; sizes are expressions of the input's.
  std::size_t with_expressions = 0;
  for (const Node& node : module->graph().nodes()) {
    EXPECT_THAT(node.type(), HasSubstr("TensorType[s0, ")) << node.name();
    with_expressions += node.type().find("//") != std::string::npos;
  }
  // All from the first convolution to the last addition; five of stride 2 make 32.
  EXPECT_EQ(with_expressions, module->graph().size() - 5);
  const Node& average =
      *module->graph().find_nodes(Opcode::kCallModule, Target::string("avgpool"))[0];
  EXPECT_EQ(average.all_input_nodes()[0]->type(),
            "TensorType[s0, 2048, (s1 - 1)//32 + 1, (s2 - 1)//32 + 1]");
  EXPECT_EQ(module->graph().output_node().type(), "TensorType[s0, 1000]");
}

TEST(TypeCheck, X_017_equal_dimensions_that_differ) {
  // Both operands are the same unknown size, and the result is annotated otherwise.
  const auto module = typed([](Proxy x) { return x + x; }, {"TensorType[Dyn, 4]"});
  Node& add = *module->graph().output_node().all_input_nodes()[0];
  annotate(add, {5, 4});
  infer_symbolic_types(*module);
  EXPECT_EQ(module->graph().placeholders()[0]->type(), "TensorType[5, 4]");
}

TEST(TypeCheck, X_017_calls_without_a_rule) {
  const auto module =
      typed([](Proxy x) { return torch::cumsum(static_cast<at::Tensor>(x), 0) + 1; }, {"Dyn"});
  expect_refused(*module, "node cumsum: there is no rule for aten::cumsum");
  type_check(*module, {.unknown_as_dyn = true});
  EXPECT_THAT(types_of(*module), ElementsAre("Dyn", "Dyn", "Dyn", "Dyn"));
  register_type_rule(
      "aten::cumsum",
      {[](const TypeCall& call) {
         return ValueType{.is_number = false, .tensor = call.input_of_rank(1)};
       },
       [](const TypeCall& call) {
         return std::vector<DimEquality>{{call.input().dims()[0], call.annotation().dims()[0]}};
       },
       nullptr});
  type_check(*module);
  EXPECT_EQ(module->graph().placeholders()[0]->type(), "TensorType[Dyn]");
  infer_symbolic_types(*module);
  EXPECT_THAT(types_of(*module),
              ElementsAre("TensorType[s0]", "TensorType[s0]", "TensorType[s0]", "TensorType[s0]"));
}

TEST(TypeCheck, X_017_attributes_and_other_annotations) {
  auto graph = std::make_shared<Graph>();
  GraphModule module(graph);
  module.set_parameter("w", torch::ones({3, 4}));
  Node& x = graph->placeholder("x", "Tensor");
  Node& add = graph->call_function("torch.add", {x, graph->get_attr("w")});
  graph->output(add);
  type_check(module);
  EXPECT_EQ(x.type(), "Tensor");
  EXPECT_EQ(graph->find_nodes(Opcode::kGetAttr, Target::string("w"))[0]->type(),
            "TensorType[3, 4]");
  EXPECT_EQ(add.type(), "Dyn");
  x.set_type("TensorType[3, what]");
  expect_refused(module, "wanted the form TensorType[1, Dyn, 3]");
}

TEST(TypeDim, X_017_expressions_print_and_parse) {
  const TypeDim s = TypeDim::symbol(3);
  const std::vector<TypeDim> dims = {kDyn,
                                     0,
                                     12,
                                     s,
                                     s.plus(2),
                                     s.plus(-2),
                                     s.plus(2).plus(-2),
                                     s.floor_div(2),
                                     s.plus(-1).floor_div(2).plus(1),
                                     s.floor_div(2).plus(1).floor_div(3),
                                     s.floor_div(2).floor_div(3)};
  const TensorType type = TensorType::of(dims);
  EXPECT_EQ(type.to_string(),
            "TensorType[Dyn, 0, 12, s3, s3 + 2, s3 - 2, s3, s3//2, (s3 - 1)//2 + 1, "
            "(s3//2 + 1)//3, s3//6]");
  EXPECT_EQ(TensorType::parse(type.to_string()), type);
  EXPECT_EQ(s.plus(-1).floor_div(2).substitute(3, 0), TypeDim(-1)) << "rounds down";
  for (const std::string_view broken :
       {"", "TensorType", "TensorType[", "TensorType[1", "TensorType[1,2]", "TensorType[1, ]",
        "TensorType[s]", "TensorType[-1]", "TensorType[s0 + ]", "TensorType[(s0]",
        "TensorType[s0//0]", "TensorType[1]x", "TensorType[s-1]",
        "TensorType[99999999999999999999]", "Tensor"})
    EXPECT_FALSE(TensorType::parse(broken)) << broken;
  EXPECT_FALSE(TensorType::parse("TensorType[" + std::string(100000, '(') + "s0]"));
}

TEST(UnionFind, X_007_sets_and_join) {
  UnionFind sets;
  EXPECT_EQ(sets.make_set(), 0u);
  sets.grow(6);
  EXPECT_FALSE(sets.same(0, 5));
  sets.join(0, 1);
  sets.join(2, 3);
  EXPECT_FALSE(sets.same(1, 3));
  const std::size_t root = sets.join(1, 2);
  for (std::size_t element : {0, 1, 2, 3}) EXPECT_EQ(sets.find(element), root);
  EXPECT_EQ(sets.find(4), 4u);
  EXPECT_EQ(sets.join(0, 3), root) << "they are one set already";
}

}  // namespace
}  // namespace fx
