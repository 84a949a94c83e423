// run_decompositions, and the table core_aten_decompositions: which operators it has beside
// Python's, gradients against the operators themselves, and what stays of modules. Each entry's
// values are compared on the samples of the operator database (tests/opinfo).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "fx/analysis/alias.h"
#include "fx/capture/make_fx.h"
#include "fx/ops/op_info.h"
#include "fx/passes/decompose.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;
using ::testing::IsEmpty;

std::vector<std::string> left_in(const GraphModule& module, const DecompositionTable& table) {
  std::vector<std::string> names;
  for (const Node& node : module.graph().nodes()) {
    if (node.op() != Opcode::kCallFunction) continue;
    const std::string name = node.target().str();
    if (table.contains(name)) names.push_back(name);
    for (const Overload& overload : OpInfo::of(*Function::get(name)).overloads)
      if (overload.handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
        names.push_back(name);
  }
  return names;
}

TEST(CoreDecompositions, are_those_of_python) {
  // Names that torch._decomp.core_aten_decompositions() has, without composite, in-place and out=
  // operators.
  std::ifstream file(FXCPP_SOURCE_DIR "/tests/passes/core_aten.txt");
  ASSERT_TRUE(file.good());
  std::vector<std::string> missing, extra;
  std::set<std::string> python;
  for (std::string name; std::getline(file, name);) python.insert(name);
  for (const std::string& name : python)
    if (!core_aten_decompositions().contains(name)) missing.push_back(name);
  for (const auto& [name, decomposition] : core_aten_decompositions())
    if (!python.contains(name)) extra.push_back(name);
  // Memory that nobody wrote; draws; operators of CUDA; rare ones, which stay as they are.
  EXPECT_THAT(
      missing,
      ::testing::ElementsAre(
          "aten::_chunk_cat", "aten::_fused_rms_norm_backward", "aten::_unsafe_masked_index",
          "aten::_unsafe_masked_index_put_accumulate", "aten::affine_grid_generator",
          "aten::baddbmm.dtype", "aten::bernoulli", "aten::block_diag", "aten::col2im",
          "aten::cudnn_batch_norm", "aten::cudnn_batch_norm_backward", "aten::empty_like",
          "aten::hann_window", "aten::hann_window.periodic", "aten::im2col", "aten::linspace",
          "aten::linspace.Scalar_Tensor", "aten::linspace.Tensor_Scalar",
          "aten::linspace.Tensor_Tensor", "aten::logspace", "aten::logspace.Scalar_Tensor",
          "aten::logspace.Tensor_Scalar", "aten::logspace.Tensor_Tensor", "aten::max_unpool2d",
          "aten::max_unpool3d", "aten::miopen_batch_norm", "aten::miopen_batch_norm_backward",
          "aten::multi_margin_loss", "aten::multilabel_margin_loss_forward", "aten::new_empty",
          "aten::resize_as", "aten::unfold_backward"));
  EXPECT_THAT(extra, ::testing::ElementsAre("aten::addmv", "aten::mish_backward", "aten::one_hot",
                                            "aten::rrelu_with_noise_backward",
                                            "aten::silu_backward", "aten::var_mean.correction"));
}

// Gradients below autograd are operators like others.
void expect_gradients(const std::string& name, const std::function<Tensor(Tensor)>& program,
                      std::vector<std::int64_t> shape) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    SCOPED_TRACE(name + " " + at::toString(dtype));
    const auto gradient = [&](Tensor x) {
      const at::AutoGradMode with(true);
      x = x.detach().requires_grad_();
      const Tensor y = program(x);
      return torch::autograd::grad({y}, {x}, {torch::cos(y.detach())})[0];
    };
    torch::manual_seed(3);
    const Tensor example = torch::randn(shape).to(dtype), other = torch::randn(shape).to(dtype);
    MakeFxOptions below;
    below.pre_dispatch = false;
    const auto module = make_fx(gradient, {example}, below);
    const auto core = run_decompositions(*module, {example});
    EXPECT_THAT(left_in(*core, core_aten_decompositions()), IsEmpty()) << core->graph();
    const Tensor found = (*core)(other).toTensor(), wanted = gradient(other);
    EXPECT_EQ(found.scalar_type(), wanted.scalar_type());
    const double tolerance = dtype == at::kDouble ? 1e-11 : dtype == at::kFloat ? 2e-5 : 3e-2;
    EXPECT_TRUE(torch::allclose(found, wanted, tolerance, tolerance))
        << found << wanted << core->graph();
  }
}

TEST(CoreDecompositions, gradients_of_activations) {
  namespace F = torch::nn::functional;
  const std::vector<std::pair<std::string, std::function<Tensor(Tensor)>>> programs = {
      {"silu", [](Tensor x) { return torch::silu(x); }},
      {"mish", [](Tensor x) { return torch::mish(x); }},
      {"sigmoid", [](Tensor x) { return torch::sigmoid(x); }},
      {"tanh", [](Tensor x) { return torch::tanh(x); }},
      {"gelu", [](Tensor x) { return torch::gelu(x); }},
      {"gelu tanh", [](Tensor x) { return torch::gelu(x, "tanh"); }},
      {"softplus", [](Tensor x) { return torch::softplus(x, 2, 1); }},
      {"elu", [](Tensor x) { return torch::elu(x, 1.5, 1.2, 0.7); }},
      {"selu", [](Tensor x) { return torch::selu(x); }},
      {"celu", [](Tensor x) { return torch::celu(x, 1.3); }},
      {"leaky_relu", [](Tensor x) { return torch::leaky_relu(x, 0.2); }},
      {"hardtanh", [](Tensor x) { return torch::hardtanh(x, -0.5, 0.7); }},
      {"hardswish", [](Tensor x) { return torch::hardswish(x * 3); }},
      {"hardsigmoid", [](Tensor x) { return torch::hardsigmoid(x * 3); }},
      {"hardshrink", [](Tensor x) { return torch::hardshrink(x, 0.4); }},
      {"softshrink", [](Tensor x) { return torch::softshrink(x, 0.4); }},
      {"threshold", [](Tensor x) { return torch::threshold(x, 0.1, 2); }},
      {"logsigmoid", [](Tensor x) { return torch::log_sigmoid(x); }},
      {"logit", [](Tensor x) { return torch::logit(torch::sigmoid(x), 0.2); }},
      {"prelu", [](Tensor x) { return torch::prelu(x, torch::full({1}, 0.3, x.options())); }},
      {"glu", [](Tensor x) { return torch::glu(x, 1); }},
      {"softmax", [](Tensor x) { return torch::softmax(x, 1); }},
      {"log_softmax", [](Tensor x) { return torch::log_softmax(x, -2); }},
      {"logsumexp", [](Tensor x) { return torch::logsumexp(x, {1}); }},
  };
  for (const auto& [name, program] : programs) expect_gradients(name, program, {3, 4, 6});
}

TEST(CoreDecompositions, gradients_of_losses_norms_and_parts) {
  const Tensor target = torch::rand({3, 4, 6}), classes = torch::tensor({1, 0, 3});
  const auto like = [](const Tensor& value, const Tensor& x) { return value.to(x.scalar_type()); };
  const std::vector<std::pair<std::string, std::function<Tensor(Tensor)>>> programs = {
      {"mse", [&](Tensor x) { return torch::mse_loss(x, like(target, x)); }},
      {"huber",
       [&](Tensor x) { return torch::huber_loss(x, like(target, x), at::Reduction::Sum, 0.6); }},
      {"smooth_l1", [&](Tensor x) { return torch::smooth_l1_loss(x, like(target, x)); }},
      {"bce",
       [&](Tensor x) { return torch::binary_cross_entropy(torch::sigmoid(x), like(target, x)); }},
      {"bce logits",
       [&](Tensor x) { return torch::binary_cross_entropy_with_logits(x, like(target, x)); }},
      {"soft margin",
       [&](Tensor x) { return torch::soft_margin_loss(x, like(target.sub(0.5).sign(), x)); }},
      {"nll",
       [&](Tensor x) {
         return torch::nll_loss_nd(torch::log_softmax(x.select(1, 0), 1), classes, {},
                                   at::Reduction::Mean, 0);
       }},
      {"nll weighted",
       [&](Tensor x) {
         const Tensor weight = torch::arange(1, 7).to(x.scalar_type());
         return torch::nll_loss_nd(torch::log_softmax(x.select(1, 0), 1), classes, weight,
                                   at::Reduction::None);
       }},
      {"layer_norm",
       [](Tensor x) {
         return torch::layer_norm(x, {4, 6}, torch::full({4, 6}, 1.5, x.options()),
                                  torch::zeros({4, 6}, x.options()));
       }},
      {"group_norm",
       [](Tensor x) { return torch::group_norm(x, 2, torch::full({4}, 0.7, x.options())); }},
      {"slice", [](Tensor x) { return x.slice(1, 1, 3).slice(2, 0, 6, 2); }},
      {"select", [](Tensor x) { return x.select(1, -1); }},
      {"diagonal", [](Tensor x) { return x.diagonal(1, 1, 2); }},
      {"reflection", [](Tensor x) { return torch::reflection_pad1d(x, {2, 3}); }},
      {"reflection2d",
       [](Tensor x) { return torch::reflection_pad2d(x.unsqueeze(0), {2, 3, 1, 0}); }},
      {"roll", [](Tensor x) { return x.roll({1, -2}, {0, 2}) * x; }},
      {"norm",
       [](Tensor x) { return x.norm(3, {1}) + torch::linalg_vector_norm(x, 2.0, 2).sum(1, true); }},
      {"std", [](Tensor x) { return x.std(1) * x.var(1); }},
  };
  for (const auto& [name, program] : programs) expect_gradients(name, program, {3, 4, 6});
  // Eager has no bfloat16 rows of its own for these.
  const auto embedding = [&](Tensor x) {
    return torch::embedding(x.reshape({12, 6}), torch::tensor({{1, 2}, {1, 11}}), 2, true);
  };
  expect_gradients("embedding", embedding, {3, 4, 6});
  expect_gradients(
      "batch_norm",
      [](Tensor x) { return torch::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); },
      {3, 4, 6});
}

// Writes to its input and statistics, draws numbers, and is composite all over.
struct NetImpl : torch::nn::Module {
  Tensor forward(Tensor x) {
    Tensor y = norm(conv(x)).relu_();
    y = torch::silu(y).mean({2, 3});
    y[0].mul_(2);
    x.add_(1);
    y = torch::dropout(head(y), 0.5, is_training());
    return torch::log_softmax(y, 1);
  }
  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(3, 4, 3));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(4));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(4, 5));
};
TORCH_MODULE(Net);

TEST(RunDecompositions, modules_keep_their_attributes_and_what_they_write) {
  torch::NoGradGuard no_grad;
  for (const bool train : {true, false}) {
    Net net;
    net->train(train);
    const Tensor example = torch::randn({2, 3, 8, 8}), kept = example.clone();
    const auto module = make_fx(net, {example.clone()});
    const Tensor mean = net->norm->running_mean.clone();
    torch::manual_seed(5);
    const Tensor drawn = torch::rand({2});
    torch::manual_seed(5);
    const auto core = run_decompositions(*module, {example});
    // Nothing is changed by the runs that it took.
    EXPECT_TRUE(torch::equal(torch::rand({2}), drawn));
    EXPECT_TRUE(torch::equal(example, kept));
    EXPECT_TRUE(torch::equal(net->norm->running_mean, mean));
    EXPECT_THAT(left_in(*core, core_aten_decompositions()), IsEmpty()) << core->graph();
    EXPECT_TRUE(core->graph().find_calls("aten::silu").empty());
    core->graph().lint({.strict = true});
    const AliasAnalysis aliases(core->graph());
    for (const Node& node : core->graph().nodes())
      EXPECT_TRUE(node.is_output() || aliases.writes(node).empty() || node.calls("aten::copy_"))
          << node.format_node();
    EXPECT_EQ(core->state_dict().size(), module->state_dict().size());
    for (int call = 0; call < 2; ++call) {
      const Tensor x = torch::randn({2, 3, 8, 8}), a = x.clone(), b = x.clone();
      const Tensor before = net->norm->running_var.clone();
      torch::manual_seed(call);
      const Tensor wanted = net->forward(a);
      const Tensor after = net->norm->running_var.clone();
      net->norm->running_var.copy_(before);
      torch::manual_seed(call);
      const Tensor found = (*core)(b).toTensor();
      EXPECT_TRUE(torch::allclose(found, wanted, 1e-5, 1e-6)) << core->graph();
      EXPECT_TRUE(torch::equal(a, b));
      EXPECT_TRUE(torch::allclose(net->norm->running_var, after));
    }
  }
}

TEST(RunDecompositions, sizes_tables_and_rounds) {
  torch::NoGradGuard no_grad;
  const auto program = [](Tensor x) {
    return torch::silu(x.reshape({x.size(0), -1})).t().contiguous();
  };
  const auto module =
      make_fx(program, {torch::randn({2, 3, 4})}, {.dynamic = {{"x", {{0, "batch"}}}}});
  const auto core =
      run_decompositions(*module, {torch::randn({2, 3, 4})}, {.dynamic = {{"x", {{0, "batch"}}}}});
  for (const std::int64_t batch : {2, 3, 7}) {
    const Tensor x = torch::randn({batch, 3, 4});
    EXPECT_TRUE(torch::allclose((*core)(x).toTensor(), program(x))) << core->graph();
  }
  // Another table: silu stays.
  const DecompositionTable none;
  EXPECT_EQ(run_decompositions(*module, {torch::randn({2, 3, 4})}, {.table = &none})
                ->graph()
                .find_calls("aten::silu")
                .size(),
            1u);
  const DecompositionTable endless = {
      {"aten::neg", [](Values args, KwValues) -> Value { return -args.at(0).toTensor(); }}};
  const auto neg = make_fx([](Tensor x) { return -x; }, {torch::ones({2})});
  EXPECT_FX_ERROR(run_decompositions(*neg, {torch::ones({2})}, {.table = &endless}), PassError,
                  kPassNotStable, "after 10 rounds");
}

}  // namespace
}  // namespace fx
