// Modules with weights, and losses: convolutions, linear layers, embeddings, recurrent nets,
// transformers, containers.
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace nn = torch::nn;
using namespace torch::nn;  // NOLINT: options as users write them

// A case whose module is called in terms of it, `net`, and of the inputs, `in`.
#define FX_ZOO_NET(Class, inputs, construct, call)                                              \
  {                                                                                             \
    nn::Class net construct;                                                                    \
    std::shared_ptr<nn::Module> module = net.ptr();                                             \
    cases.push_back({#Class, #construct ", " #call, std::vector<Input>(FX_ZOO_UNPACK inputs),   \
                     [net](Tensors& in) mutable -> Tensors { return tensors(call); }, module}); \
  }

void add_convolutions(Cases& cases) {
  const std::vector<Input> signal{normal({kBatch, 4, 12})}, image{normal({kBatch, 4, 9, 9})},
      volume{normal({kBatch, 4, 5, 5, 5})};
  FX_ZOO_MODULE(Conv1d, (signal), Conv1dOptions(4, 6, 3));
  FX_ZOO_MODULE(Conv1d, (signal),
                Conv1dOptions(4, 8, 3).stride(2).padding(1).groups(2).bias(false));
  FX_ZOO_MODULE(Conv1d, (signal), Conv1dOptions(4, 6, 3).padding(torch::kSame).dilation(2));
  FX_ZOO_MODULE(Conv1d, (signal), Conv1dOptions(4, 6, 3).padding(2).padding_mode(torch::kCircular));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, 3));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, {3, 2}).stride({2, 1}).padding({1, 0}));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 4, 3).groups(4).bias(false).dilation(2));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, 3).padding(torch::kValid));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, {2, 4}).padding(torch::kSame));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, 3).padding(1).padding_mode(torch::kReflect));
  FX_ZOO_MODULE(Conv2d, (image), Conv2dOptions(4, 6, 3).padding(1).padding_mode(torch::kReplicate));
  FX_ZOO_MODULE(Conv3d, (volume), Conv3dOptions(4, 6, {1, 2, 3}).padding({0, 1, 1}));
  FX_ZOO_MODULE(Conv3d, (volume), Conv3dOptions(4, 4, 2).groups(2).padding(torch::kSame));
  FX_ZOO_MODULE(ConvTranspose1d, (signal), ConvTranspose1dOptions(4, 6, 3).stride(2));
  FX_ZOO_MODULE(ConvTranspose2d, (image),
                ConvTranspose2dOptions(4, 6, 3).stride(2).padding(1).output_padding(1).groups(2));
  FX_ZOO_MODULE(ConvTranspose3d, (volume), ConvTranspose3dOptions(4, 2, 2).dilation(2).bias(false));
  FX_ZOO_NET(ConvTranspose2d, (image), (ConvTranspose2dOptions(4, 6, 3).stride(2)),
             net(in[0], std::vector<std::int64_t>{20, 20}));
}

void add_linear(Cases& cases) {
  FX_ZOO_MODULE(Linear, ({normal({kBatch, 6})}), LinearOptions(6, 5));
  FX_ZOO_MODULE(Linear, ({normal({kBatch, 3, 6})}), LinearOptions(6, 5).bias(false));
  FX_ZOO_MODULE(Linear, ({normal({6})}), LinearOptions(6, 5));
  FX_ZOO_MODULE(Bilinear, ({normal({kBatch, 6}), normal({kBatch, 4})}), BilinearOptions(6, 4, 5));
  FX_ZOO_MODULE(Bilinear, ({normal({kBatch, 3, 6}), normal({kBatch, 3, 4})}),
                BilinearOptions(6, 4, 5).bias(false));
  const std::vector<Input> pair{normal({kBatch, 6}), normal({kBatch, 6})};
  FX_ZOO_MODULE(CosineSimilarity, (pair), CosineSimilarityOptions().dim(1).eps(0.1));
  FX_ZOO_MODULE(PairwiseDistance, (pair), PairwiseDistanceOptions().p(3).keepdim(true));
  FX_ZOO_MODULE(Embedding, ({indices(9, {kBatch, 5})}), EmbeddingOptions(9, 4));
  FX_ZOO_MODULE(Embedding, ({indices(9, {kBatch, 5})}), EmbeddingOptions(9, 4).padding_idx(2));
  FX_ZOO_MODULE(Embedding, ({indices(9, {kBatch, 5})}),
                EmbeddingOptions(9, 4).scale_grad_by_freq(true));
  FX_ZOO_MODULE(Embedding, ({indices(9, {kBatch, 5})}), EmbeddingOptions(9, 4).sparse(true));
  FX_ZOO_MODULE(Embedding, ({indices(9, {kBatch, 5})}), EmbeddingOptions(9, 4).max_norm(0.5));
  FX_ZOO_MODULE(EmbeddingBag, ({indices(9, {kBatch, 5})}), EmbeddingBagOptions(9, 4));
  FX_ZOO_MODULE(EmbeddingBag, ({indices(9, {7}), fixed(torch::tensor({0, 2, 2}))}),
                EmbeddingBagOptions(9, 4).mode(torch::kMax));
  FX_ZOO_MODULE(EmbeddingBag, ({indices(9, {7}), fixed(torch::tensor({0, 2, 7})), normal({7})}),
                EmbeddingBagOptions(9, 4).mode(torch::kSum).include_last_offset(true));
}

void add_recurrent(Cases& cases) {
  const std::vector<Input> steps{normal({5, kBatch, 4})}, batches{normal({kBatch, 5, 4})};
  FX_ZOO_MODULE(RNN, (steps), RNNOptions(4, 6));
  FX_ZOO_MODULE(RNN, (batches), RNNOptions(4, 6).nonlinearity(torch::kReLU).batch_first(true));
  FX_ZOO_MODULE(RNN, ({normal({5, kBatch, 4}), normal({4, kBatch, 6})}),
                RNNOptions(4, 6).num_layers(2).bidirectional(true).dropout(0.4).bias(false));
  FX_ZOO_MODULE(LSTM, (steps), LSTMOptions(4, 6));
  FX_ZOO_MODULE(LSTM, (batches),
                LSTMOptions(4, 6).num_layers(2).bidirectional(true).dropout(0.4).batch_first(true));
  FX_ZOO_MODULE(LSTM, (steps), LSTMOptions(4, 6).proj_size(3).bias(false));
  FX_ZOO_NET(LSTM, ({normal({5, kBatch, 4}), normal({1, kBatch, 6}), normal({1, kBatch, 6})}),
             (LSTMOptions(4, 6)), net(in[0], std::make_tuple(in[1], in[2])));
  FX_ZOO_NET(LSTM, ({normal({5, 2, 4})}), (LSTMOptions(4, 6)),
             std::get<0>(net->forward_with_packed_input(
                             utils::rnn::pack_padded_sequence(in[0], torch::tensor({5, 3}))))
                 .data());
  FX_ZOO_MODULE(GRU, (steps), GRUOptions(4, 6));
  FX_ZOO_MODULE(GRU, ({normal({kBatch, 5, 4}), normal({2, kBatch, 6})}),
                GRUOptions(4, 6).num_layers(2).batch_first(true).dropout(0.4));
  const Input step = normal({kBatch, 4}), state = normal({kBatch, 6});
  FX_ZOO_MODULE(RNNCell, ({step}), RNNCellOptions(4, 6));
  FX_ZOO_MODULE(RNNCell, ({step, state}), RNNCellOptions(4, 6).nonlinearity(torch::kReLU));
  FX_ZOO_MODULE(LSTMCell, ({step}), LSTMCellOptions(4, 6));
  FX_ZOO_NET(LSTMCell, ({step, state, state}), (LSTMCellOptions(4, 6).bias(false)),
             net(in[0], std::make_tuple(in[1], in[2])));
  FX_ZOO_MODULE(GRUCell, ({step, state}), GRUCellOptions(4, 6));
}

void add_transformers(Cases& cases) {
  const Input source = normal({5, kBatch, 8}), target = normal({4, kBatch, 8});
  FX_ZOO_MODULE(MultiheadAttention, ({source, source, source}), MultiheadAttentionOptions(8, 2));
  FX_ZOO_MODULE(MultiheadAttention, ({target, normal({5, kBatch, 3}), normal({5, kBatch, 3})}),
                MultiheadAttentionOptions(8, 4).kdim(3).vdim(3).bias(false));
  FX_ZOO_MODULE(MultiheadAttention, ({target, source, source, mask({kBatch, 5})}),
                MultiheadAttentionOptions(8, 2).add_bias_kv(true).add_zero_attn(true).dropout(0.3));
  FX_ZOO_NET(MultiheadAttention, ({target, source, normal({4, 5})}),
             (MultiheadAttentionOptions(8, 2)),
             net(in[0], in[1], in[1], torch::Tensor(), false, in[2]));
  FX_ZOO_MODULE(TransformerEncoderLayer, ({source}),
                TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  FX_ZOO_MODULE(TransformerEncoderLayer, ({source, normal({5, 5}), mask({kBatch, 5})}),
                TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(torch::kGELU));
  FX_ZOO_MODULE(TransformerDecoderLayer, ({target, source}),
                TransformerDecoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
  FX_ZOO_MODULE(TransformerDecoderLayer, ({target, source, normal({4, 4}), normal({4, 5})}),
                TransformerDecoderLayerOptions(8, 2).dim_feedforward(16).activation(torch::kGELU));
  FX_ZOO_MODULE(
      TransformerEncoder, ({source, normal({5, 5})}),
      TransformerEncoderOptions(
          TransformerEncoderLayer(TransformerEncoderLayerOptions(8, 2).dim_feedforward(9)), 2)
          .norm(AnyModule(LayerNorm(LayerNormOptions({8})))));
  FX_ZOO_MODULE(
      TransformerDecoder, ({target, source, normal({4, 4})}),
      TransformerDecoderOptions(
          TransformerDecoderLayer(TransformerDecoderLayerOptions(8, 2).dim_feedforward(9)), 2));
  FX_ZOO_MODULE(Transformer, ({source, target}),
                TransformerOptions(8, 2, 1, 1).dim_feedforward(16));
  FX_ZOO_NET(
      Transformer, ({source, target}), (TransformerOptions(8, 2, 1, 1).dim_feedforward(16)),
      net(in[0], in[1], torch::Tensor(), TransformerImpl::generate_square_subsequent_mask(4)));
}

void add_containers(Cases& cases) {
  const std::vector<Input> flat{normal({kBatch, 6})};
  FX_ZOO_MODULE(Sequential, (flat), Linear(6, 5), BatchNorm1d(5), ReLU(ReLUOptions(true)),
                Dropout(0.5), Linear(5, 2));
  FX_ZOO_NET(Sequential, (flat), (nn::Functional(torch::relu), Linear(6, 5)), net->forward(in[0]));
  FX_ZOO_NET(Functional, (flat), ([](at::Tensor x) { return x.relu_(); }), net(in[0]));
  FX_ZOO_NET(ModuleList, (flat), (Linear(6, 6), Linear(6, 6)),
             net->ptr<LinearImpl>(1)->forward(net->ptr<LinearImpl>(0)->forward(in[0])));
  {
    ModuleDict net(std::vector<std::pair<std::string, std::shared_ptr<Module>>>{
        {"up", Linear(6, 8).ptr()}, {"down", Linear(8, 6).ptr()}});
    cases.push_back({"ModuleDict", "up, down", flat,
                     [net](Tensors& in) mutable -> Tensors {
                       return {(*net)["down"]->as<LinearImpl>()->forward(
                           (*net)["up"]->as<LinearImpl>()->forward(in[0]))};
                     },
                     net.ptr()});
  }
  {
    ParameterList net;
    net->append(torch::ones({6}));
    net->append(torch::zeros({6}));
    cases.push_back(
        {"ParameterList", "scale, shift", flat,
         [net](Tensors& in) mutable -> Tensors { return {in[0] * (*net)[0] + (*net)[1]}; },
         net.ptr()});
  }
  {
    ParameterDict net;
    net->insert("scale", torch::ones({6}));
    cases.push_back({"ParameterDict", "scale", flat,
                     [net](Tensors& in) mutable -> Tensors { return {in[0] * net->get("scale")}; },
                     net.ptr()});
  }
}

}  // namespace

void add_layers(Cases& cases) {
  add_convolutions(cases);
  add_linear(cases);
  add_recurrent(cases);
  add_transformers(cases);
  add_containers(cases);
}

}  // namespace fx::zoo
