#include <limits>

#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"

/// Softmax and the layers that normalize.
namespace fx::loops {
namespace {

/// Softmax or its logarithm, in the type of `x`.
/// @param sum_type the logarithm of the sum is rounded to it.
Num softmax(const Num& x, const std::vector<std::int64_t>& dims, bool logarithm,
            c10::ScalarType sum_type) {
  const Num shifted = x - x.reduce(Reduce::kMax, dims, true);
  const Num power = exp(shifted);
  const Num sum = power.reduce(Reduce::kSum, dims, true);
  return logarithm ? shifted - log(sum).rounded(sum_type) : power * (1.0 / sum);
}

Tensors softmax(const Call& call, bool logarithm) {
  if (call.has("half_to_float") && call.flag("half_to_float")) call.unsupported("half_to_float");
  const Num x = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(x.type());
  if (!is_floating(type)) call.unsupported("softmax of integers");
  const std::vector<std::int64_t> dims = wrap_dims({call.integer("dim")}, x.dim());
  // Eager keeps it with the elements where those are neighbours.
  const bool last = !dims.empty() && dims[0] == x.dim() - 1;
  const c10::ScalarType sum_type = last ? type : opmath(type);
  return result(softmax(x.cast(type).cast(opmath(type)), dims, logarithm, sum_type), type);
}

/// The last dimensions, whose sizes must be `normalized_shape`.
std::vector<std::int64_t> normalized_dims(const Call& call, const Num& x) {
  const std::vector<std::int64_t> sizes = call.ints("normalized_shape");
  const auto count = static_cast<std::int64_t>(sizes.size());
  if (count == 0 || count > x.dim()) call.unsupported("normalized_shape does not fit");
  std::vector<std::int64_t> dims;
  Shapes& shapes = call.program().shapes();
  for (std::int64_t i = 0; i < count; ++i) {
    dims.push_back(x.dim() - count + i);
    shapes.unify(x.tensor().dims[static_cast<std::size_t>(dims.back())],
                 shapes.constant(sizes[static_cast<std::size_t>(i)]));
  }
  return dims;
}

/// A parameter in the type of `x`, whose dimensions are the last of x.
std::optional<Num> parameter(const Call& call, const char* argument, const Num& x,
                             std::size_t rank) {
  if (!call.has(argument)) return std::nullopt;
  const Num value = call.tensor(argument);
  if (!is_floating(value.type()) || value.tensor().dims.size() != rank)
    call.unsupported(std::string(argument) + " does not fit");
  Shapes& shapes = call.program().shapes();
  for (std::size_t d = 0; d < rank; ++d)
    shapes.unify(value.tensor().dims[d], x.tensor().dims[x.tensor().dims.size() - rank + d]);
  return value.cast(x.type());
}

Tensors layer_norm(const Call& call, bool statistics) {
  const Num self = call.tensor("input");
  const c10::ScalarType type = self.type();
  if (!is_floating(type)) call.unsupported("layer_norm of integers");
  const c10::ScalarType stat_type = parameter_type(call, type, {"weight", "bias"});
  const std::vector<std::int64_t> dims = normalized_dims(call, self);
  const Num x = self.cast(opmath(type));
  const Normalized n = normalize(x, dims, call.real("eps"));
  Num y = n.value;
  const std::optional<Num> weight = parameter(call, "weight", x, dims.size());
  const std::optional<Num> bias = parameter(call, "bias", x, dims.size());
  if (weight && bias)
    y = fma(y, *weight, *bias);
  else if (weight || bias)
    y = weight ? y * *weight : y + *bias;
  Tensors out = result(y, type);
  if (statistics) {
    out.push_back(n.mean.cast(stat_type).tensor());
    out.push_back(n.inverse.cast(stat_type).tensor());
  }
  return out;
}

/// The root of the mean square, and what it was divided by.
Tensors rms_norm(const Call& call, bool statistics) {
  const Num self = call.tensor("input");
  const c10::ScalarType type = self.type();
  if (!is_floating(type)) call.unsupported("rms_norm of integers");
  parameter_type(call, type, {"weight"});
  const std::vector<std::int64_t> dims = normalized_dims(call, self);
  const Num x = self.cast(opmath(type));
  const double smallest = type == c10::ScalarType::Double ? std::numeric_limits<double>::epsilon()
                                                          : std::numeric_limits<float>::epsilon();
  const Num inverse = 1.0 / sqrt(mean_of(x * x, dims) + call.real("eps", smallest));
  Num y = x * inverse;
  if (const std::optional<Num> weight = parameter(call, "weight", x, dims.size())) y = y * *weight;
  Tensors out = result(y, type);
  if (statistics) out.push_back(inverse.tensor());
  return out;
}

}  // namespace

Tensors lower_softmax(const Call& call) { return softmax(call, false); }
Tensors lower_log_softmax(const Call& call) { return softmax(call, true); }
Tensors lower_layer_norm(const Call& call) { return layer_norm(call, false); }
Tensors lower_native_layer_norm(const Call& call) { return layer_norm(call, true); }
Tensors lower_rms_norm(const Call& call) { return rms_norm(call, false); }
Tensors lower_fused_rms_norm(const Call& call) { return rms_norm(call, true); }

Tensors lower_logsumexp(const Call& call) {
  const Num self = call.tensor("self");
  const c10::ScalarType type = float_type(self.type());
  const std::vector<std::int64_t> dims = wrap_dims(call.ints("dim"), self.dim());
  if (call.ints("dim").empty()) call.unsupported("logsumexp over no dimensions");
  const bool keepdim = call.flag("keepdim");
  // Eager computes it in several operators: so often it rounds.
  const auto round = [&](const Num& x) { return x.rounded(type); };
  const Num x = call.read_float("self");
  const Num most = x.reduce(Reduce::kMax, dims, true);
  const Num shift = select(abs(most) == std::numeric_limits<double>::infinity(), 0.0, most);
  const Num power = round(exp(round(x - shift)));
  const Num sum = round(power.reduce(Reduce::kSum, dims, keepdim));
  return result(round(log(sum)) + without_dims(shift, dims, keepdim), type);
}

Tensors lower_cosine_similarity(const Call& call) {
  const Operand a = call.operand("x1");
  const Operand b = call.operand("x2");
  // Unlike elsewhere, tensors without dimensions count as others.
  const c10::ScalarType type = c10::promoteTypes(a.type, b.type);
  if (!is_floating(type)) call.unsupported("cosine_similarity of integers");
  const auto round = [&](const Num& x) { return x.rounded(type); };
  const Dims sizes = call.program().shapes().broadcast(a.tensor->dims, b.tensor->dims);
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const std::vector<std::int64_t> dims = wrap_dims({call.integer("dim")}, rank);
  const Num eps = call.checked_number("eps", type);
  const auto unit = [&](const Operand& operand) {
    const Num x = call.read(operand, type).expand(sizes);
    return round(x / maximum(round(vector_norm(x, 2, dims, true)), eps));
  };
  const Num product = round(unit(a) * unit(b));
  return result(product.reduce(Reduce::kSum, dims, false), type);
}

}  // namespace fx::loops
