// Modules without much inside: activations, pooling, padding, normalisation, dropout, shapes.
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace nn = torch::nn;
using namespace torch::nn;  // NOLINT: options as users write them

const std::vector<Input> kFlat{normal({kBatch, 6})};
const std::vector<Input> kSignal{normal({kBatch, 4, 12})};
const std::vector<Input> kImage{normal({kBatch, 4, 12, 12})};
const std::vector<Input> kVolume{normal({kBatch, 4, 6, 6, 6})};

void add_activations(Cases& cases) {
  FX_ZOO_MODULE(ELU, (kFlat), ELUOptions().alpha(0.5));
  FX_ZOO_MODULE(ELU, (kFlat), ELUOptions().inplace(true));
  FX_ZOO_MODULE(SELU, (kFlat));
  FX_ZOO_MODULE(SELU, (kFlat), SELUOptions().inplace(true));
  FX_ZOO_MODULE(Hardshrink, (kFlat), HardshrinkOptions(0.3));
  FX_ZOO_MODULE(Hardtanh, (kFlat), HardtanhOptions().min_val(-0.4).max_val(0.6));
  FX_ZOO_MODULE(Hardtanh, (kFlat), HardtanhOptions().inplace(true));
  FX_ZOO_MODULE(LeakyReLU, (kFlat), LeakyReLUOptions().negative_slope(0.2));
  FX_ZOO_MODULE(LeakyReLU, (kFlat), LeakyReLUOptions().inplace(true));
  FX_ZOO_MODULE(LogSigmoid, (kFlat));
  FX_ZOO_MODULE(Softmax, (kFlat), SoftmaxOptions(1));
  FX_ZOO_MODULE(Softmin, (kFlat), SoftminOptions(1));
  FX_ZOO_MODULE(LogSoftmax, (kFlat), LogSoftmaxOptions(1));
  FX_ZOO_MODULE(Softmax2d, (kImage));
  FX_ZOO_MODULE(PReLU, (kImage));
  FX_ZOO_MODULE(PReLU, (kImage), PReLUOptions().num_parameters(4).init(0.1));
  FX_ZOO_MODULE(ReLU, (kFlat));
  FX_ZOO_MODULE(ReLU, (kFlat), ReLUOptions(true));
  FX_ZOO_MODULE(ReLU6, (kFlat));
  FX_ZOO_MODULE(ReLU6, (kFlat), ReLU6Options(true));
  FX_ZOO_MODULE(RReLU, (kFlat), RReLUOptions().lower(0.1).upper(0.4));
  FX_ZOO_MODULE(RReLU, (kFlat), RReLUOptions().inplace(true));
  FX_ZOO_MODULE(CELU, (kFlat), CELUOptions().alpha(0.7));
  FX_ZOO_MODULE(CELU, (kFlat), CELUOptions().inplace(true));
  FX_ZOO_MODULE(GLU, (kFlat), GLUOptions(1));
  FX_ZOO_MODULE(GELU, (kFlat));
  FX_ZOO_MODULE(GELU, (kFlat), GELUOptions().approximate("tanh"));
  FX_ZOO_MODULE(SiLU, (kFlat));
  FX_ZOO_MODULE(Mish, (kFlat));
  FX_ZOO_MODULE(Sigmoid, (kFlat));
  FX_ZOO_MODULE(Softplus, (kFlat), SoftplusOptions().beta(2).threshold(1));
  FX_ZOO_MODULE(Softshrink, (kFlat), SoftshrinkOptions(0.2));
  FX_ZOO_MODULE(Softsign, (kFlat));
  FX_ZOO_MODULE(Tanh, (kFlat));
  FX_ZOO_MODULE(Tanhshrink, (kFlat));
  FX_ZOO_MODULE(Threshold, (kFlat), ThresholdOptions(0.1, 20));
  FX_ZOO_MODULE(Threshold, (kFlat), ThresholdOptions(0.1, 20).inplace(true));
}

void add_pooling(Cases& cases) {
  FX_ZOO_MODULE(AvgPool1d, (kSignal), AvgPool1dOptions(3).stride(2).padding(1));
  FX_ZOO_MODULE(AvgPool1d, (kSignal), AvgPool1dOptions(5).ceil_mode(true).count_include_pad(false));
  FX_ZOO_MODULE(AvgPool2d, (kImage), AvgPool2dOptions({3, 2}).stride({2, 1}).padding({1, 0}));
  FX_ZOO_MODULE(AvgPool2d, (kImage), AvgPool2dOptions(5).ceil_mode(true).divisor_override(3));
  FX_ZOO_MODULE(AvgPool3d, (kVolume), AvgPool3dOptions(2).stride(1));
  FX_ZOO_MODULE(AvgPool3d, (kVolume), AvgPool3dOptions(4).padding(1).count_include_pad(false));
  FX_ZOO_MODULE(MaxPool1d, (kSignal), MaxPool1dOptions(3).stride(2).padding(1));
  FX_ZOO_MODULE(MaxPool1d, (kSignal), MaxPool1dOptions(3).dilation(2).ceil_mode(true));
  FX_ZOO_MODULE(MaxPool2d, (kImage), MaxPool2dOptions({3, 2}).stride({2, 1}).padding(1));
  FX_ZOO_MODULE(MaxPool2d, (kImage), MaxPool2dOptions(3).dilation(2).ceil_mode(true));
  FX_ZOO_MODULE(MaxPool3d, (kVolume), MaxPool3dOptions(2).stride(1));
  FX_ZOO_MODULE(MaxPool3d, (kVolume), MaxPool3dOptions(4).ceil_mode(true));
  FX_ZOO_MODULE(AdaptiveAvgPool1d, (kSignal), AdaptiveAvgPool1dOptions(5));
  FX_ZOO_MODULE(AdaptiveAvgPool2d, (kImage), AdaptiveAvgPool2dOptions({5, std::nullopt}));
  FX_ZOO_MODULE(AdaptiveAvgPool2d, (kImage), AdaptiveAvgPool2dOptions(1));
  FX_ZOO_MODULE(AdaptiveAvgPool3d, (kVolume), AdaptiveAvgPool3dOptions({2, 3, 4}));
  FX_ZOO_MODULE(AdaptiveMaxPool1d, (kSignal), AdaptiveMaxPool1dOptions(5));
  FX_ZOO_MODULE(AdaptiveMaxPool2d, (kImage), AdaptiveMaxPool2dOptions({5, 3}));
  FX_ZOO_MODULE(AdaptiveMaxPool3d, (kVolume), AdaptiveMaxPool3dOptions(2));
  const Input pooled1d = indices(12, {kBatch, 4, 6}), pooled2d = indices(144, {kBatch, 4, 6, 6}),
              pooled3d = indices(216, {kBatch, 4, 3, 3, 3});
  FX_ZOO_MODULE(MaxUnpool1d, ({normal({kBatch, 4, 6}), pooled1d}), MaxUnpool1dOptions(2));
  FX_ZOO_MODULE(MaxUnpool2d, ({normal({kBatch, 4, 6, 6}), pooled2d}), MaxUnpool2dOptions(2));
  FX_ZOO_MODULE(MaxUnpool3d, ({normal({kBatch, 4, 3, 3, 3}), pooled3d}), MaxUnpool3dOptions(2));
  FX_ZOO_MODULE(FractionalMaxPool2d, (kImage), FractionalMaxPool2dOptions(3).output_size(5));
  FX_ZOO_MODULE(FractionalMaxPool2d, (kImage),
                FractionalMaxPool2dOptions(2).output_ratio(std::vector<double>{0.5, 0.6}));
  FX_ZOO_MODULE(FractionalMaxPool3d, (kVolume), FractionalMaxPool3dOptions(2).output_size(3));
  FX_ZOO_MODULE(LPPool1d, (kSignal), LPPool1dOptions(2, 3).stride(2));
  FX_ZOO_MODULE(LPPool2d, (kImage), LPPool2dOptions(1.5, {3, 2}).ceil_mode(true));
  FX_ZOO_MODULE(LPPool3d, (kVolume), LPPool3dOptions(2, 2));
}

void add_padding(Cases& cases) {
  FX_ZOO_MODULE(ReflectionPad1d, (kSignal), ReflectionPad1dOptions({1, 2}));
  FX_ZOO_MODULE(ReflectionPad2d, (kImage), ReflectionPad2dOptions({1, 2, 0, 3}));
  FX_ZOO_MODULE(ReflectionPad3d, (kVolume), ReflectionPad3dOptions({1, 2, 0, 1, 2, 1}));
  FX_ZOO_MODULE(ReplicationPad1d, (kSignal), ReplicationPad1dOptions({1, 2}));
  FX_ZOO_MODULE(ReplicationPad2d, (kImage), ReplicationPad2dOptions({1, 2, 0, 3}));
  FX_ZOO_MODULE(ReplicationPad3d, (kVolume), ReplicationPad3dOptions({1, 2, 0, 1, 2, 1}));
  FX_ZOO_MODULE(ZeroPad1d, (kSignal), ZeroPad1dOptions({1, 2}));
  FX_ZOO_MODULE(ZeroPad2d, (kImage), ZeroPad2dOptions({1, -2, 0, 3}));
  FX_ZOO_MODULE(ZeroPad3d, (kVolume), ZeroPad3dOptions(1));
  FX_ZOO_MODULE(ConstantPad1d, (kSignal), ConstantPad1dOptions({1, 2}, 3.5));
  FX_ZOO_MODULE(ConstantPad2d, (kImage), ConstantPad2dOptions({1, 2, 0, 3}, -1));
  FX_ZOO_MODULE(ConstantPad3d, (kVolume), ConstantPad3dOptions(1, 2.5));
}

void add_normalisation(Cases& cases) {
  FX_ZOO_MODULE(BatchNorm1d, (kFlat), BatchNorm1dOptions(6));
  FX_ZOO_MODULE(BatchNorm1d, (kSignal), BatchNorm1dOptions(4).momentum(std::nullopt));
  FX_ZOO_MODULE(BatchNorm2d, (kImage), BatchNorm2dOptions(4).eps(0.1).momentum(0.3));
  FX_ZOO_MODULE(BatchNorm2d, (kImage), BatchNorm2dOptions(4).affine(false));
  FX_ZOO_MODULE(BatchNorm2d, (kImage), BatchNorm2dOptions(4).track_running_stats(false));
  FX_ZOO_MODULE(BatchNorm3d, (kVolume), BatchNorm3dOptions(4));
  FX_ZOO_MODULE(InstanceNorm1d, (kSignal), InstanceNorm1dOptions(4));
  FX_ZOO_MODULE(InstanceNorm2d, (kImage),
                InstanceNorm2dOptions(4).affine(true).track_running_stats(true));
  FX_ZOO_MODULE(InstanceNorm3d, (kVolume), InstanceNorm3dOptions(4).affine(true).eps(0.01));
  FX_ZOO_MODULE(LayerNorm, (kFlat), LayerNormOptions({6}));
  FX_ZOO_MODULE(LayerNorm, (kImage), LayerNormOptions({12, 12}).elementwise_affine(false));
  FX_ZOO_MODULE(GroupNorm, (kImage), GroupNormOptions(2, 4));
  FX_ZOO_MODULE(GroupNorm, (kSignal), GroupNormOptions(4, 4).affine(false));
  FX_ZOO_MODULE(LocalResponseNorm, (kImage), LocalResponseNormOptions(2).alpha(0.1).k(2));
  FX_ZOO_MODULE(LocalResponseNorm, (kSignal), LocalResponseNormOptions(3));
  FX_ZOO_MODULE(CrossMapLRN2d, (kImage), CrossMapLRN2dOptions(3).alpha(0.1));
  cases.back().refused_with_gradients = "applies a torch::autograd::Function";
}

void add_dropout(Cases& cases) {
  FX_ZOO_MODULE(Dropout, (kFlat), DropoutOptions(0.3));
  FX_ZOO_MODULE(Dropout, (kFlat), DropoutOptions(0.3).inplace(true));
  FX_ZOO_MODULE(Dropout, (kFlat), DropoutOptions(1.0));
  FX_ZOO_MODULE(Dropout2d, (kImage), Dropout2dOptions(0.5));
  FX_ZOO_MODULE(Dropout3d, (kVolume), Dropout3dOptions(0.5).inplace(true));
  FX_ZOO_MODULE(AlphaDropout, (kFlat), AlphaDropoutOptions(0.5));
  FX_ZOO_MODULE(FeatureAlphaDropout, (kImage), FeatureAlphaDropoutOptions(0.5));
}

void add_shapes(Cases& cases) {
  FX_ZOO_MODULE(Identity, (kFlat));
  FX_ZOO_MODULE(Flatten, (kImage));
  FX_ZOO_MODULE(Flatten, (kVolume), FlattenOptions().start_dim(2).end_dim(-2));
  FX_ZOO_MODULE(Unflatten, (kImage), UnflattenOptions(1, {2, 2}));
  FX_ZOO_MODULE(Fold, ({normal({kBatch, 8, 12})}), FoldOptions({4, 5}, 2));
  FX_ZOO_MODULE(Fold, ({normal({kBatch, 12, 6})}),
                FoldOptions({8, 6}, {3, 4}).dilation(1).padding(1).stride({4, 2}));
  FX_ZOO_MODULE(Unfold, (kImage), UnfoldOptions({3, 2}).padding(1).stride({2, 3}).dilation(2));
  FX_ZOO_MODULE(PixelShuffle, (kImage), PixelShuffleOptions(2));
  FX_ZOO_MODULE(PixelUnshuffle, (kImage), PixelUnshuffleOptions(3));
  FX_ZOO_MODULE(Upsample, (kImage),
                UpsampleOptions().scale_factor(std::vector<double>{2, 1.5}).mode(torch::kNearest));
  FX_ZOO_MODULE(Upsample, (kSignal),
                UpsampleOptions().size(std::vector<std::int64_t>{7}).mode(torch::kLinear));
  FX_ZOO_MODULE(Upsample, (kImage),
                UpsampleOptions()
                    .size(std::vector<std::int64_t>{7, 20})
                    .mode(torch::kBilinear)
                    .align_corners(true));
  FX_ZOO_MODULE(Upsample, (kImage),
                UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBicubic));
  FX_ZOO_MODULE(
      Upsample, (kVolume),
      UpsampleOptions().scale_factor(std::vector<double>{2, 1, 2}).mode(torch::kTrilinear));
}

}  // namespace

void add_modules(Cases& cases) {
  add_activations(cases);
  add_pooling(cases);
  add_padding(cases);
  add_normalisation(cases);
  add_dropout(cases);
  add_shapes(cases);
}

}  // namespace fx::zoo
