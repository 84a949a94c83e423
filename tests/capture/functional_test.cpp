// torch::nn::functional under symbolic tracing (torch.fx's TestFunctionalTracing): what is recorded
// and what asks a proxy for something it does not have.
#include <torch/torch.h>

#include <optional>

#include "fx/capture/symbolic_trace.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

namespace F = torch::nn::functional;
using T = at::Tensor;

struct Case {
  const char* name;
  std::function<T(T)> call;
  T input;
  std::optional<ErrorCode> refused = {};
};

TEST(Functional, F_208_traces_or_says_what_it_asked_for) {
  constexpr ErrorCode kAsked = ErrorCode::kConcreteValue;
  const T flat = torch::rand({4, 6}), signal = torch::rand({2, 4, 8});
  const T image = torch::rand({2, 4, 8, 8}), volume = torch::rand({1, 2, 4, 4, 4});
  const T target = torch::rand({4, 6}), classes = torch::tensor({1, 0, 5, 2});
  const T weight = torch::rand({3, 6}), kernel = torch::rand({3, 4, 3, 3});
  const std::vector<Case> cases = {
      // What asks for a size, a number of dimensions or a dtype is refused.
      {"adaptive_avg_pool1d",
       [](T x) { return F::adaptive_avg_pool1d(x, F::AdaptiveAvgPool1dFuncOptions(3)); }, signal},
      {"adaptive_avg_pool2d",
       [](T x) { return F::adaptive_avg_pool2d(x, F::AdaptiveAvgPool2dFuncOptions(3)); }, image,
       kAsked},
      {"adaptive_max_pool1d",
       [](T x) { return F::adaptive_max_pool1d(x, F::AdaptiveMaxPool1dFuncOptions(3)); }, signal},
      {"avg_pool1d", [](T x) { return F::avg_pool1d(x, F::AvgPool1dFuncOptions(3)); }, signal},
      {"avg_pool2d", [](T x) { return F::avg_pool2d(x, F::AvgPool2dFuncOptions(3)); }, image},
      {"avg_pool3d", [](T x) { return F::avg_pool3d(x, F::AvgPool3dFuncOptions(2)); }, volume},
      {"batch_norm", [](T x) { return F::batch_norm(x, torch::zeros({4}), torch::ones({4})); },
       image, kAsked},
      {"bilinear",
       [&](T x) { return F::bilinear(x, target, torch::ones({2, 6, 6}), torch::zeros({2})); },
       flat},
      {"binary_cross_entropy", [&](T x) { return F::binary_cross_entropy(x, target); }, flat,
       kAsked},
      {"binary_cross_entropy_with_logits",
       [&](T x) { return F::binary_cross_entropy_with_logits(x, target); }, flat, kAsked},
      {"celu", [](T x) { return F::celu(x); }, flat},
      {"conv1d", [&](T x) { return F::conv1d(x, torch::ones({3, 4, 3})); }, signal},
      {"conv2d", [&](T x) { return F::conv2d(x, kernel); }, image},
      {"conv3d", [](T x) { return F::conv3d(x, torch::ones({3, 2, 2, 2, 2})); }, volume},
      {"conv_transpose2d", [](T x) { return F::conv_transpose2d(x, torch::ones({4, 3, 2, 2})); },
       image},
      {"cosine_embedding_loss",
       [&](T x) { return F::cosine_embedding_loss(x, target, torch::ones({4})); }, flat},
      {"cosine_similarity", [&](T x) { return F::cosine_similarity(x, target); }, flat},
      {"cross_entropy", [&](T x) { return F::cross_entropy(x, classes); }, flat},
      {"dropout", [](T x) { return F::dropout(x, F::DropoutFuncOptions().training(false)); }, flat},
      {"elu", [](T x) { return F::elu(x); }, flat},
      {"embedding", [](T x) { return F::embedding(x, torch::ones({9, 3})); }, classes},
      {"feature_alpha_dropout",
       [](T x) {
         return F::feature_alpha_dropout(x, F::FeatureAlphaDropoutFuncOptions().training(false));
       },
       image},
      {"fold", [](T x) { return F::fold(x, F::FoldFuncOptions({3, 3}, {2, 2})); },
       torch::rand({1, 8, 4}), kAsked},
      {"gelu", [](T x) { return F::gelu(x); }, flat},
      {"glu", [](T x) { return F::glu(x); }, flat, kAsked},
      {"grid_sample", [](T x) { return F::grid_sample(x, torch::zeros({2, 3, 3, 2})); }, image},
      {"group_norm", [](T x) { return F::group_norm(x, F::GroupNormFuncOptions(2)); }, image},
      {"gumbel_softmax",
       [](T x) { return F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().dim(1)).mul(0); }, flat},
      {"hardshrink", [](T x) { return F::hardshrink(x); }, flat},
      {"hardtanh", [](T x) { return F::hardtanh(x); }, flat},
      {"hinge_embedding_loss", [&](T x) { return F::hinge_embedding_loss(x, torch::ones({4, 6})); },
       flat},
      {"huber_loss", [&](T x) { return F::huber_loss(x, target); }, flat, kAsked},
      {"instance_norm", [](T x) { return F::instance_norm(x); }, image},
      {"interpolate",
       [](T x) {
         return F::interpolate(x,
                               F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}));
       },
       image, kAsked},
      {"kl_div",
       [&](T x) { return F::kl_div(x, target, F::KLDivFuncOptions().reduction(torch::kSum)); },
       flat},
      {"l1_loss", [&](T x) { return F::l1_loss(x, target); }, flat},
      {"layer_norm", [](T x) { return F::layer_norm(x, F::LayerNormFuncOptions({6})); }, flat},
      {"leaky_relu", [](T x) { return F::leaky_relu(x); }, flat},
      {"linear", [&](T x) { return F::linear(x, weight); }, flat, kAsked},
      {"local_response_norm",
       [](T x) { return F::local_response_norm(x, F::LocalResponseNormFuncOptions(2)); }, image,
       kAsked},
      {"log_softmax", [](T x) { return F::log_softmax(x, 1); }, flat},
      {"logsigmoid", [](T x) { return F::logsigmoid(x); }, flat},
      {"lp_pool1d", [](T x) { return F::lp_pool1d(x, F::LPPool1dFuncOptions(2, 3)); }, signal},
      {"lp_pool2d", [](T x) { return F::lp_pool2d(x, F::LPPool2dFuncOptions(2, 3)); }, image},
      {"margin_ranking_loss",
       [&](T x) { return F::margin_ranking_loss(x, target, torch::ones({4, 6})); }, flat, kAsked},
      {"max_pool1d", [](T x) { return F::max_pool1d(x, F::MaxPool1dFuncOptions(2)); }, signal},
      {"max_pool2d", [](T x) { return F::max_pool2d(x, F::MaxPool2dFuncOptions(2)); }, image},
      {"max_pool3d", [](T x) { return F::max_pool3d(x, F::MaxPool3dFuncOptions(2)); }, volume},
      {"mish", [](T x) { return F::mish(x); }, flat},
      {"mse_loss", [&](T x) { return F::mse_loss(x, target); }, flat, kAsked},
      {"multi_margin_loss", [&](T x) { return F::multi_margin_loss(x, classes); }, flat},
      {"multilabel_margin_loss",
       [](T x) { return F::multilabel_margin_loss(x, torch::zeros({4, 6}, torch::kLong)); }, flat},
      {"multilabel_soft_margin_loss",
       [&](T x) { return F::multilabel_soft_margin_loss(x, target); }, flat, kAsked},
      {"nll_loss", [&](T x) { return F::nll_loss(x, classes); }, flat, kAsked},
      {"normalize", [](T x) { return F::normalize(x); }, flat},
      {"one_hot", [](T x) { return F::one_hot(x, 6).to(torch::kFloat); }, classes},
      {"pad", [](T x) { return F::pad(x, F::PadFuncOptions({1, 1})); }, flat},
      {"pairwise_distance", [&](T x) { return F::pairwise_distance(x, target); }, flat},
      {"pdist", [](T x) { return F::pdist(x); }, flat},
      {"pixel_shuffle", [](T x) { return F::pixel_shuffle(x, F::PixelShuffleFuncOptions(2)); },
       image},
      {"poisson_nll_loss", [&](T x) { return F::poisson_nll_loss(x, target); }, flat},
      {"prelu", [](T x) { return F::prelu(x, torch::ones({1})); }, flat},
      {"relu", [](T x) { return F::relu(x); }, flat},
      {"relu6", [](T x) { return F::relu6(x); }, flat},
      {"rrelu", [](T x) { return F::rrelu(x); }, flat},
      {"selu", [](T x) { return F::selu(x); }, flat},
      {"silu", [](T x) { return F::silu(x); }, flat},
      {"smooth_l1_loss", [&](T x) { return F::smooth_l1_loss(x, target); }, flat, kAsked},
      {"soft_margin_loss", [&](T x) { return F::soft_margin_loss(x, target); }, flat},
      {"softmax", [](T x) { return F::softmax(x, 1); }, flat},
      {"softmin", [](T x) { return F::softmin(x, 1); }, flat},
      {"softplus", [](T x) { return F::softplus(x); }, flat},
      {"softshrink", [](T x) { return F::softshrink(x); }, flat},
      {"softsign", [](T x) { return F::softsign(x); }, flat},
      {"tanhshrink", [](T x) { return F::tanhshrink(x); }, flat},
      {"threshold", [](T x) { return F::threshold(x, F::ThresholdFuncOptions(0.5, 2)); }, flat},
      {"triplet_margin_loss", [&](T x) { return F::triplet_margin_loss(x, target, target * 2); },
       flat},
      {"unfold", [](T x) { return F::unfold(x, F::UnfoldFuncOptions({2, 2})); }, image, kAsked},
  };
  std::size_t traced = 0;
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    std::optional<ErrorCode> found;
    std::shared_ptr<GraphModule> module;
    try {
      module = symbolic_trace([&](T x) { return each.call(x); });
    } catch (const TraceError& error) {
      found = error.code();
      EXPECT_NE(std::string(error.what()).find("Proxy("), std::string::npos) << error.what();
    }
    EXPECT_EQ(found, each.refused);
    if (!module) continue;
    ++traced;
    module->graph().lint({.strict = true});
    EXPECT_TRUE(torch::allclose((*module)(each.input).toTensor(), each.call(each.input)));
  }
  EXPECT_GT(traced, 40u);
}

}  // namespace
}  // namespace fx
