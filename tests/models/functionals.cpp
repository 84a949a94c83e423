// The functionals of torch::nn beside the losses, weights and statistics as inputs.
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace F = torch::nn::functional;

const std::vector<Input> kFlat{normal({kBatch, 6})};
const std::vector<Input> kSignal{normal({kBatch, 4, 12})};
const std::vector<Input> kImage{normal({kBatch, 4, 12, 12})};
const std::vector<Input> kVolume{normal({kBatch, 4, 6, 6, 6})};

void add_activations(Cases& cases) {
  FX_ZOO_CALL(elu, (kFlat), F::elu(in[0], F::ELUFuncOptions().alpha(0.5)));
  FX_ZOO_CALL(elu, (kFlat), F::elu(in[0], F::ELUFuncOptions().inplace(true)), in[0]);
  FX_ZOO_CALL(selu, (kFlat), F::selu(in[0], F::SELUFuncOptions().inplace(true)));
  FX_ZOO_CALL(hardshrink, (kFlat), F::hardshrink(in[0]));
  FX_ZOO_CALL(hardtanh, (kFlat), F::hardtanh(in[0], F::HardtanhFuncOptions().min_val(-0.5)));
  FX_ZOO_CALL(leaky_relu, (kFlat), F::leaky_relu(in[0]));
  FX_ZOO_CALL(logsigmoid, (kFlat), F::logsigmoid(in[0]));
  FX_ZOO_CALL(gumbel_softmax, (kFlat),
              F::gumbel_softmax(in[0], F::GumbelSoftmaxFuncOptions().dim(1)));
  FX_ZOO_CALL(gumbel_softmax, (kFlat),
              F::gumbel_softmax(in[0], F::GumbelSoftmaxFuncOptions().hard(true).tau(0.5).dim(1)));
  FX_ZOO_CALL(softmax, (kFlat), F::softmax(in[0], 1));
  FX_ZOO_CALL(softmax, (kFlat), F::softmax(in[0], F::SoftmaxFuncOptions(0).dtype(torch::kDouble)));
  FX_ZOO_CALL(softmin, (kFlat), F::softmin(in[0], 1));
  FX_ZOO_CALL(log_softmax, (kFlat), F::log_softmax(in[0], 1));
  FX_ZOO_CALL(glu, (kFlat), F::glu(in[0], F::GLUFuncOptions(1)));
  FX_ZOO_CALL(gelu, (kFlat), F::gelu(in[0], F::GELUFuncOptions().approximate("tanh")));
  FX_ZOO_CALL(silu, (kFlat), F::silu(in[0]));
  FX_ZOO_CALL(mish, (kFlat), F::mish(in[0]));
  FX_ZOO_CALL(prelu, ({normal({kBatch, 6}), normal({6})}), F::prelu(in[0], in[1]));
  FX_ZOO_CALL(relu, (kFlat), F::relu(in[0]));
  FX_ZOO_CALL(relu, (kFlat), F::relu(in[0], F::ReLUFuncOptions(true)), in[0] * 2);
  FX_ZOO_CALL(relu6, (kFlat), F::relu6(in[0]));
  FX_ZOO_CALL(rrelu, (kFlat), F::rrelu(in[0], F::RReLUFuncOptions().training(true)));
  FX_ZOO_CALL(celu, (kFlat), F::celu(in[0], F::CELUFuncOptions().alpha(0.5)));
  FX_ZOO_CALL(softplus, (kFlat), F::softplus(in[0]));
  FX_ZOO_CALL(softshrink, (kFlat), F::softshrink(in[0]));
  FX_ZOO_CALL(softsign, (kFlat), F::softsign(in[0]));
  FX_ZOO_CALL(tanhshrink, (kFlat), F::tanhshrink(in[0]));
  FX_ZOO_CALL(threshold, (kFlat),
              F::threshold(in[0], F::ThresholdFuncOptions(0.1, 2).inplace(true)));
}

void add_attention(Cases& cases) {
  FX_ZOO_CALL(
      multi_head_attention_forward,
      ({normal({5, kBatch, 8}), normal({24, 8}), normal({24}), normal({8, 8}), normal({8}),
        normal({5, 5})}),
      F::multi_head_attention_forward(in[0], in[0], in[0],
                                      F::MultiheadAttentionForwardFuncOptions(
                                          8, 2, in[1], in[2], {}, {}, false, 0.2, in[3], in[4])
                                          .training(true)
                                          .attn_mask(in[5])));
}

void add_normalisation(Cases& cases) {
  FX_ZOO_CALL(batch_norm,
              ({normal({kBatch, 4, 5}), normal({4}), uniform({4}), normal({4}), normal({4})}),
              F::batch_norm(in[0], in[1].detach(), in[2].detach(),
                            F::BatchNormFuncOptions().weight(in[3]).bias(in[4]).training(true)));
  FX_ZOO_CALL(batch_norm, ({normal({kBatch, 4, 5}), normal({4}), uniform({4})}),
              F::batch_norm(in[0], in[1].detach(), in[2].detach()));
  FX_ZOO_CALL(
      instance_norm, ({normal({kBatch, 4, 5}), normal({4}), uniform({4})}),
      F::instance_norm(
          in[0],
          F::InstanceNormFuncOptions().running_mean(in[1].detach()).running_var(in[2].detach())));
  FX_ZOO_CALL(normalize, (kFlat), F::normalize(in[0], F::NormalizeFuncOptions().p(3).dim(0)));
  FX_ZOO_CALL(normalize, ({normal({3, 6})}), [&] {
    const torch::NoGradGuard no_grad;
    at::Tensor out = torch::empty_like(in[0]);
    F::normalize(in[0], F::NormalizeFuncOptions().out(out));
    return out;
  }());
  FX_ZOO_CALL(layer_norm, ({normal({kBatch, 6}), normal({6}), normal({6})}),
              F::layer_norm(in[0], F::LayerNormFuncOptions({6}).weight(in[1]).bias(in[2])));
  FX_ZOO_CALL(local_response_norm, (kImage),
              F::local_response_norm(in[0], F::LocalResponseNormFuncOptions(3)));
  FX_ZOO_CALL(group_norm, ({normal({kBatch, 4, 5}), normal({4})}),
              F::group_norm(in[0], F::GroupNormFuncOptions(2).weight(in[1])));
}

void add_convolutions(Cases& cases) {
  FX_ZOO_CALL(conv1d, ({normal({kBatch, 4, 12}), normal({6, 4, 3}), normal({6})}),
              F::conv1d(in[0], in[1], F::Conv1dFuncOptions().bias(in[2]).padding(torch::kSame)));
  FX_ZOO_CALL(conv2d, ({normal({kBatch, 4, 9, 9}), normal({6, 2, 3, 3})}),
              F::conv2d(in[0], in[1], F::Conv2dFuncOptions().groups(2).stride(2).padding(1)));
  FX_ZOO_CALL(conv3d, ({normal({kBatch, 4, 5, 5, 5}), normal({6, 4, 2, 2, 2})}),
              F::conv3d(in[0], in[1], F::Conv3dFuncOptions().dilation(2)));
  FX_ZOO_CALL(conv_transpose1d, ({normal({kBatch, 4, 7}), normal({4, 6, 3})}),
              F::conv_transpose1d(in[0], in[1], F::ConvTranspose1dFuncOptions().stride(2)));
  FX_ZOO_CALL(conv_transpose2d, ({normal({kBatch, 4, 5, 5}), normal({4, 3, 2, 2}), normal({3})}),
              F::conv_transpose2d(in[0], in[1], F::ConvTranspose2dFuncOptions().bias(in[2])));
  FX_ZOO_CALL(conv_transpose3d, ({normal({kBatch, 4, 3, 3, 3}), normal({4, 2, 2, 2, 2})}),
              F::conv_transpose3d(in[0], in[1], F::ConvTranspose3dFuncOptions().padding(1)));
  FX_ZOO_CALL(linear, ({normal({kBatch, 6}), normal({5, 6}), normal({5})}),
              F::linear(in[0], in[1], in[2]));
  FX_ZOO_CALL(linear, ({normal({kBatch, 3, 6}), normal({5, 6})}), F::linear(in[0], in[1]));
  FX_ZOO_CALL(bilinear, ({normal({kBatch, 6}), normal({kBatch, 4}), normal({5, 6, 4})}),
              F::bilinear(in[0], in[1], in[2]));
  FX_ZOO_CALL(fold, ({normal({kBatch, 8, 12})}), F::fold(in[0], F::FoldFuncOptions({4, 5}, 2)));
  FX_ZOO_CALL(unfold, (kImage), F::unfold(in[0], F::UnfoldFuncOptions({3, 2}).padding(1)));
}

void add_pooling(Cases& cases) {
  FX_ZOO_CALL(avg_pool1d, (kSignal), F::avg_pool1d(in[0], F::AvgPool1dFuncOptions(3).stride(2)));
  FX_ZOO_CALL(avg_pool2d, (kImage), F::avg_pool2d(in[0], F::AvgPool2dFuncOptions(3).padding(1)));
  FX_ZOO_CALL(avg_pool3d, (kVolume), F::avg_pool3d(in[0], F::AvgPool3dFuncOptions(2)));
  FX_ZOO_CALL(max_pool1d, (kSignal), F::max_pool1d(in[0], F::MaxPool1dFuncOptions(3).stride(2)));
  FX_ZOO_CALL(max_pool2d, (kImage), F::max_pool2d(in[0], F::MaxPool2dFuncOptions(3).dilation(2)));
  FX_ZOO_CALL(max_pool3d, (kVolume), F::max_pool3d(in[0], F::MaxPool3dFuncOptions(2)));
  FX_ZOO_CALL(max_pool1d_with_indices, (kSignal),
              F::max_pool1d_with_indices(in[0], F::MaxPool1dFuncOptions(3)));
  FX_ZOO_CALL(max_pool2d_with_indices, (kImage),
              F::max_pool2d_with_indices(in[0], F::MaxPool2dFuncOptions(3)));
  FX_ZOO_CALL(max_pool3d_with_indices, (kVolume),
              F::max_pool3d_with_indices(in[0], F::MaxPool3dFuncOptions(2)));
  FX_ZOO_CALL(adaptive_max_pool1d, (kSignal),
              F::adaptive_max_pool1d(in[0], F::AdaptiveMaxPool1dFuncOptions(5)));
  FX_ZOO_CALL(adaptive_max_pool2d, (kImage),
              F::adaptive_max_pool2d(in[0], F::AdaptiveMaxPool2dFuncOptions(5)));
  FX_ZOO_CALL(adaptive_max_pool3d, (kVolume),
              F::adaptive_max_pool3d(in[0], F::AdaptiveMaxPool3dFuncOptions({2, 3, 4})));
  FX_ZOO_CALL(adaptive_max_pool1d_with_indices, (kSignal),
              F::adaptive_max_pool1d_with_indices(in[0], F::AdaptiveMaxPool1dFuncOptions(5)));
  FX_ZOO_CALL(adaptive_max_pool2d_with_indices, (kImage),
              F::adaptive_max_pool2d_with_indices(in[0], F::AdaptiveMaxPool2dFuncOptions(5)));
  FX_ZOO_CALL(adaptive_max_pool3d_with_indices, (kVolume),
              F::adaptive_max_pool3d_with_indices(in[0], F::AdaptiveMaxPool3dFuncOptions(2)));
  FX_ZOO_CALL(adaptive_avg_pool1d, (kSignal),
              F::adaptive_avg_pool1d(in[0], F::AdaptiveAvgPool1dFuncOptions(5)));
  FX_ZOO_CALL(adaptive_avg_pool2d, (kImage),
              F::adaptive_avg_pool2d(in[0], F::AdaptiveAvgPool2dFuncOptions({std::nullopt, 3})));
  FX_ZOO_CALL(adaptive_avg_pool3d, (kVolume),
              F::adaptive_avg_pool3d(in[0], F::AdaptiveAvgPool3dFuncOptions(2)));
  FX_ZOO_CALL(max_unpool1d, ({normal({kBatch, 4, 6}), indices(12, {kBatch, 4, 6})}),
              F::max_unpool1d(in[0], in[1], F::MaxUnpool1dFuncOptions(2)));
  FX_ZOO_CALL(max_unpool2d, ({normal({kBatch, 4, 6, 6}), indices(144, {kBatch, 4, 6, 6})}),
              F::max_unpool2d(in[0], in[1], F::MaxUnpool2dFuncOptions(2)));
  FX_ZOO_CALL(max_unpool3d, ({normal({kBatch, 4, 3, 3, 3}), indices(216, {kBatch, 4, 3, 3, 3})}),
              F::max_unpool3d(in[0], in[1], F::MaxUnpool3dFuncOptions(2)));
  FX_ZOO_CALL(fractional_max_pool2d, (kImage),
              F::fractional_max_pool2d(in[0], F::FractionalMaxPool2dFuncOptions(3).output_size(5)));
  FX_ZOO_CALL(fractional_max_pool2d_with_indices, (kImage),
              F::fractional_max_pool2d_with_indices(
                  in[0], F::FractionalMaxPool2dFuncOptions(3).output_size(5)));
  FX_ZOO_CALL(fractional_max_pool3d, (kVolume),
              F::fractional_max_pool3d(in[0], F::FractionalMaxPool3dFuncOptions(2).output_size(3)));
  FX_ZOO_CALL(fractional_max_pool3d_with_indices, (kVolume),
              F::fractional_max_pool3d_with_indices(
                  in[0], F::FractionalMaxPool3dFuncOptions(2).output_size(3)));
  FX_ZOO_CALL(lp_pool1d, (kSignal), F::lp_pool1d(in[0], F::LPPool1dFuncOptions(2, 3)));
  FX_ZOO_CALL(lp_pool2d, (kImage), F::lp_pool2d(in[0], F::LPPool2dFuncOptions(2, 3)));
  FX_ZOO_CALL(lp_pool3d, (kVolume), F::lp_pool3d(in[0], F::LPPool3dFuncOptions(2, 2)));
}

void add_rest(Cases& cases) {
  const std::vector<Input> pair{normal({kBatch, 6}), normal({kBatch, 6})};
  FX_ZOO_CALL(cosine_similarity, (pair), F::cosine_similarity(in[0], in[1]));
  FX_ZOO_CALL(pairwise_distance, (pair), F::pairwise_distance(in[0], in[1]));
  FX_ZOO_CALL(pdist, ({normal({4, 6})}), F::pdist(in[0], 1.5));
  FX_ZOO_CALL(dropout, (kFlat), F::dropout(in[0], F::DropoutFuncOptions().p(0.3)));
  FX_ZOO_CALL(dropout, (kFlat), F::dropout(in[0], F::DropoutFuncOptions().training(false)));
  FX_ZOO_CALL(dropout2d, (kImage), F::dropout2d(in[0], F::Dropout2dFuncOptions().inplace(true)));
  FX_ZOO_CALL(dropout3d, (kVolume), F::dropout3d(in[0]));
  FX_ZOO_CALL(alpha_dropout, (kFlat),
              F::alpha_dropout(in[0], F::AlphaDropoutFuncOptions().training(true)));
  FX_ZOO_CALL(feature_alpha_dropout, (kImage),
              F::feature_alpha_dropout(in[0], F::FeatureAlphaDropoutFuncOptions().training(true)));
  FX_ZOO_CALL(one_hot, ({indices(6, {kBatch, 3})}), F::one_hot(in[0], 6));
  FX_ZOO_CALL(embedding, ({indices(9, {kBatch, 5}), normal({9, 4})}), F::embedding(in[0], in[1]));
  FX_ZOO_CALL(embedding, ({indices(9, {kBatch, 5}), normal({9, 4})}),
              F::embedding(in[0], in[1], F::EmbeddingFuncOptions().max_norm(0.5)));
  FX_ZOO_CALL(
      embedding_bag, ({indices(9, {7}), normal({9, 4}), fixed(torch::tensor({0, 3})), normal({7})}),
      F::embedding_bag(
          in[0], in[1],
          F::EmbeddingBagFuncOptions().offsets(in[2]).per_sample_weights(in[3]).mode(torch::kSum)));
  FX_ZOO_CALL(pad, (kImage), F::pad(in[0], F::PadFuncOptions({1, 2, 3, 0}).value(7)));
  FX_ZOO_CALL(pad, (kImage), F::pad(in[0], F::PadFuncOptions({1, 2, 3, 1}).mode(torch::kReflect)));
  FX_ZOO_CALL(pad, (kImage),
              F::pad(in[0], F::PadFuncOptions({1, 2, 3, 1}).mode(torch::kReplicate)));
  FX_ZOO_CALL(pad, (kSignal), F::pad(in[0], F::PadFuncOptions({1, 2}).mode(torch::kCircular)));
  FX_ZOO_CALL(pixel_shuffle, (kImage), F::pixel_shuffle(in[0], F::PixelShuffleFuncOptions(2)));
  FX_ZOO_CALL(pixel_unshuffle, (kImage),
              F::pixel_unshuffle(in[0], F::PixelUnshuffleFuncOptions(2)));
  FX_ZOO_CALL(interpolate, (kImage),
              F::interpolate(in[0], F::InterpolateFuncOptions()
                                        .scale_factor(std::vector<double>{2, 2})
                                        .mode(torch::kNearestExact)));
  FX_ZOO_CALL(interpolate, (kImage),
              F::interpolate(in[0], F::InterpolateFuncOptions()
                                        .scale_factor(std::vector<double>{0.5, 0.7})
                                        .mode(torch::kBilinear)
                                        .align_corners(false)
                                        .recompute_scale_factor(true)));
  FX_ZOO_CALL(interpolate, (kImage),
              F::interpolate(in[0], F::InterpolateFuncOptions()
                                        .size(std::vector<std::int64_t>{6, 7})
                                        .mode(torch::kBicubic)
                                        .antialias(true)));
  FX_ZOO_CALL(
      interpolate, (kSignal),
      F::interpolate(
          in[0],
          F::InterpolateFuncOptions().size(std::vector<std::int64_t>{6}).mode(torch::kArea)));
  FX_ZOO_CALL(grid_sample, ({normal({kBatch, 4, 6, 6}), uniform({kBatch, 3, 5, 2})}),
              F::grid_sample(in[0], in[1],
                             F::GridSampleFuncOptions()
                                 .mode(torch::kNearest)
                                 .padding_mode(torch::kReflection)
                                 .align_corners(true)));
  FX_ZOO_CALL(grid_sample, ({normal({kBatch, 4, 6, 6}), uniform({kBatch, 3, 5, 2})}),
              F::grid_sample(in[0], in[1]));
  FX_ZOO_CALL(affine_grid, ({normal({2, 2, 3})}), F::affine_grid(in[0], {2, 3, 4, 5}, true));
}

}  // namespace

void add_functionals(Cases& cases) {
  add_activations(cases);
  add_attention(cases);
  add_normalisation(cases);
  add_convolutions(cases);
  add_pooling(cases);
  add_rest(cases);
}

}  // namespace fx::zoo
