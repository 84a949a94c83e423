#include "fx/ops/kernel_checks.h"

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string>

#include "fx/base/error.h"
#include "fx/ops/op_info.h"
#include "fx/ops/value.h"

namespace fx {

class CheckedCall {
 public:
  CheckedCall(const KernelCheck& check, const torch::jit::Stack& stack)
      : check_(check), stack_(stack) {}

  const Value& value(std::size_t index) const {
    static const Value none;
    const int position = check_.positions[index];
    return position < 0 ? none : stack_[static_cast<std::size_t>(position)];
  }

  /// Null for None, for undefined tensors and for arguments that the overload does not have.
  const at::Tensor* tensor(std::size_t index) const {
    const Value& found = value(index);
    return found.isTensor() && found.toTensor().defined() ? &found.toTensor() : nullptr;
  }
  const at::Tensor& need(std::size_t index, const char* name) const {
    if (const at::Tensor* found = tensor(index)) return *found;
    throw_wrong_type(name, "is missing", "a tensor");
  }
  bool flag(std::size_t index) const { return value(index).isBool() && value(index).toBool(); }

  void need_sizes(const at::Tensor& tensor, const char* name, at::IntArrayRef wanted) const {
    if (tensor.sizes() != wanted) throw_sizes(tensor, name, wanted);
  }
  void need_numel(const at::Tensor& tensor, const char* name, std::int64_t wanted) const {
    if (tensor.numel() != wanted) throw_sizes(tensor, name, {wanted});
  }
  void need_dim(const at::Tensor& tensor, const char* name, std::int64_t wanted) const {
    if (tensor.dim() != wanted)
      throw_shape(name, text("has sizes ", tensor.sizes()), text(wanted, " dimensions"));
  }

  [[noreturn]] void throw_shape(const char* name, const std::string& found,
                                const std::string& wanted) const {
    throw RunError(ErrorCode::kShapeMismatch, message(name, found, wanted));
  }
  [[noreturn]] void throw_wrong_type(const char* name, const std::string& found,
                                     const std::string& wanted) const {
    throw RunError(ErrorCode::kWrongType, message(name, found, wanted));
  }

  template <typename... Parts>
  static std::string text(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
  }

 private:
  [[noreturn]] void throw_sizes(const at::Tensor& tensor, const char* name,
                                at::IntArrayRef wanted) const {
    throw_shape(name, text("has sizes ", tensor.sizes()), text(wanted));
  }
  std::string message(const char* name, const std::string& found, const std::string& wanted) const {
    return std::string(check_.name) + ": argument '" + name + "' " + found + ", wanted " + wanted;
  }

  const KernelCheck& check_;
  const torch::jit::Stack& stack_;
};

namespace {

// Applies `visit` to every element of a CPU tensor. Past the dispatcher, so that no capture sees
// that values are read.
template <typename T, typename Visit>
void for_each_element(const at::Tensor& tensor, const Visit& visit) {
  const T* data = tensor.const_data_ptr<T>();
  const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  if (tensor.is_contiguous()) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) visit(data[i]);
    return;
  }
  std::vector<std::int64_t> index(sizes.size());
  for (std::int64_t left = tensor.numel(); left > 0; --left) {
    visit(*data);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      data += strides[d];
      if (++index[d] < sizes[d]) break;
      data -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

// The tensor whose memory holds the indices; nothing for tensors without values and those that are
// no indices, which kernels refuse. Not for other devices: their kernels check.
std::optional<at::Tensor> readable(const at::Tensor& tensor) {
  at::Tensor plain = tensor;
  if (at::functionalization::impl::isFunctionalTensor(tensor)) {
    at::functionalization::impl::sync(tensor);
    plain = at::functionalization::impl::from_functional_tensor(tensor);
  }
  const bool indices = plain.scalar_type() == at::kLong || plain.scalar_type() == at::kByte;
  if (!indices || !plain.is_cpu() || !plain.has_storage() || plain.numel() == 0)
    return std::nullopt;
  return plain;
}

// Every value of a tensor of indices lies in [0, count), or is `ignored`.
void need_indices(const CheckedCall& call, const at::Tensor& indices, const char* name,
                  std::int64_t count, const Value& ignored = {}) {
  const std::optional<at::Tensor> values = readable(indices);
  if (!values) return;
  const std::int64_t skipped = ignored.isInt() ? ignored.toInt() : 0;
  std::int64_t low = 0, high = 0;
  const auto visit = [&](std::int64_t value) {
    if (value == skipped) return;  // 0 is an index if anything is
    low = std::min(low, value);
    high = std::max(high, value);
  };
  if (values->scalar_type() == at::kLong)
    for_each_element<std::int64_t>(*values, visit);
  else
    for_each_element<std::uint8_t>(*values, visit);
  if (low < 0 || high >= count)
    call.throw_wrong_type(name, CheckedCall::text("has values from ", low, " to ", high),
                          CheckedCall::text("indices from 0 to ", count - 1));
}

// A value of each of these arguments for each channel.
template <std::size_t N>
void need_channels(const CheckedCall& call, const at::Tensor& input,
                   const std::array<const char*, N>& names, std::size_t first) {
  if (input.dim() < 2) return;  // refused by the kernel
  for (std::size_t i = 0; i < N; ++i)
    if (const at::Tensor* tensor = call.tensor(first + i))
      call.need_numel(*tensor, names[i], input.size(1));
}

// input, weight, bias, running_mean, running_var
void check_batch_norm(const CheckedCall& call) {
  need_channels<4>(call, call.need(0, "input"), {"weight", "bias", "running_mean", "running_var"},
                   1);
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train
void check_batch_norm_backward(const CheckedCall& call) {
  const at::Tensor& input = call.need(1, "input");
  call.need_sizes(call.need(0, "grad_out"), "grad_out", input.sizes());
  need_channels<1>(call, input, {"weight"}, 2);
  // Of the statistics only those are read that the forward call used.
  constexpr std::array<const char*, 4> kNames{"running_mean", "running_var", "save_mean",
                                              "save_invstd"};
  const std::size_t first = call.flag(7) ? 2 : 0;
  for (std::size_t i = first; i < first + 2; ++i) {
    const at::Tensor& statistic = call.need(3 + i, kNames[i]);
    if (input.dim() >= 2) call.need_numel(statistic, kNames[i], input.size(1));
  }
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias
void check_layer_norm_backward(const CheckedCall& call) {
  const at::Tensor& input = call.need(1, "input");
  call.need_sizes(call.need(0, "grad_out"), "grad_out", input.sizes());
  const std::vector<std::int64_t> shape = call.value(2).toIntVector();
  if (shape.size() > input.sizes().size()) return;  // refused by the kernel
  const at::IntArrayRef rows = input.sizes().slice(0, input.sizes().size() - shape.size());
  for (const auto& [index, name] : {std::pair<std::size_t, const char*>{3, "mean"}, {4, "rstd"}}) {
    const at::Tensor& statistic = call.need(index, name);
    call.need_numel(statistic, name, c10::multiply_integers(rows));
    if (!statistic.is_contiguous())
      call.throw_shape(name, "is not contiguous", "a contiguous tensor");
  }
}

// grad_output, output
void check_same_sizes(const CheckedCall& call) {
  call.need_sizes(call.need(0, "grad_output"), "grad_output", call.need(1, "output").sizes());
}

// grad_output, self, indices: those of the last `dims` dimensions of self, flattened.
void check_max_pool_backward(const CheckedCall& call, std::size_t dims) {
  const at::Tensor& input = call.need(1, "self");
  const at::Tensor& indices = call.need(2, "indices");
  call.need_sizes(indices, "indices", call.need(0, "grad_output").sizes());
  if (input.sizes().size() < dims) return;  // refused by the kernel
  need_indices(call, indices, "indices",
               c10::multiply_integers(input.sizes().slice(input.sizes().size() - dims)));
}
void check_max_pool2d_backward(const CheckedCall& call) { check_max_pool_backward(call, 2); }
void check_max_pool3d_backward(const CheckedCall& call) { check_max_pool_backward(call, 3); }

// self, target, ignore_index
void check_nll_loss_backward(const CheckedCall& call) {
  const at::Tensor& input = call.need(0, "self");
  if (input.dim() > 0)
    need_indices(call, call.need(1, "target"), "target", input.size(-1), call.value(2));
}

// query, key, value, attn_mask: [batch, heads, length, size], where several heads of a query may
// share a key.
void check_attention(const CheckedCall& call) {
  const at::Tensor& query = call.need(0, "query");
  const at::Tensor& key = call.need(1, "key");
  const at::Tensor& value = call.need(2, "value");
  call.need_dim(query, "query", 4);
  call.need_dim(key, "key", 4);
  const std::int64_t heads = key.size(1);
  if (heads == 0 || query.size(1) % heads != 0)
    call.throw_shape("key", CheckedCall::text("has ", heads, " heads"),
                     CheckedCall::text("a divisor of the ", query.size(1), " heads of 'query'"));
  call.need_sizes(key, "key", {query.size(0), heads, key.size(2), query.size(3)});
  call.need_sizes(value, "value", key.sizes());
  const at::Tensor* mask = call.tensor(3);
  if (!mask) return;
  const std::array<std::int64_t, 4> full{query.size(0), query.size(1), query.size(2), key.size(2)};
  const at::IntArrayRef wanted(full);
  if (mask->dim() > 4 || !at::is_expandable_to(mask->sizes(), wanted))
    call.throw_shape("attn_mask", CheckedCall::text("has sizes ", mask->sizes()),
                     CheckedCall::text("sizes that expand to ", wanted));
}

// query, key, value, attn_mask, grad_out, out, logsumexp
void check_attention_backward(const CheckedCall& call) {
  check_attention(call);
  const at::Tensor& query = call.need(0, "query");
  call.need_sizes(call.need(4, "grad_out"), "grad_out", query.sizes());
  call.need_sizes(call.need(5, "out"), "out", query.sizes());
  call.need_sizes(call.need(6, "logsumexp"), "logsumexp", query.sizes().slice(0, 3));
}

// Weights of one direction of one layer of an LSTM: [4 * hidden, inputs], [4 * hidden, hidden], and
// the biases, if any.
void need_lstm_weights(const CheckedCall& call, at::TensorList weights, std::int64_t inputs,
                       std::int64_t hidden) {
  call.need_sizes(weights[0], "params (weight_ih)", {4 * hidden, inputs});
  call.need_sizes(weights[1], "params (weight_hh)", {4 * hidden, hidden});
  for (const at::Tensor& bias : weights.slice(2))
    call.need_sizes(bias, "params (bias)", {4 * hidden});
}

// input, weight0 to weight3, hx_, cx_, batch_sizes, hidden_size, has_biases
void check_mkldnn_lstm(const CheckedCall& call) {
  const at::Tensor& input = call.need(0, "input");
  call.need_dim(input, "input", 3);
  if (!call.value(7).toIntVector().empty())
    call.throw_shape("batch_sizes", "is not empty", "a sequence that is not packed");
  const at::Tensor& recurrent = call.need(2, "weight1");
  call.need_dim(recurrent, "weight1", 2);
  const std::int64_t hidden = recurrent.size(1);
  if (call.value(8).toInt() != hidden)
    call.throw_shape("hidden_size", CheckedCall::text("is ", call.value(8).toInt()),
                     CheckedCall::text(hidden, ", as 'weight1' has"));
  std::vector<at::Tensor> weights{call.need(1, "weight0"), recurrent};
  if (call.flag(9)) {
    weights.push_back(call.need(3, "weight2"));
    weights.push_back(call.need(4, "weight3"));
  }
  need_lstm_weights(call, weights, input.size(2), hidden);
  call.need_numel(call.need(5, "hx_"), "hx_", input.size(1) * hidden);
  call.need_numel(call.need(6, "cx_"), "cx_", input.size(1) * hidden);
}

// The same for all layers: of inputs [..., inputs] and states [layers * directions, batch, hidden].
// Weights that project the state are used by operators that check for themselves.
void need_lstm(const CheckedCall& call, const Value& states, const Value& params, bool has_biases,
               std::int64_t layers, std::int64_t directions, std::int64_t batch,
               std::int64_t inputs) {
  const std::vector<at::Tensor> hx = states.toTensorVector(), weights = params.toTensorVector();
  const std::size_t each = has_biases ? 4 : 2;
  if (hx.size() != 2 || layers < 1 || layers > static_cast<std::int64_t>(weights.size()) ||
      weights.size() != each * static_cast<std::size_t>(layers * directions))
    return;
  call.need_dim(hx[0], "hx", 3);
  const std::int64_t hidden = hx[0].size(2);
  for (const at::Tensor& state : hx)
    call.need_sizes(state, "hx", {layers * directions, batch, hidden});
  const at::TensorList all(weights);
  for (std::int64_t i = 0; i < layers * directions; ++i)
    need_lstm_weights(call, all.slice(static_cast<std::size_t>(i) * each, each),
                      i < directions ? inputs : hidden * directions, hidden);
}

// input, data, batch_sizes, hx, params, has_biases, num_layers, bidirectional, batch_first
void check_lstm(const CheckedCall& call) {
  const std::int64_t directions = call.flag(7) ? 2 : 1;
  const auto check = [&](std::int64_t batch, std::int64_t inputs) {
    need_lstm(call, call.value(3), call.value(4), call.flag(5), call.value(6).toInt(), directions,
              batch, inputs);
  };
  if (const at::Tensor* input = call.tensor(0)) {
    call.need_dim(*input, "input", 3);
    check(input->size(call.flag(8) ? 0 : 1), input->size(2));
    return;
  }
  const at::Tensor& data = call.need(1, "data");
  const at::Tensor& batches = call.need(2, "batch_sizes");
  call.need_dim(data, "data", 2);
  const std::optional<at::Tensor> values = readable(batches);
  if (!values || values->scalar_type() != at::kLong) return;
  check(*values->const_data_ptr<std::int64_t>(), data.size(1));
}

struct Row {
  std::string_view name;
  void (*check)(const CheckedCall&);
  std::vector<std::string_view> arguments;
};

const std::vector<Row>& rows() {
  static const std::vector<std::string_view> norm{"input", "weight", "bias", "running_mean",
                                                  "running_var"};
  static const std::vector<std::string_view> pool{"grad_output", "self", "indices"};
  static const std::vector<std::string_view> lstm{"input",      "data",          "batch_sizes",
                                                  "hx",         "params",        "has_biases",
                                                  "num_layers", "bidirectional", "batch_first"};
  static const auto* all = new std::vector<Row>{
      {"aten::_batch_norm_no_update", check_batch_norm, norm},
      {"aten::_batch_norm_with_update", check_batch_norm, norm},
      {"aten::_batch_norm_with_update_functional", check_batch_norm, norm},
      {"aten::_log_softmax_backward_data", check_same_sizes, {"grad_output", "output"}},
      {"aten::_native_batch_norm_legit", check_batch_norm, norm},
      {"aten::_native_batch_norm_legit_functional", check_batch_norm, norm},
      {"aten::_native_batch_norm_legit_no_training", check_batch_norm, norm},
      {"aten::_scaled_dot_product_flash_attention_for_cpu",
       check_attention,
       {"query", "key", "value", "attn_mask"}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
       check_attention_backward,
       {"query", "key", "value", "attn_mask", "grad_out", "out", "logsumexp"}},
      {"aten::adaptive_max_pool2d_backward", check_max_pool2d_backward, pool},
      {"aten::adaptive_max_pool3d_backward", check_max_pool3d_backward, pool},
      {"aten::batch_norm_backward",
       check_batch_norm_backward,
       {"grad_out", "input", "weight", "running_mean", "running_var", "save_mean", "save_var",
        "update"}},
      {"aten::batch_norm_update_stats", check_batch_norm, norm},
      {"aten::lstm", check_lstm, lstm},
      {"aten::max_pool2d_with_indices_backward", check_max_pool2d_backward, pool},
      {"aten::max_pool3d_with_indices_backward", check_max_pool3d_backward, pool},
      {"aten::mkldnn_rnn_layer",
       check_mkldnn_lstm,
       {"input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_", "batch_sizes",
        "hidden_size", "has_biases"}},
      {"aten::native_batch_norm", check_batch_norm, norm},
      {"aten::native_batch_norm_backward",
       check_batch_norm_backward,
       {"grad_out", "input", "weight", "running_mean", "running_var", "save_mean", "save_invstd",
        "train"}},
      {"aten::native_layer_norm_backward",
       check_layer_norm_backward,
       {"grad_out", "input", "normalized_shape", "mean", "rstd", "weight", "bias"}},
      {"aten::nll_loss_backward", check_nll_loss_backward, {"self", "target", "ignore_index"}},
  };
  return *all;
}

// Tensors of a trace have no sizes, nested ones have kernels of their own.
bool has_no_sizes(const Value& value) {
  if (value.isTensorList()) {
    const auto tensors = value.toTensorList();
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const at::Tensor& t) { return has_no_sizes(Value(t)); });
  }
  return value.isTensor() && value.toTensor().defined() &&
         (value.toTensor().key_set().has(c10::DispatchKey::TESTING_ONLY_GenericWrapper) ||
          value.toTensor().is_nested());
}

}  // namespace

const KernelCheck* find_kernel_check(const Overload& overload) {
  const std::string& name = overload.handle.operator_name().name;
  const auto row = std::ranges::find(rows(), std::string_view(name), &Row::name);
  if (row == rows().end()) return nullptr;
  auto* made =
      new KernelCheck{row->name, row->check, {}};  // lives as long as the overload: for ever
  for (std::string_view argument : row->arguments) {
    const auto rule = std::ranges::find(overload.rules, argument, &ArgRule::name);
    made->positions.push_back(
        rule == overload.rules.end() ? -1 : static_cast<int>(rule - overload.rules.begin()));
  }
  return made;
}

void run_kernel_check(const KernelCheck& check, const torch::jit::Stack& stack) {
  if (std::any_of(stack.begin(), stack.end(), has_no_sizes)) return;
  check.check(CheckedCall(check, stack));
}

}  // namespace fx
