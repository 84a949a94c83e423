#include "fx/compile/compile.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <thread>

#include "fx/capture/symbolic_trace.h"
#include "fx/compile/find_wrong_kernel.h"
#include "fx/compile/jit.h"
#include "fx/graph/module_access.h"
#include "fx/interpret/interpreter.h"
#include "fx/io/import_export.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

at::Tensor affine(at::Tensor x) { return x * 2 + 1; }

// tanh(x * w + b), then its softmax.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    linear = register_module("linear", torch::nn::Linear(6, 16));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
    scale = register_parameter("scale", torch::rand({16}) + 0.5);
  }
  at::Tensor forward(at::Tensor x) {
    x = torch::gelu(linear(x));
    return torch::softmax(norm(x) * scale + 0.25, -1);
  }
  torch::nn::Linear linear{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor scale;
};
TORCH_MODULE(Net);

std::shared_ptr<GraphModule> traced_affine() {
  return symbolic_trace([](Proxy x) { return x * 2 + 1; });
}

TEST(Compile, S0_83_S0_81_one_extra_call) {
  torch::manual_seed(0);
  const at::Tensor x = torch::randn({5});
  const Compiled fast = compile(*traced_affine());
  const at::Tensor y = fast(x).toTensor();
  EXPECT_EQ(y.sizes(), at::IntArrayRef({5}));
  const at::Tensor wanted = torch::tensor({4.081992, 0.413142, -3.357579, 2.136863, -1.169045});
  EXPECT_TRUE(torch::allclose(y, wanted, 1e-6, 1e-6)) << y;
  EXPECT_TRUE(torch::equal(y, affine(x)));
}

TEST(Compile, S4_95_compiles_at_the_first_call_and_never_again) {
  const Compiled fast = compile(*traced_affine());
  EXPECT_EQ(fast.num_compilations(), 0u);
  fast(torch::randn({5}));
  EXPECT_EQ(fast.num_compilations(), 1u);
  for (int i = 0; i < 5; ++i) fast(torch::randn({5}));
  EXPECT_EQ(fast.num_compilations(), 1u);
}

TEST(Compile, S0_27_other_sizes_use_the_same_code) {
  torch::NoGradGuard no_grad;
  const Compiled fast = compile(*symbolic_trace(
      [](Proxy x) { return torch::softmax(static_cast<at::Tensor>(x) * 3.0, -1).exp(); }));
  fast(torch::randn({4, 10}));
  const std::uint64_t codes = fast.num_kernel_codes();
  EXPECT_EQ(codes, 1u);
  for (std::int64_t batch : {2, 7, 64, 1000})
    for (std::int64_t width : {2, 3, 17, 100, 1025}) {
      const at::Tensor x = torch::randn({batch, width});
      EXPECT_TRUE(
          torch::allclose(fast(x).toTensor(), torch::softmax(x * 3.0, -1).exp(), 1.3e-6, 1e-6))
          << batch << " " << width;
    }
  EXPECT_EQ(fast.num_compilations(), 1u);
  EXPECT_EQ(fast.num_kernel_codes(), codes);
  EXPECT_THAT(fast.explain(), HasSubstr("peak memory"));
}

// What broadcasts is decided by sizes of 1: a batch of one is another variant, not a wrong result.
TEST(Compile, SizesThatBecomeOneOrEqual) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x, at::Tensor y) { return (x + y) * torch::sigmoid(y); };
  const Compiled fast = compile(*symbolic_trace([&](Proxy x, Proxy y) {
    return program(static_cast<at::Tensor>(x), static_cast<at::Tensor>(y));
  }));
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> cases = {
      {{4, 5}, {4, 5}}, {{4, 5}, {1, 5}}, {{4, 5}, {5}},    {{1, 5}, {4, 1}}, {{4, 1}, {1, 5}},
      {{5, 5}, {5, 5}}, {{5, 5}, {5, 1}}, {{1, 1}, {1, 1}}, {{1}, {3, 1}},    {{}, {3}},
      {{0, 5}, {5}},    {{0}, {0}},       {{3, 0}, {3, 1}}, {{}, {}}};
  for (int round = 0; round < 2; ++round)
    for (const auto& [a, b] : cases) {
      const at::Tensor x = torch::randn(a);
      const at::Tensor y = torch::randn(b);
      const at::Tensor wanted = program(x, y);
      const at::Tensor found = fast(x, y).toTensor();
      ASSERT_EQ(found.sizes(), wanted.sizes());
      EXPECT_TRUE(torch::allclose(found, wanted, 1.3e-6, 1e-6)) << x.sizes() << y.sizes();
    }
  EXPECT_THROW(fast(torch::randn({4}), torch::randn({5})), RunError);
}

TEST(Compile, S0_23_S4_34_a_branch_on_values_takes_both_ways) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x) {
    if (x.sum().item<double>() > 0) return x * 2;
    return x - 1;
  };
  const Compiled fast = compile(program);
  const at::Tensor up = torch::ones({3});
  const at::Tensor down = -torch::ones({3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(torch::equal(fast(up).toTensor(), up * 2));
    EXPECT_TRUE(torch::equal(fast(down).toTensor(), down - 1));
  }
  EXPECT_THAT(fast.explain(), HasSubstr("depends on values"));
}

TEST(Compile, S0_66_S0_77_S4_97_every_stage_can_be_looked_at) {
  torch::NoGradGuard no_grad;
  const Compiled fast = compile(
      *symbolic_trace([](Proxy x) { return torch::tanh(static_cast<at::Tensor>(x) * 2 + 1); }));
  EXPECT_TRUE(fast.stages().empty());
  EXPECT_FX_ERROR(fast.stage("loops"), CompileError, kCompileOption, "none before the first call");
  const at::Tensor x = torch::randn({3, 40});
  fast(x);
  std::vector<std::string> names;
  for (const CompileStage& stage : fast.stages()) names.push_back(stage.name);
  EXPECT_THAT(names, ElementsAre("captured", "passes", "fused", "expressions", "loops", "llvm",
                                 "assembly", "plan"));
  EXPECT_THAT(fast.stage("captured"), HasSubstr("aten::tanh"));
  EXPECT_THAT(fast.stage("fused"), HasSubstr("call_module[target=kernel_0]"));
  EXPECT_THAT(fast.stage("fused"), Not(HasSubstr("aten::tanh")));
  EXPECT_EQ(fast.stage("loops"),
            "nest kernel_0(k0 < s1, k1 < s2)\n"
            "  all\n"
            "    %0: f32 = 1.0\n"
            "    %1: f32 = 2.0\n"
            "    %2: f32 = in0[k0, k1]\n"
            "    %3: f32 = mul %2, %1\n"
            "    %4: f32 = add %3, %0\n"
            "    %5: f32 = tanh %4\n"
            "    out0[k0, k1] = %5\n");
  EXPECT_THAT(fast.stage("llvm"), HasSubstr("define i32 @fx_kernel"));
  EXPECT_THAT(fast.stage("assembly"), HasSubstr("ret"));
  EXPECT_THAT(fast.stage("plan"), HasSubstr("module kernel_0"));
  EXPECT_FX_ERROR(fast.stage("nothing"), CompileError, kCompileOption, "captured, passes, fused");
  // The captured graph is the library's own: it runs.
  EXPECT_TRUE(torch::allclose(fast(x).toTensor(), torch::tanh(x * 2 + 1), 1.3e-6, 1e-6));
}

TEST(Compile, S4_90_the_passes_are_listed) {
  const Compiled fast = compile(*traced_affine());
  fast(torch::randn({5}));
  for (const char* pass : {"remove_noops", "simplify", "cse", "dce"})
    EXPECT_THAT(fast.explain(), HasSubstr(pass));
}

TEST(Compile, simplifies_by_rules_that_hold_for_all_dtypes) {
  const at::Tensor x = torch::randn({4, 3});
  const auto program = symbolic_trace([](Proxy x) { return relu(relu(x)) / 2; });
  const Compiled fast = compile(*program);
  EXPECT_TRUE(torch::equal(fast(x).toTensor(), torch::relu(x) / 2));
  EXPECT_THAT(fast.explain(), HasSubstr("\n  idempotent: 1\n"));
  EXPECT_THAT(fast.stage("passes"), Not(HasSubstr("(%relu,)")));
  // The example was of floats: other dtypes come to the same graph, which may not count on that.
  EXPECT_THAT(fast.stage("passes"), HasSubstr("truediv"));
  const at::Tensor i = torch::arange(-6, 6);
  EXPECT_TRUE(torch::equal(fast(i).toTensor(), torch::relu(i) / 2));
  // Switched off.
  const Compiled plain = compile(*program, {.disable = {"simplify"}});
  plain(x);
  EXPECT_THAT(plain.explain(), Not(HasSubstr("simplify")));
}

TEST(Compile, S0_79_S0_76_same_parameters_and_gradients) {
  Net net;
  const Compiled fast = compile(net);
  EXPECT_EQ(fast.model().get(), net.ptr().get());
  const auto state = fast.state_dict();
  ASSERT_EQ(state.size(), net->named_parameters().size());
  for (const auto& [name, tensor] : state)
    EXPECT_TRUE(tensor.is_same(net->named_parameters()[name])) << name;
  const at::Tensor x = torch::randn({8, 6});
  {
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net(x), 1.3e-6, 1e-6));
    EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net(x), 1.3e-6, 1e-6));
    // An update of a parameter counts at once.
    net->scale.mul_(2);
    EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net(x), 1.3e-6, 1e-6));
  }
  // With gradients the operators run: forward and backward are eager's.
  fast(x).toTensor().pow(2).sum().backward();
  std::vector<at::Tensor> found;
  for (const at::Tensor& p : net->parameters()) found.push_back(p.grad().clone());
  net->zero_grad();
  net(x).pow(2).sum().backward();
  std::size_t i = 0;
  for (const at::Tensor& p : net->parameters())
    EXPECT_TRUE(torch::allclose(found[i++], p.grad(), 1e-5, 1e-6));
}

TEST(Compile, S0_78_S3_08_a_backend_of_the_user) {
  int calls = 0;
  std::vector<std::string> ops;
  register_backend("recorder",
                   [&](const std::shared_ptr<GraphModule>& module, const Values& inputs,
                       const CompileOptions& options) -> CompiledFunction {
                     ++calls;
                     EXPECT_EQ(inputs.size(), 1u);
                     EXPECT_EQ(options.mode, "default");
                     for (const Node& node : module->graph().nodes())
                       ops.emplace_back(opcode_name(node.op()));
                     return [module](Values args, KwValues) -> Value {
                       return module->forward(std::move(args)).toTensor() + 1000;
                     };
                   });
  const Compiled fast = compile(*traced_affine(), {.backend = "recorder"});
  const at::Tensor x = torch::randn({5});
  EXPECT_EQ(calls, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(fast(x).toTensor(), affine(x) + 1000));
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(ops, ElementsAre("placeholder", "call_function", "call_function", "output"));
  EXPECT_THAT(list_backends(), ::testing::Contains("recorder"));
  EXPECT_FX_ERROR(register_backend("llvm", nullptr), CompileError, kCompileOption, "built-in");
}

TEST(Compile, S4_89_backends_are_listed_and_agree) {
  torch::NoGradGuard no_grad;
  for (const char* name : {"eager", "interpret", "llvm", "plan"})
    EXPECT_THAT(list_backends(), ::testing::Contains(name));
  EXPECT_EQ(CompileOptions().backend, "llvm");
  EXPECT_FX_ERROR(compile(*traced_affine(), {.backend = "cuda"}), CompileError, kBackendMissing,
                  "there is no backend 'cuda'; there are: eager, interpret, llvm, plan");
  Net net;
  const at::Tensor x = torch::randn({9, 6});
  const at::Tensor wanted = net(x);
  for (const char* name : {"eager", "interpret", "plan", "llvm"}) {
    const Compiled fast = compile(net, {.backend = name});
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(torch::allclose(fast(x).toTensor(), wanted, 1.3e-6, 1e-6)) << name;
  }
  const Compiled fast = compile(net);
  fast(x);
  EXPECT_GE(fast.num_kernel_codes(), 1u);
  EXPECT_THAT(fast.stage("fused"), HasSubstr("kernel_0"));
}

TEST(Compile, S4_94_modes) {
  for (const char* mode : {"default", "reduce-overhead", "max-autotune"}) {
    const Compiled fast = compile(*traced_affine(), {.mode = mode});
    const at::Tensor x = torch::randn({5});
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(torch::equal(fast(x).toTensor(), affine(x))) << mode;
  }
  EXPECT_FX_ERROR(compile(*traced_affine(), {.mode = "fastest"}), CompileError, kCompileOption,
                  "there is no mode 'fastest'; there are: default, reduce-overhead, max-autotune");
}

TEST(Compile, StepsToLeaveOutAreListed) {
  EXPECT_FX_ERROR(compile(*traced_affine(), {.disable = {"cse", "fusing"}}), CompileError,
                  kCompileOption,
                  "there is no step 'fusing' that can be left out; there are: remove_dropout");
}

TEST(Compile, FindsTheKernelThatDiffers) {
  torch::manual_seed(0);
  // Three kernels with matrix products between them; the exponential is ours, and not to the bit
  // that of eager.
  const auto module = symbolic_trace([](Proxy x) {
    Proxy y = (x * 2 + 1).relu();
    y = y.matmul(y);
    y = (y * 1e-3).exp() + 1;
    y = y.matmul(y);
    return (y * 2 + 1).relu();
  });
  const Values inputs{torch::rand({64, 64})};
  const auto found = find_wrong_kernel(*module, inputs, {}, {.rtol = 0, .atol = 0});
  ASSERT_TRUE(found && found->index);
  EXPECT_EQ(*found->index, 1u);
  EXPECT_THAT(found->operators, HasSubstr("exp"));
  EXPECT_THAT(found->operators, Not(HasSubstr("relu")));
  EXPECT_THAT(found->loops, HasSubstr("= exp %"));
  EXPECT_FALSE(find_wrong_kernel(*module, inputs, {}, {.rtol = 1e-4, .atol = 1e-4}));
}

TEST(Compile, the_wrong_pass_is_found) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Conv2d(3, 8, 3), torch::nn::BatchNorm2d(8));
  const at::Tensor x = torch::randn({2, 3, 9, 9}) * 3;
  net->forward(x);  // statistics
  net->eval();
  const auto module = symbolic_trace(net);
  module->eval();
  // A batch norm in the weights of the convolution rounds differently.
  const auto found = find_wrong_kernel(*module, {x}, {.freeze = true}, {.rtol = 0, .atol = 0});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->index);
  EXPECT_EQ(found->step, "fuse_conv_bn");
  EXPECT_FALSE(find_wrong_kernel(*module, {x}, {.freeze = true}, {.rtol = 1e-4, .atol = 1e-4}));
}

TEST(Compile, S4_93_linear_relu_linear) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(10, 5), torch::nn::ReLU(), torch::nn::Linear(5, 2));
  const auto module = symbolic_trace(net);
  const Compiled fast = compile(module, {.mode = "reduce-overhead"});
  const at::Tensor x = torch::randn({1, 10});
  const at::Tensor y = fast(x).toTensor();
  EXPECT_EQ(y.sizes(), at::IntArrayRef({1, 2}));
  EXPECT_TRUE(torch::allclose(y, net->forward(x)));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net->forward(x)));
}

TEST(Compile, ManyThreadsFromTheFirstCallOn) {
  const Compiled fast = compile(*symbolic_trace(
      [](Proxy x) { return torch::softmax(static_cast<at::Tensor>(x).tanh() * 2, -1); }));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      torch::NoGradGuard no_grad;
      for (int i = 0; i < 40; ++i) {
        const at::Tensor x = torch::randn({1 + (t + i) % 5, 30 + i});
        if (!torch::allclose(fast(x).toTensor(), torch::softmax(x.tanh() * 2, -1), 1.3e-6, 1e-6))
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(fast.num_compilations(), 1u);
}

TEST(Compile, WhatKernelsCannotDoRunsAsOperators) {
  torch::NoGradGuard no_grad;
  const Compiled fast = compile(*symbolic_trace(
      [](Proxy x) { return torch::sigmoid(static_cast<at::Tensor>(x) * 2).exp(); }));
  const auto check = [&](const at::Tensor& x) {
    for (int i = 0; i < 2; ++i) {
      const at::Tensor wanted = torch::sigmoid(x * 2).exp();
      const at::Tensor found = fast(x).toTensor();
      EXPECT_EQ(found.scalar_type(), wanted.scalar_type());
      EXPECT_TRUE(torch::allclose(found, wanted));
    }
  };
  check(torch::randn({4, 4}));
  check(torch::randn({4, 4}, torch::kDouble));
  check(torch::randn({4}, torch::kComplexFloat));
  check(torch::randint(0, 5, {4}));
  check(torch::randn({4}, torch::kComplexFloat).conj());
  check(torch::randn({4, 6}).slice(1, 0, 6, 2).t());
  check(torch::randn({4, 1}).expand({4, 9}));
  const at::Tensor leaf = torch::randn({3}, torch::requires_grad());
  at::AutoGradMode gradients(true);
  fast(leaf).toTensor().sum().backward();
  EXPECT_TRUE(leaf.grad().defined());
}

// The strides of results are eager's, so that what views them later can.
TEST(Compile, ResultsLieInMemoryAsEagers) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x, at::Tensor y) { return torch::tanh(x + y) * x; };
  const Compiled fast = compile(*symbolic_trace([&](Proxy x, Proxy y) {
    return program(static_cast<at::Tensor>(x), static_cast<at::Tensor>(y));
  }));
  const at::Tensor base = torch::randn({2, 3, 4, 5});
  const std::vector<at::Tensor> inputs = {base, base.permute({0, 2, 3, 1}),
                                          torch::randn({2, 4, 5, 3}).permute({0, 3, 1, 2}),
                                          base.contiguous(at::MemoryFormat::ChannelsLast),
                                          torch::randn({5, 4, 3, 2}).permute({3, 2, 1, 0})};
  for (int round = 0; round < 2; ++round)
    for (const at::Tensor& x : inputs)
      for (const at::Tensor& y : inputs) {
        if (x.sizes() != y.sizes()) continue;
        const at::Tensor wanted = program(x, y);
        const at::Tensor found = fast(x, y).toTensor();
        EXPECT_EQ(found.strides(), wanted.strides()) << x.strides() << y.strides();
        EXPECT_TRUE(torch::allclose(found, wanted, 1.3e-6, 1e-6));
      }
}

// Sizes of 1 say nothing of the order of the dimensions around them.
TEST(Compile, ResultsWithSizesOfOneLieInMemoryAsEagers) {
  torch::NoGradGuard no_grad;
  const Compiled fast =
      compile(*symbolic_trace([](auto x) { return torch::tanh(x * 2 + 1) * 0.5; }));
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {1, 3, 1, 5}, {2, 3, 1, 5}, {2, 1, 4, 5}, {1, 3, 4, 1}, {2, 3, 4, 5}})
    for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
      const at::Tensor x = torch::randn(sizes).contiguous(format);
      const at::Tensor wanted = torch::tanh(x * 2 + 1) * 0.5;
      for (int round = 0; round < 2; ++round) {
        const at::Tensor found = fast(x).toTensor();
        EXPECT_TRUE(torch::allclose(found, wanted, 1.3e-6, 1e-6));
        for (std::int64_t d = 0; d < 4; ++d)
          if (sizes[static_cast<std::size_t>(d)] > 1) {
            EXPECT_EQ(found.stride(d), wanted.stride(d)) << found.sizes() << format << d;
          }
      }
    }
}

TEST(Compile, DivisionByZeroIsEagersError) {
  const Compiled fast = compile(*symbolic_trace([](Proxy x, Proxy y) {
    return torch::floor_divide(static_cast<at::Tensor>(x) + 1, static_cast<at::Tensor>(y)) * 2;
  }));
  const at::Tensor x = torch::arange(-40, 40);
  const at::Tensor y = torch::full({80}, 7);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(torch::equal(fast(x, y).toTensor(), torch::floor_divide(x + 1, y) * 2));
  y[79] = 0;
  EXPECT_FX_ERROR(fast(x, y), RunError, kNodeFailed, "ZeroDivisionError");
}

// In-place operators keep their place among readers.
TEST(Compile, WritesStayInOrder) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x) {
    at::Tensor a = x * 2;
    at::Tensor before = a.exp() + 1;
    a.add_(1);
    at::Tensor after = a.exp() + before;
    a.slice(0, 0, 1).zero_();
    return torch::stack({before, after, a * 3});
  };
  const Compiled fast = compile(program);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = torch::randn({4, 3});
    const at::Tensor copy = x.clone();
    EXPECT_TRUE(torch::allclose(fast(x).toTensor(), program(x), 1.3e-6, 1e-6));
    EXPECT_TRUE(torch::equal(x, copy));
  }
}

// LibTorch's operators write: 1 - x is empty_like, fill_ and sub_.
TEST(Compile, InPlaceOperatorsOnOwnMemoryFuse) {
  torch::NoGradGuard no_grad;
  const auto program = [](at::Tensor x, at::Tensor y) {
    at::Tensor t = (1 - x) * y;
    t.mul_(2).add_(y);
    const at::Tensor early = t.exp();
    t.relu_();
    return std::vector<at::Tensor>{t + early, (2.5 - t).sum(-1)};
  };
  const Compiled fast = compile(program);
  const at::Tensor x = torch::randn({6, 33});
  const at::Tensor y = torch::randn({6, 33});
  const std::vector<at::Tensor> wanted = program(x, y);
  for (int i = 0; i < 2; ++i) {
    const Values found = elements(fast(x, y));
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_TRUE(torch::allclose(found[k].toTensor(), wanted[k], 1.3e-6, 1e-5)) << k;
  }
  for (const char* gone : {"empty_like", "fill_", "sub_", "mul_", "add_", "relu_"})
    EXPECT_THAT(fast.stage("fused"), Not(HasSubstr(gone)));
}

// Where somebody can see the write, it stays.
TEST(Compile, InPlaceOperatorsThatOthersSeeStay) {
  torch::NoGradGuard no_grad;
  const auto input = [](at::Tensor x) {
    x.add_(1);
    return x.exp() * 2 + 1;
  };
  const auto view = [](at::Tensor x) {
    at::Tensor a = x * 2;
    at::Tensor row = a.select(0, 0);
    a.add_(1);
    return row.exp() * 2 + row;
  };
  const auto dtype = [](at::Tensor x) {
    at::Tensor a = x * 2;
    a.add_(torch::ones({3, 4}, torch::kDouble));
    return a.exp() * 2 + 1;
  };
  const auto check = [](auto program) {
    const Compiled fast = compile(program);
    for (int i = 0; i < 3; ++i) {
      const at::Tensor x = torch::randn({3, 4});
      const at::Tensor mine = x.clone();
      const at::Tensor eagers = x.clone();
      const at::Tensor found = fast(mine).toTensor();
      const at::Tensor wanted = program(eagers);
      EXPECT_EQ(found.scalar_type(), wanted.scalar_type());
      EXPECT_TRUE(torch::allclose(found, wanted, 1.3e-6, 1e-5));
      EXPECT_TRUE(torch::equal(mine, eagers));
    }
  };
  check(input);
  check(view);
  check(dtype);
}

// The first call, which captures, leaves the traces of one call.
TEST(Compile, ABufferIsUpdatedOncePerCall) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  torch::nn::Sequential one(torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5), torch::nn::Tanh());
  torch::nn::Sequential two(torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5), torch::nn::Tanh());
  const Compiled fast = compile(two);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = torch::randn({8, 4});
    torch::manual_seed(i);
    const at::Tensor wanted = one->forward(x);
    torch::manual_seed(i);
    EXPECT_TRUE(torch::allclose(fast(x).toTensor(), wanted, 1.3e-6, 1e-6)) << i;
  }
  const auto buffers = one->named_buffers();
  for (const auto& item : two->named_buffers())
    EXPECT_TRUE(
        torch::allclose(item.value().to(torch::kDouble), buffers[item.key()].to(torch::kDouble)))
        << item.key();
}

// What a program can ask its inputs and its model for is part of what a capture holds for.
TEST(Compile, ProgramsThatAskForModesGetTheAnswerOfTheCall) {
  const torch::NoGradGuard no_grad;
  const Compiled order = compile([](at::Tensor x) { return x.is_contiguous() ? x * 2 : x * 3; });
  const at::Tensor x = torch::ones({2, 3}), turned = torch::ones({3, 2}).t();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(order(x).toTensor().sum().item<float>(), 12);
    EXPECT_EQ(order(turned).toTensor().sum().item<float>(), 18);
  }
  const Compiled casts = compile([](at::Tensor a) { return a.mm(a); });
  const at::Tensor square = torch::full({3, 3}, 1.001f);
  const auto expect_dtype = [&](at::ScalarType dtype) {
    EXPECT_EQ(casts(square).toTensor().scalar_type(), dtype);
  };
  for (int i = 0; i < 2; ++i) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    expect_dtype(at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    expect_dtype(at::kFloat);
  }
  torch::nn::Sequential net(torch::nn::Linear(3, 3), torch::nn::Dropout(0.5));
  const Compiled fast = compile(net);
  net->eval();
  EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net->forward(x)));
  net->children()[1]->train();  // of the whole the flag stays what it was
  const auto zeros = [&] { return (fast(torch::ones({64, 3})).toTensor() == 0).sum().item<int>(); };
  EXPECT_GT(zeros(), 0);
  net->children()[1]->eval();
  EXPECT_EQ(zeros(), 0);
  net->children()[0]->as<torch::nn::Linear>()->weight = torch::zeros({3, 3});  // not registered
  detail::parameters(*net->children()[0])["weight"] = torch::zeros({3, 3});
  EXPECT_TRUE(torch::allclose(fast(x).toTensor(), net->forward(x)));
}

TEST(Compile, KeywordsRun) {
  const Compiled fast = compile(*symbolic_trace([](Proxy x, Proxy y) { return x * 2 + y; }));
  const at::Tensor x = torch::randn({3});
  const at::Tensor y = torch::randn({3});
  const KwValues keywords{{Symbol("y"), y}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(torch::equal(fast.forward({x}, keywords).toTensor(), x * 2 + y));
    EXPECT_TRUE(torch::equal(fast(x, y).toTensor(), x * 2 + y));
  }
}

// Calls of graphs (cond, while_loop, scan, map, autocast) are operators between kernels.
TEST(Compile, CallsOfGraphsBetweenKernels) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(5);
  const auto leaves = [](const Value& value) {
    return is_sequence(value) ? elements(value) : Values{value};
  };
  const std::vector<std::pair<std::string, Values>> programs = {
      {"cond", {torch::rand({3})}},
      {"cond_on_size", {torch::randn({5, 4})}},
      {"while_loop", {torch::randn({3, 4})}},
      {"scan", {torch::randn({5, 2, 4}), torch::randn({2, 4})}},
      {"map_rows", {torch::randn({3, 4}), torch::randn({4})}},
      {"autocast", {torch::randn({3, 4})}}};
  for (const auto& [name, inputs] : programs) {
    SCOPED_TRACE(name);
    auto module = load(std::string(FXCPP_SOURCE_DIR) + "/tests/io/zoo/" + name + ".pt2");
    Graph& graph = module->graph();
    // Pointwise work on both sides, for kernels.
    Node& x = *graph.placeholders()[0];
    {
      const auto at = graph.inserting_after(x);
      Node& half = graph.call_function("aten::mul.Tensor", {x, 0.5});
      Node& shifted = graph.call_function("aten::add.Tensor", {half, 0.125});
      half.append(shifted);
      x.replace_all_uses_with(shifted, [&](Node& user) { return &user != &half; });
    }
    module->recompile();
    for (const char* mode : {"default", "reduce-overhead"}) {
      const Compiled fast = compile(*module, {.mode = mode});
      for (const double sign : {1.0, -1.0, 1.0}) {
        Values given = inputs;
        given[0] = given[0].toTensor() * sign;
        const Values found = leaves(fast.forward(given));
        const Values wanted = leaves(Interpreter(*module).run(given));
        ASSERT_EQ(found.size(), wanted.size());
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(torch::allclose(found[i].toTensor(), wanted[i].toTensor(), 1e-5, 1e-6)) << i;
      }
    }
  }
}

TEST(Compile, EditsOfTheSourceComeTooLate) {
  auto module = traced_affine();
  const Compiled fast = compile(module);
  for (Node& node : module->graph().nodes())
    if (node.name() == "add") node.update_arg(1, 100);
  module->recompile();
  const at::Tensor x = torch::randn({5});
  EXPECT_TRUE(torch::equal(fast(x).toTensor(), affine(x)));
  EXPECT_TRUE(torch::equal((*module)(x).toTensor(), x * 2 + 100));
}

}  // namespace
}  // namespace fx
