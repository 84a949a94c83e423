#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/passes/fuse_conv_bn.h"

/// What fuse_conv_bn looks for in a graph.
namespace fx {

/// A convolution or linear layer: a call_module, or a functional call that reads its weight from an
/// attribute.
struct LayerSite {
  Node* node = nullptr;
  int spatial_dims = 0;                       ///< 0 for a linear layer
  std::shared_ptr<torch::nn::Module> module;  ///< null for a functional call
  at::Tensor weight;
  at::Tensor bias;  ///< undefined if there is none
  // Of a functional call:
  Node* weight_node = nullptr;
  Node* bias_node = nullptr;  ///< null if there is none
  std::size_t weight_position = 0;
  std::size_t bias_position = 0;
};

/// A batch normalisation by fixed statistics.
struct NormalizationSite {
  Node* node = nullptr;
  Node* input = nullptr;
  int spatial_dims = -1;  ///< what the module's class is made for; -1: any
  ChannelAffine affine;
  std::vector<Node*> results;  ///< the node itself, or the getitems of its first result
};

/// Recognises both in the graph of one module, as it is when this is made.
class ConvBnFinder {
 public:
  explicit ConvBnFinder(GraphModule& module);

  std::optional<NormalizationSite> normalization_at(Node& node) const;
  std::optional<LayerSite> layer_at(Node& node) const;
  /// Whether the normalisation works on the layer's output channels.
  bool fit(const LayerSite& layer, const NormalizationSite& bn, bool assume_linear_2d) const;

 private:
  template <typename BatchNorm>
  std::optional<NormalizationSite> module_normalization(Node& node, BatchNorm& bn, int dims) const;
  std::optional<NormalizationSite> functional_normalization(Node& node) const;
  std::optional<LayerSite> module_layer(Node& node) const;
  std::optional<LayerSite> functional_layer(Node& node) const;
  bool is_constant(const at::Tensor& tensor) const;
  bool has_constants(const ChannelAffine& affine) const;
  at::Tensor constant_of(const Argument* argument) const;
  bool has_rank_two(const Node& value) const;

  GraphModule& module_;
  std::unordered_set<const void*> written_;  // storages that the graph writes to
};

}  // namespace fx
