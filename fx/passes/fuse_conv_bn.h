#pragma once

#include <ATen/core/Tensor.h>

#include "fx/passes/pass.h"

namespace fx {

struct FuseConvBnOptions {
  /// Takes the input of every Linear in front of a BatchNorm1d as [N, C]. Without it that must be
  /// known from shape_prop or from the graph (a flatten before it): a BatchNorm1d behind a
  /// three-dimensional Linear normalises another axis.
  bool assume_linear_2d = false;
};

/// Merges batch normalisation by fixed statistics into the convolution or linear layer before it,
/// which then computes the same up to rounding. Modules (Conv1d/2d/3d, Linear, BatchNorm1d/2d/3d,
/// all in eval mode) and functional calls (aten::conv1d/2d/3d, convolution, linear; batch_norm with
/// training=False, native_batch_norm and its kin, result 0 only) whose tensors are attributes, and
/// mixtures of both. Convolutions are taken as batched: channels are axis 1.
///
/// Left alone: layers whose result is used by others than the normalisation, normalisation in
/// training mode or without running statistics, attributes that the graph writes to, functional
/// calls with trainable weights while the module is in training mode, transposed convolutions.
///
/// The fused weights are computed in double precision. They replace the layer's attributes under
/// the same paths if nothing else uses those, else they get paths of their own ("conv_fused0");
/// tensors of the original are never written to. Attributes of the normalisation that nothing uses
/// any more are deleted. rewrites: normalisations removed.
///
/// torch.fx.experimental.optimization.fuse.
PassResult fuse_conv_bn(GraphModule& module, const FuseConvBnOptions& options = {});

/// y = scale * x + shift by channel: what batch normalisation by fixed statistics computes.
struct ChannelAffine {
  at::Tensor mean;
  at::Tensor variance;
  at::Tensor weight;  ///< undefined: 1
  at::Tensor bias;    ///< undefined: 0
  double eps = 1e-5;
};

struct WeightAndBias {
  at::Tensor weight;
  at::Tensor bias;
};

/// Weight and bias of a layer followed by `bn`, for weights whose axis 0 is the output channel;
/// `bias` may be undefined. Computed in double, returned in the dtypes of `weight` and `bias` (or
/// `weight`).
WeightAndBias fuse_bn_into(const at::Tensor& weight, const at::Tensor& bias,
                           const ChannelAffine& bn);

}  // namespace fx
