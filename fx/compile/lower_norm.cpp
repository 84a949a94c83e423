#include <limits>

#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"

/// Softmax and the layers that normalize.
namespace fx::loops {
namespace {

/// Softmax or its logarithm, in the type of `x`.
Num softmax(const Num& x, const std::vector<std::int64_t>& dims, bool logarithm) {
  const Num shifted = x - x.reduce(Reduce::kMax, dims, true);
  const Num power = exp(shifted);
  const Num sum = power.reduce(Reduce::kSum, dims, true);
  return logarithm ? shifted - log(sum) : power * (1.0 / sum);
}

Tensors softmax(const Call& call, bool logarithm) {
  if (call.has("half_to_float") && call.flag("half_to_float")) call.unsupported("half_to_float");
  const Num x = call.tensor("self");
  const c10::ScalarType type = call.dtype().value_or(x.type());
  if (!is_floating(type)) call.unsupported("softmax of integers");
  const std::vector<std::int64_t> dims = wrap_dims({call.integer("dim")}, x.dim());
  return result(softmax(x.cast(type).cast(opmath(type)), dims, logarithm), type);
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

struct Normalized {
  Num value;
  Num mean;
  Num inverse;  ///< 1 / sqrt(variance + eps)
};

Normalized normalize(const Num& x, const std::vector<std::int64_t>& dims, double eps) {
  const Num mean = mean_of(x, dims);
  const Num difference = x - mean;
  const Num variance = mean_of(difference * difference, dims);
  const Num inverse = 1.0 / sqrt(variance + eps);
  return {difference * inverse, mean, inverse};
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

/// The type of the parameters: that of the input, or float beside half and bfloat16.
c10::ScalarType parameter_type(const Call& call, c10::ScalarType type) {
  c10::ScalarType found = type;
  for (const char* argument : {"weight", "bias"})
    if (call.has(argument)) {
      found = call.tensor(argument).type();
      if (found != type && !(c10::isReducedFloatingType(type) && found == c10::ScalarType::Float))
        call.unsupported("parameters of another dtype");
    }
  for (const char* argument : {"weight", "bias"})
    if (call.has(argument) && call.tensor(argument).type() != found)
      call.unsupported("parameters of different dtypes");
  return found;
}

Tensors layer_norm(const Call& call, bool statistics) {
  const Num self = call.tensor("input");
  const c10::ScalarType type = self.type();
  if (!is_floating(type)) call.unsupported("layer_norm of integers");
  const c10::ScalarType stat_type = parameter_type(call, type);
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

}  // namespace

Tensors lower_softmax(const Call& call) { return softmax(call, false); }
Tensors lower_log_softmax(const Call& call) { return softmax(call, true); }
Tensors lower_layer_norm(const Call& call) { return layer_norm(call, false); }
Tensors lower_native_layer_norm(const Call& call) { return layer_norm(call, true); }

}  // namespace fx::loops
