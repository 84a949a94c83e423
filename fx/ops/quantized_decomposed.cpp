#include "fx/ops/quantized_decomposed.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Rounding decides which quantised value comes out, so the order of operations and the types they
// are done in are part of what each operator means. The tests compare every one with Python's.
namespace fx {
namespace {

using at::ScalarType;
using at::Tensor;
using OptionalType = std::optional<ScalarType>;
using QParams = std::tuple<Tensor, Tensor>;

// ---- what is checked

struct Bounds {
  std::int64_t low, high;
};

template <typename T>
Bounds bounds_of() {
  return {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
}

// What values of a type can be quantised to; nothing for types that hold no quantised values.
std::optional<Bounds> bounds(ScalarType type) {
  switch (type) {
    case at::kByte:
      return bounds_of<std::uint8_t>();
    case at::kChar:
      return bounds_of<std::int8_t>();
    case at::kUInt16:
      return bounds_of<std::uint16_t>();
    case at::kShort:
      return bounds_of<std::int16_t>();
    case at::kInt:
      return bounds_of<std::int32_t>();
    case at::kFloat8_e5m2:
      return Bounds{-57344, 57344};
    case at::kFloat8_e4m3fn:
      return Bounds{-448, 448};
    default:
      return std::nullopt;
  }
}

Bounds need_bounds(ScalarType type) {
  const std::optional<Bounds> found = bounds(type);
  TORCH_CHECK(found, "quantized_decomposed: ", type, " holds no quantised values");
  return *found;
}

void need_range(std::int64_t low, std::int64_t high, ScalarType type) {
  const Bounds found = need_bounds(type);
  TORCH_CHECK(low >= found.low && high <= found.high, "quantized_decomposed: the range ", low,
              " to ", high, " is not within that of ", type, ", ", found.low, " to ", found.high);
}

Tensor need_float(const Tensor& input) {
  const ScalarType type = input.scalar_type();
  if (type == at::kHalf || type == at::kBFloat16) return input.to(at::kFloat);
  TORCH_CHECK(type == at::kFloat,
              "quantized_decomposed: wanted an input of float, half or bfloat16, found ", type);
  return input;
}

void need_type(const Tensor& input, ScalarType type) {
  TORCH_CHECK(input.scalar_type() == type, "quantized_decomposed: wanted an input of ", type,
              ", found ", input.scalar_type());
}

void need_one(const Tensor& tensor, const char* what) {
  TORCH_CHECK(tensor.numel() == 1, "quantized_decomposed: ", what, " has ", tensor.numel(),
              " elements, wanted one");
}

// ---- per tensor

Tensor quantize(const Tensor& given, double scale, const at::Scalar& zero_point, std::int64_t low,
                std::int64_t high, ScalarType type) {
  const Tensor input = need_float(given);
  need_range(low, high, type);
  TORCH_CHECK(scale != 0, "quantized_decomposed: the scale is zero");
  return at::clamp(at::add(at::round(at::mul(input, 1.0 / scale)), zero_point), low, high).to(type);
}

Tensor quantize_per_tensor(const Tensor& input, double scale, std::int64_t zero_point,
                           std::int64_t low, std::int64_t high, ScalarType type) {
  return quantize(input, scale, zero_point, low, high, type);
}

Tensor quantize_per_tensor_tensor(const Tensor& input, const Tensor& scale,
                                  const Tensor& zero_point, std::int64_t low, std::int64_t high,
                                  ScalarType type) {
  need_one(zero_point, "zero_point");
  need_one(scale, "scale");
  return quantize(input, scale.item().toDouble(), zero_point.item(), low, high, type);
}

Tensor quantize_per_tensor_tensor2(const Tensor& input, const Tensor& scale,
                                   const Tensor& zero_point, const Tensor& low, const Tensor& high,
                                   ScalarType type) {
  return quantize_per_tensor_tensor(input, scale, zero_point, low.item().toLong(),
                                    high.item().toLong(), type);
}

Tensor dequantize(const Tensor& input, double scale, const at::Scalar& zero_point, ScalarType type,
                  OptionalType out) {
  need_type(input, type);
  need_bounds(type);
  return at::mul(at::sub(input.to(out.value_or(at::kFloat)), zero_point), scale);
}

Tensor dequantize_per_tensor(const Tensor& input, double scale, std::int64_t zero_point,
                             std::int64_t, std::int64_t, ScalarType type, OptionalType out) {
  return dequantize(input, scale, zero_point, type, out);
}

Tensor dequantize_per_tensor_tensor(const Tensor& input, const Tensor& scale,
                                    const Tensor& zero_point, std::int64_t, std::int64_t,
                                    ScalarType type, OptionalType out) {
  need_one(zero_point, "zero_point");
  need_one(scale, "scale");
  return dequantize(input, scale.item().toDouble(), zero_point.item(), type, out);
}

Tensor dequantize_per_tensor_tensor2(const Tensor& input, const Tensor& scale,
                                     const Tensor& zero_point, const Tensor&, const Tensor&,
                                     ScalarType type, OptionalType out) {
  return dequantize_per_tensor_tensor(input, scale, zero_point, 0, 0, type, out);
}

// ---- scales and zero points from values

void need_qparams_arguments(const Tensor& input, std::int64_t low, std::int64_t high,
                            ScalarType type) {
  const ScalarType found = input.scalar_type();
  TORCH_CHECK(found == at::kFloat || found == at::kHalf || found == at::kBFloat16,
              "quantized_decomposed: wanted an input of float, half or bfloat16, found ", found);
  need_bounds(type);
  TORCH_CHECK(low <= 0 && high >= 0 && low < high, "quantized_decomposed: the range ", low, " to ",
              high, " has to hold 0 and more than that");
}

// The smallest value or 0, and the largest or 0.
std::pair<Tensor, Tensor> extremes(const Tensor& input) {
  auto [low, high] = at::aminmax(input);
  TORCH_CHECK(!at::gt(low, high).item<bool>(),
              "quantized_decomposed: the smallest value is above the largest");
  return {at::minimum(low, at::zeros_like(low)), at::maximum(high, at::zeros_like(high))};
}

// At least eps; a tensor of one element, float at least, as eps is one.
Tensor at_least(const Tensor& scale, double eps) {
  return at::maximum(scale, at::full({1}, eps, scale.options().dtype(at::kFloat)));
}

QParams choose_qparams(const Tensor& input, std::int64_t low, std::int64_t high, double eps,
                       ScalarType type) {
  need_qparams_arguments(input, low, high, type);
  const auto [smallest, largest] = extremes(input);
  const Tensor scale =
      at_least(at::div(at::sub(largest, smallest), static_cast<double>(high - low)), eps);
  const Tensor steps = at::round(at::div(smallest, scale)).to(at::kInt);
  return {scale.to(at::kDouble), at::clamp(at::rsub(steps, low), low, high).to(at::kLong)};
}

QParams choose_qparams_symmetric(const Tensor& input, std::int64_t low, std::int64_t high,
                                 double eps, ScalarType type) {
  need_qparams_arguments(input, low, high, type);
  const auto [smallest, largest] = extremes(input);
  const Tensor scale = at_least(
      at::div(at::maximum(at::neg(smallest), largest), static_cast<double>(high - low) / 2), eps);
  return {scale.to(at::kDouble),
          at::full({1}, type == at::kByte ? 128 : 0, scale.options().dtype(at::kLong))};
}

QParams choose_qparams_per_token(const Tensor& input, ScalarType type) {
  TORCH_CHECK(type == at::kChar,
              "quantized_decomposed: choose_qparams_per_token wants Char, found ", type);
  Tensor scales = at::amax(at::abs(input), -1, /*keepdim=*/true);
  if (scales.scalar_type() == at::kHalf) scales = scales.to(at::kFloat);
  scales = at::div(at::clamp_min(scales, 1e-5), 127);
  return {scales, at::zeros_like(scales)};
}

QParams choose_qparams_per_token_asymmetric(const Tensor& input, ScalarType) {
  constexpr std::int64_t low = -128, high = 127;
  const auto or_zero = [](const Tensor& extreme) {
    return std::pair(extreme, at::zeros_like(extreme));
  };
  const auto [smallest, zero_low] = or_zero(at::amin(input, -1, /*keepdim=*/true));
  const auto [largest, zero_high] = or_zero(at::amax(input, -1, /*keepdim=*/true));
  const Tensor below = at::minimum(smallest, zero_low), above = at::maximum(largest, zero_high);
  const Tensor scale =
      at::clamp_min(at::div(at::sub(above, below), static_cast<double>(high - low)),
                    std::numeric_limits<float>::epsilon());
  // The end of the range whose error is smaller decides where zero lies.
  const Tensor steps_below = at::div(below, scale), steps_above = at::div(above, scale);
  const Tensor from_low = at::gt(at::add(at::add(steps_below, low), at::add(steps_above, high)), 0);
  const Tensor zero_point =
      at::where(from_low, at::rsub(steps_below, low), at::rsub(steps_above, high));
  return {scale.to(at::kDouble), at::round(at::clamp(zero_point, low, high)).to(at::kLong)};
}

// ---- per channel

// Puts a dimension first, and back: the exchange of two dimensions is its own inverse.
Tensor exchange(const Tensor& tensor, std::int64_t axis) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(tensor.dim()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::swap(order[0], order[static_cast<std::size_t>(axis)]);
  return tensor.permute(order);
}

// Parameters of channels, for tensors whose channels come first.
Tensor along_first(const Tensor& parameters, std::int64_t channels, std::int64_t dim) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dim), 1);
  sizes[0] = channels;
  return parameters.view(sizes);
}

std::int64_t need_axis(const Tensor& input, std::int64_t axis) {
  TORCH_CHECK(axis < input.dim() && axis >= -input.dim(), "quantized_decomposed: axis ", axis,
              " of an input of ", input.dim(), " dimensions");
  return axis < 0 ? axis + input.dim() : axis;
}

Tensor quantize_per_channel(const Tensor& given, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t axis, std::int64_t low, std::int64_t high,
                            ScalarType type) {
  axis = need_axis(given, axis);
  const Tensor input = exchange(need_float(given), axis);
  need_range(low, high, type);
  const std::int64_t channels = scales.size(0);
  const Tensor steps =
      at::round(at::mul(input, at::reciprocal(along_first(scales, channels, input.dim()))));
  const Tensor shifted = at::add(steps, along_first(zero_points, channels, input.dim()));
  return exchange(at::clamp(shifted, low, high), axis).to(type);
}

Tensor dequantize_per_channel(const Tensor& given, const Tensor& scales,
                              const std::optional<Tensor>& zero_points, std::int64_t axis,
                              std::int64_t low, std::int64_t high, ScalarType type,
                              OptionalType out) {
  need_type(given, type);
  axis = need_axis(given, axis);
  need_range(low, high, type);
  Tensor value = exchange(given, axis);
  const std::int64_t channels = scales.size(0);
  if (zero_points) value = at::sub(value, along_first(*zero_points, channels, value.dim()));
  value = at::mul(value, along_first(scales, channels, value.dim()));
  return exchange(value.to(out.value_or(at::kFloat)), axis);
}

// Groups of a matrix' rows, one a row; a single group may be longer than its row.
Tensor in_groups(const Tensor& input, const Tensor& scales, std::int64_t size) {
  TORCH_CHECK(size > 1 && input.dim() == 2,
              "quantized_decomposed: wanted a matrix and groups of more than one element, found ",
              input.dim(), " dimensions and groups of ", size);
  if (size > input.size(-1) && scales.size(-1) == 1) size = input.size(-1);
  TORCH_CHECK(size > 0 && input.size(-1) % size == 0, "quantized_decomposed: rows of ",
              input.size(-1), " elements do not consist of groups of ", size);
  return input.reshape({-1, size});
}

Tensor quantize_per_channel_group(const Tensor& input, const Tensor& scales,
                                  const Tensor& zero_points, std::int64_t low, std::int64_t high,
                                  ScalarType type, std::int64_t size) {
  const Tensor groups = in_groups(input, scales, size);
  if (!groups.is_meta())
    TORCH_CHECK(!at::isnan(groups).any().item<bool>(), "quantized_decomposed: the input has NaNs");
  return at::clamp(at::round(at::add(at::mul(groups, at::reciprocal(scales.reshape({-1, 1}))),
                                     zero_points.reshape({-1, 1}))),
                   low, high)
      .to(type)
      .reshape_as(input);
}

Tensor dequantize_per_channel_group(const Tensor& input, const Tensor& scales,
                                    const std::optional<Tensor>& zero_points, std::int64_t,
                                    std::int64_t, ScalarType, std::int64_t size, ScalarType out) {
  const Tensor zero =
      zero_points ? zero_points->reshape({-1, 1}) : at::zeros({}, scales.options().dtype(at::kInt));
  return at::mul(at::sub(in_groups(input, scales, size), zero), scales.reshape({-1, 1}))
      .reshape_as(input)
      .to(out);
}

// ---- per token

Tensor quantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                          std::int64_t low, std::int64_t high, ScalarType type) {
  need_range(low, high, type);
  TORCH_CHECK(input.dim() > 0, "quantized_decomposed: a number has no tokens");
  const std::int64_t tokens =
      c10::multiply_integers(input.sizes().slice(0, input.sizes().size() - 1));
  TORCH_CHECK(tokens == scales.numel() && tokens == zero_points.numel(),
              "quantized_decomposed: ", tokens, " tokens, ", scales.numel(), " scales and ",
              zero_points.numel(), " zero points");
  return at::clamp(at::round(at::add(at::mul(input, at::reciprocal(scales)), zero_points)), low,
                   high)
      .to(type);
}

Tensor dequantize_per_token(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t, std::int64_t, ScalarType, ScalarType out) {
  return at::mul(at::sub(input, zero_points), scales).to(out);
}

// ---- training

struct FakeQuantized {
  Tensor value, inside;
};

FakeQuantized fake_quantize(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                            std::int64_t axis, std::int64_t low, std::int64_t high) {
  need_type(input, at::kFloat);
  axis = need_axis(input, axis);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.dim()), 1);
  sizes[static_cast<std::size_t>(axis)] = scales.size(0);
  const Tensor scale = scales.to(at::kFloat).view(sizes),
               zero = zero_points.to(at::kInt).view(sizes);
  const Tensor steps = at::add(at::round(at::mul(input, at::reciprocal(scale))), zero);
  return {at::mul(at::sub(at::clamp(steps, low, high), zero), scale),
          at::logical_and(at::ge(steps, low), at::le(steps, high))};
}

// Gradients pass where the value was not clamped.
struct FakeQuantPerChannel : torch::autograd::Function<FakeQuantPerChannel> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const Tensor& scales, const Tensor& zero_points, std::int64_t axis,
                        std::int64_t low, std::int64_t high) {
    const FakeQuantized made = fake_quantize(input, scales, zero_points, axis, low, high);
    context->save_for_backward({made.inside});
    return made.value;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {at::mul(gradients[0], context->get_saved_variables()[0]), {}, {}, {}, {}, {}};
  }
};

Tensor fake_quant_with_gradient(const Tensor& input, const Tensor& scales,
                                const Tensor& zero_points, std::int64_t axis, std::int64_t low,
                                std::int64_t high) {
  return FakeQuantPerChannel::apply(input, scales, zero_points, axis, low, high);
}

Tensor fake_quant_per_channel(const Tensor& input, const Tensor& scales, const Tensor& zero_points,
                              std::int64_t axis, std::int64_t low, std::int64_t high) {
  return fake_quantize(input, scales, zero_points, axis, low, high).value;
}

Tensor convert_element_type(const Tensor& input, ScalarType type) {
  return input.to(type, /*non_blocking=*/false, /*copy=*/true);
}

// ---- on the meta device, of operators that read values: sizes and types alone

Tensor quantize_meta(const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                     std::int64_t, std::int64_t, ScalarType type) {
  need_one(zero_point, "zero_point");
  need_one(scale, "scale");
  return at::empty_like(need_float(input), type);
}

Tensor quantize_meta2(const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                      const Tensor&, const Tensor&, ScalarType type) {
  return quantize_meta(input, scale, zero_point, 0, 0, type);
}

Tensor dequantize_meta(const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                       std::int64_t, std::int64_t, ScalarType type, OptionalType out) {
  need_type(input, type);
  need_bounds(type);
  need_one(zero_point, "zero_point");
  need_one(scale, "scale");
  return at::empty_like(input, out.value_or(at::kFloat));
}

Tensor dequantize_meta2(const Tensor& input, const Tensor& scale, const Tensor& zero_point,
                        const Tensor&, const Tensor&, ScalarType type, OptionalType out) {
  return dequantize_meta(input, scale, zero_point, 0, 0, type, out);
}

QParams choose_qparams_meta(const Tensor& input, std::int64_t low, std::int64_t high, double,
                            ScalarType type) {
  need_qparams_arguments(input, low, high, type);
  return {at::empty({1}, input.options().dtype(at::kDouble)),
          at::empty({1}, input.options().dtype(at::kLong))};
}

// Adds operators to the namespace, but for those that somebody else registered.
class Registration {
 public:
  template <typename Kernel, typename Meta = std::nullptr_t>
  void add(const char* schema, Kernel kernel, Meta meta = nullptr) {
    const std::string_view text(schema);
    const std::string name(text.substr(0, text.find('(')));
    const std::size_t dot = name.find('.');
    const c10::OperatorName full("quantized_decomposed::" + name.substr(0, dot),
                                 dot == std::string::npos ? "" : name.substr(dot + 1));
    if (c10::Dispatcher::singleton().findSchema(full)) return;
    library_.def(schema);
    library_.impl(name.c_str(),
                  torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel));
    if constexpr (!std::is_same_v<Meta, std::nullptr_t>)
      library_.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta, meta));
    made_.push_back(name);
  }
  template <typename Kernel>
  void add_gradient(const char* name, Kernel kernel) {
    if (std::ranges::find(made_, name) != made_.end())
      library_.impl(name, torch::dispatch(c10::DispatchKey::Autograd, kernel));
  }

 private:
  torch::Library library_{torch::Library::FRAGMENT, "quantized_decomposed", std::nullopt, __FILE__,
                          __LINE__};
  std::vector<std::string> made_;
};

bool add_all() {
  auto& to = *new Registration;  // operators stay until the process ends
  const std::string qparams =
      "int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)";
  const std::string range = "int quant_min, int quant_max, ScalarType dtype";
  const std::string tensor_range = "Tensor quant_min, Tensor quant_max, ScalarType dtype";
  const std::string out = ", *, ScalarType? out_dtype=None) -> Tensor";
  const auto add = [&](const std::string& schema, auto... kernels) {
    to.add(schema.c_str(), kernels...);
  };
  add("quantize_per_tensor(Tensor input, float scale, int zero_point, " + range + ") -> Tensor",
      quantize_per_tensor);
  add("quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " + range +
          ") -> Tensor",
      quantize_per_tensor_tensor, quantize_meta);
  add("quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " + tensor_range +
          ") -> Tensor",
      quantize_per_tensor_tensor2, quantize_meta2);
  add("dequantize_per_tensor(Tensor input, float scale, int zero_point, " + range + out,
      dequantize_per_tensor);
  add("dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, " + range + out,
      dequantize_per_tensor_tensor, dequantize_meta);
  add("dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, " +
          tensor_range + out,
      dequantize_per_tensor_tensor2, dequantize_meta2);
  add("choose_qparams.tensor(Tensor input, " + qparams, choose_qparams, choose_qparams_meta);
  add("choose_qparams_symmetric.tensor(Tensor input, " + qparams, choose_qparams_symmetric,
      choose_qparams_meta);
  add("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, " + range +
          ") -> Tensor",
      quantize_per_channel);
  add("dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, " +
          range + out,
      dequantize_per_channel);
  add("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      choose_qparams_per_token);
  for (const char* name :
       {"_choose_qparams_per_token_asymmetric_impl", "choose_qparams_per_token_asymmetric"})
    add(std::string(name) + "(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
        choose_qparams_per_token_asymmetric);
  add("quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " + range +
          ") -> Tensor",
      quantize_per_token);
  add("dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, " + range +
          ", ScalarType output_dtype) -> Tensor",
      dequantize_per_token);
  add("quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, " + range +
          ", int group_size) -> Tensor",
      quantize_per_channel_group);
  add("dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, " + range +
          ", int group_size, ScalarType output_dtype) -> Tensor",
      dequantize_per_channel_group);
  add("fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
      "quant_min, int quant_max) -> Tensor",
      fake_quant_per_channel);
  to.add_gradient("fake_quant_per_channel", fake_quant_with_gradient);
  add("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
      convert_element_type);
  return true;
}

}  // namespace

void register_quantized_decomposed() { [[maybe_unused]] static const bool done = add_all(); }

}  // namespace fx
