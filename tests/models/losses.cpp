// Losses, as modules and as functionals.
#include "tests/models/zoo.h"

namespace fx::zoo {
namespace {

namespace nn = torch::nn;
using namespace torch::nn;  // NOLINT: options as users write them
namespace F = torch::nn::functional;

const Input kScores = normal({kBatch, 6}), kOther = normal({kBatch, 6});
const Input kChances = uniform({kBatch, 6}), kClass = indices(6, {kBatch});
const std::vector<Input> kPair{kScores, kOther};

void add_loss_modules(Cases& cases) {
  FX_ZOO_MODULE(L1Loss, (kPair));
  FX_ZOO_MODULE(L1Loss, (kPair), L1LossOptions(torch::kSum));
  FX_ZOO_MODULE(L1Loss, (kPair), L1LossOptions(torch::kNone));
  FX_ZOO_MODULE(MSELoss, (kPair));
  FX_ZOO_MODULE(MSELoss, (kPair), MSELossOptions(torch::kNone));
  FX_ZOO_MODULE(KLDivLoss, ({kScores, kChances}), KLDivLossOptions().reduction(torch::kBatchMean));
  FX_ZOO_MODULE(KLDivLoss, (kPair), KLDivLossOptions().reduction(torch::kSum).log_target(true));
  FX_ZOO_MODULE(BCELoss, ({kChances, kChances}));
  FX_ZOO_MODULE(BCELoss, ({kChances, kChances}), BCELossOptions().reduction(torch::kSum));
  FX_ZOO_MODULE(BCEWithLogitsLoss, ({kScores, kChances}));
  FX_ZOO_MODULE(BCEWithLogitsLoss, ({kScores, kChances}),
                BCEWithLogitsLossOptions().weight(torch::rand({6})).pos_weight(torch::rand({6})));
  FX_ZOO_MODULE(HingeEmbeddingLoss, ({kScores, signs({kBatch, 6})}),
                HingeEmbeddingLossOptions().margin(2));
  FX_ZOO_MODULE(MultiMarginLoss, ({kScores, kClass}), MultiMarginLossOptions().p(2).margin(0.5));
  FX_ZOO_MODULE(CosineEmbeddingLoss, ({kScores, kOther, signs({kBatch})}),
                CosineEmbeddingLossOptions().margin(0.2));
  FX_ZOO_MODULE(SmoothL1Loss, (kPair));
  FX_ZOO_MODULE(SmoothL1Loss, (kPair), SmoothL1LossOptions(torch::kSum).beta(0.3));
  FX_ZOO_MODULE(HuberLoss, (kPair), HuberLossOptions().delta(0.4));
  FX_ZOO_MODULE(MultiLabelMarginLoss, ({kScores, indices(6, {kBatch, 6})}));
  FX_ZOO_MODULE(SoftMarginLoss, ({kScores, signs({kBatch, 6})}));
  FX_ZOO_MODULE(MultiLabelSoftMarginLoss, ({kScores, kChances}));
  FX_ZOO_MODULE(MultiLabelSoftMarginLoss, ({kScores, kChances}),
                MultiLabelSoftMarginLossOptions().reduction(torch::kSum));
  FX_ZOO_MODULE(TripletMarginLoss, ({kScores, kOther, kOther}),
                TripletMarginLossOptions().margin(0.7).p(1.5).swap(true));
  FX_ZOO_MODULE(TripletMarginWithDistanceLoss, ({kScores, kOther, kOther}));
  FX_ZOO_MODULE(TripletMarginWithDistanceLoss, ({kScores, kOther, kOther}),
                TripletMarginWithDistanceLossOptions().swap(true).distance_function(
                    [](const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().sum(1); }));
  FX_ZOO_MODULE(CTCLoss,
                ({normal({8, 2, 5}), fixed(torch::tensor({{1, 2, 3}, {2, 4, 4}})),
                  fixed(torch::tensor({8, 6})), fixed(torch::tensor({3, 2}))}),
                CTCLossOptions().zero_infinity(true));
  FX_ZOO_MODULE(PoissonNLLLoss, ({kScores, kChances}), PoissonNLLLossOptions().full(true));
  FX_ZOO_MODULE(PoissonNLLLoss, ({kChances, kChances}), PoissonNLLLossOptions().log_input(false));
  FX_ZOO_MODULE(MarginRankingLoss, ({normal({kBatch}), normal({kBatch}), signs({kBatch})}),
                MarginRankingLossOptions().margin(0.5));
  FX_ZOO_MODULE(NLLLoss, ({kScores, kClass}));
  FX_ZOO_MODULE(NLLLoss, ({kScores, kClass}), NLLLossOptions().ignore_index(1));
  FX_ZOO_MODULE(CrossEntropyLoss, ({kScores, kClass}));
  FX_ZOO_MODULE(CrossEntropyLoss, ({kScores, kChances}),
                CrossEntropyLossOptions().label_smoothing(0.1).reduction(torch::kSum));
  {
    AdaptiveLogSoftmaxWithLoss net(AdaptiveLogSoftmaxWithLossOptions(8, 12, {4, 8}).div_value(2));
    cases.push_back({"AdaptiveLogSoftmaxWithLoss",
                     "log_prob",
                     {normal({kBatch, 8})},
                     [net](Tensors& in) mutable -> Tensors { return {net->log_prob(in[0])}; },
                     net.ptr()});
    cases.push_back({"AdaptiveLogSoftmaxWithLoss",
                     "forward",
                     {normal({4, 8}), fixed(torch::tensor({1, 6, 3, 11}))},
                     [net](Tensors& in) mutable -> Tensors { return {net(in[0], in[1]).output}; },
                     net.ptr()});
    cases.back().reads_value = true;  // the loss as a double
  }
}

void add_loss_functionals(Cases& cases) {
  FX_ZOO_CALL(l1_loss, (kPair), F::l1_loss(in[0], in[1]));
  FX_ZOO_CALL(mse_loss, (kPair), F::mse_loss(in[0], in[1], torch::kSum));
  FX_ZOO_CALL(kl_div, ({kScores, kChances}), F::kl_div(in[0], in[1]));
  FX_ZOO_CALL(
      binary_cross_entropy, ({kChances, still(kChances), still(kChances)}),
      F::binary_cross_entropy(in[0], in[1], F::BinaryCrossEntropyFuncOptions().weight(in[2])));
  FX_ZOO_CALL(binary_cross_entropy_with_logits, ({kScores, kChances, still(uniform({6}))}),
              F::binary_cross_entropy_with_logits(
                  in[0], in[1], F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(in[2])));
  FX_ZOO_CALL(
      hinge_embedding_loss, ({kScores, signs({kBatch, 6})}),
      F::hinge_embedding_loss(in[0], in[1], F::HingeEmbeddingLossFuncOptions().margin(0.3)));
  FX_ZOO_CALL(multi_margin_loss, ({kScores, kClass, still(uniform({6}))}),
              F::multi_margin_loss(in[0], in[1], F::MultiMarginLossFuncOptions().weight(in[2])));
  FX_ZOO_CALL(cosine_embedding_loss, ({kScores, kOther, signs({kBatch})}),
              F::cosine_embedding_loss(in[0], in[1], in[2]));
  FX_ZOO_CALL(smooth_l1_loss, (kPair), F::smooth_l1_loss(in[0], in[1]));
  FX_ZOO_CALL(smooth_l1_loss, (kPair), F::smooth_l1_loss(in[0], in[1], torch::kNone, 0.5));
  FX_ZOO_CALL(huber_loss, (kPair),
              F::huber_loss(in[0], in[1], F::HuberLossFuncOptions().delta(0.5)));
  FX_ZOO_CALL(multilabel_margin_loss, ({kScores, indices(6, {kBatch, 6})}),
              F::multilabel_margin_loss(in[0], in[1]));
  FX_ZOO_CALL(soft_margin_loss, ({kScores, signs({kBatch, 6})}), F::soft_margin_loss(in[0], in[1]));
  FX_ZOO_CALL(multilabel_soft_margin_loss, ({kScores, kChances, still(uniform({6}))}),
              F::multilabel_soft_margin_loss(
                  in[0], in[1], F::MultilabelSoftMarginLossFuncOptions().weight(in[2])));
  FX_ZOO_CALL(triplet_margin_loss, ({kScores, kOther, kOther}),
              F::triplet_margin_loss(in[0], in[1], in[2]));
  FX_ZOO_CALL(triplet_margin_with_distance_loss, ({kScores, kOther, kOther}),
              F::triplet_margin_with_distance_loss(in[0], in[1], in[2]));
  FX_ZOO_CALL(ctc_loss,
              ({normal({8, 2, 5}), fixed(torch::tensor({{1, 2, 3}, {2, 4, 4}})),
                fixed(torch::tensor({8, 6})), fixed(torch::tensor({3, 2}))}),
              F::ctc_loss(F::log_softmax(in[0], 2), in[1], in[2], in[3]));
  FX_ZOO_CALL(poisson_nll_loss, ({kScores, kChances}), F::poisson_nll_loss(in[0], in[1]));
  FX_ZOO_CALL(margin_ranking_loss, ({normal({kBatch}), normal({kBatch}), signs({kBatch})}),
              F::margin_ranking_loss(in[0], in[1], in[2]));
  FX_ZOO_CALL(nll_loss, ({kScores, kClass, still(uniform({6}))}),
              F::nll_loss(in[0], in[1], F::NLLLossFuncOptions().weight(in[2])));
  FX_ZOO_CALL(nll_loss, ({normal({kBatch, 6, 3, 3}), indices(6, {kBatch, 3, 3})}),
              F::nll_loss(in[0], in[1], F::NLLLossFuncOptions().reduction(torch::kNone)));
  FX_ZOO_CALL(cross_entropy, ({kScores, kClass, still(uniform({6}))}),
              F::cross_entropy(in[0], in[1], F::CrossEntropyFuncOptions().weight(in[2])));
}

}  // namespace

void add_losses(Cases& cases) {
  add_loss_modules(cases);
  add_loss_functionals(cases);
}

}  // namespace fx::zoo
