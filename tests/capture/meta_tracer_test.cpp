#include "fx/capture/meta_tracer.h"

#include <torch/torch.h>

#include <filesystem>

#include "fx/capture/nn.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/io/import_export.h"
#include "fx/io/save_module.h"

#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace nn = fx::nn;

const at::Tensor& val(const GraphModule& module, std::string_view name) {
  static const at::Tensor kNone;
  const auto* found = module.graph().find_node(name)->meta().get<at::Tensor>("val");
  return found ? *found : kNone;
}

// torch.fx's test_meta_tracer.
struct Net : torch::nn::Module {
  at::Tensor forward(at::Tensor x) {
    at::Tensor e = emb(x);
    e = e + torch::arange(e.size(-1), torch::kFloat);
    at::Tensor normed = layernorm(e);
    return normed.size(0) < 30 ? torch::relu(normed) : torch::sigmoid(normed);
  }
  nn::Embedding emb = register_module("emb", nn::Embedding(42, 16));
  nn::LayerNorm layernorm =
      register_module("layernorm", nn::LayerNorm(torch::nn::LayerNormOptions({16})));
};

TEST(MetaTracer, E_013_X_011_programs_branch_by_shapes) {
  auto net = std::make_shared<Net>();
  for (const std::int64_t batch : {15, 35}) {
    const at::Tensor x = torch::randint(42, {batch});
    MetaTracer tracer({{"x", x.to(torch::kMeta)}});
    auto module = symbolic_trace(tracer, net);
    module->graph().lint({.strict = true});
    EXPECT_TRUE(torch::allclose((*module)(x).toTensor(), net->forward(x)));
    EXPECT_EQ(module->graph().find_calls("aten::relu").size(), batch < 30 ? 1u : 0u);
    EXPECT_EQ(module->graph().find_calls("aten::sigmoid").size(), batch < 30 ? 0u : 1u);
    EXPECT_EQ(val(*module, "layernorm").sizes(), (std::vector<std::int64_t>{batch, 16}));
    EXPECT_TRUE(val(*module, "layernorm").is_meta());
    const std::string file = ::testing::TempDir() + "meta_tracer_test.fxa";
    save(*module, file);
    EXPECT_TRUE(torch::allclose((*load(file))(x).toTensor(), net->forward(x)));
    std::filesystem::remove(file);
  }
}

TEST(MetaTracer, T_063_every_node_gets_its_tensor_without_data) {
  MetaTracer tracer({{"x", torch::empty({2, 3}, torch::kDouble)}});
  auto module = symbolic_trace(tracer, [](Proxy x) {
    EXPECT_EQ(x.sizes(), (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(x.scalar_type(), torch::kDouble);
    EXPECT_EQ(x.len(), 2);
    Proxy t = x.t();
    EXPECT_FALSE(t.is_contiguous());
    EXPECT_EQ(t.strides(), (std::vector<std::int64_t>{1, 3}));
    Proxy y = relu(t) + 1;
    auto [values, indices] = y.max(0).unpack<2>();
    EXPECT_EQ(indices.scalar_type(), torch::kLong);
    return values + y.attr("shape")[0];
  });
  EXPECT_EQ(val(*module, "relu").sizes(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(val(*module, "add").scalar_type(), torch::kDouble);
  EXPECT_EQ(val(*module, "add_1").sizes(), (std::vector<std::int64_t>{2}));
  const at::Tensor x = torch::rand({2, 3}, torch::kDouble);
  EXPECT_TRUE(
      torch::equal((*module)(x).toTensor(), std::get<0>((torch::relu(x.t()) + 1).max(0)) + 3));
}

TEST(MetaTracer, tensor_code_may_ask_for_geometry) {
  MetaTracer tracer({{"x", torch::empty({4, 6})}});
  auto module = symbolic_trace(tracer, [](at::Tensor x) {
    EXPECT_EQ(x.dim(), 2);
    EXPECT_EQ(x.numel(), 24);
    EXPECT_EQ(x.scalar_type(), torch::kFloat);
    EXPECT_TRUE(x.is_contiguous());
    at::Tensor y = x.view({x.size(0), 2, -1});
    EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{4, 2, 3}));
    return torch::nn::functional::linear(y, torch::ones({5, 3}), torch::zeros({5}));
  });
  const at::Tensor x = torch::rand({4, 6});
  EXPECT_TRUE(
      torch::allclose((*module)(x).toTensor(),
                      torch::nn::functional::linear(x.view({4, 2, 3}), torch::ones({5, 3}))));
}

TEST(MetaTracer, what_is_not_known_is_refused_and_nothing_changes) {
  MetaTracer tracer({{"y", torch::empty({2})}});
  EXPECT_FX_ERROR(symbolic_trace(tracer,
                                 [](Proxy x, Proxy y) {
                                   EXPECT_EQ(y.len(), 2);
                                   return (x + y).sizes().size() > 1 ? x : y;
                                 }),
                  TraceError, kConcreteValue, "sizes() was asked of Proxy(add)");
  EXPECT_FX_ERROR(
      symbolic_trace(tracer, [](Proxy, Proxy y) { return y.item<float>() > 0 ? 1 : 2; }),
      TraceError, kConcreteValue, "item<T>()");
  // Batch norm in training writes to its buffers, also when a copy of it runs.
  struct Norm : torch::nn::Module {
    at::Tensor forward(at::Tensor x) { return norm(x); }
    nn::BatchNorm1d norm = register_module("norm", nn::BatchNorm1d(3));
  };
  auto net = std::make_shared<Norm>();
  MetaTracer with_input({{"x", torch::empty({4, 3})}});
  auto module = symbolic_trace(with_input, net);
  EXPECT_EQ(val(*module, "norm").sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 0);
  EXPECT_TRUE(torch::equal(net->norm->running_var, torch::ones({3})));
}

}  // namespace
}  // namespace fx
