#include <cmath>

#include "fx/compile/lower_table.h"

/// Activation functions: of floats only, computed in opmath and rounded once.
namespace fx::loops {
namespace {

template <typename F>
Tensors activation(const Call& call, F f) {
  const Num x = call.tensor("self");
  if (!is_floating(x.type())) call.unsupported("not of floats");
  return result(f(x.cast(opmath(x.type()))), x.type());
}

/// A number of an activation, in opmath of its input.
Num parameter(const Call& call, const char* argument) {
  return call.checked_number(argument, opmath(call.tensor("self").type()));
}

/// x, and below zero a * (exp(b * x) - 1), all times `scale`.
Num elu(const Num& x, double alpha, double scale, double input_scale) {
  const Num slope = x.number(alpha) * x.number(scale);
  return select(x < 0.0, expm1(x * input_scale) * slope, x * scale);
}

/// x + 3 between 0 and 6.
Num shifted_between(const Num& x) {
  return at_most(at_least(x + 3.0, x.number(0.0)), x.number(6.0));
}

/// Both results of log_sigmoid: the value and exp(-|x|).
std::pair<Num, Num> log_sigmoid(const Num& x) {
  const Num power = exp(-abs(x));
  return {at_most(x, x.number(0.0)) - log1p(power), power};
}

}  // namespace

Tensors lower_silu(const Call& call) {
  return activation(call, [](const Num& x) { return x / (1.0 + exp(-x)); });
}

Tensors lower_gelu(const Call& call) {
  const std::string mode = call.text("approximate");
  if (mode == "none")
    return activation(call, [](const Num& x) {
      return x * fma(erf(x * M_SQRT1_2), x.number(0.5), x.number(0.5));
    });
  if (mode != "tanh") call.unsupported("approximate=" + mode);
  return activation(call, [](const Num& x) {
    const double beta = M_SQRT2 * M_2_SQRTPI * 0.5;
    const Num inner = beta * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (1.0 + tanh(inner));
  });
}

Tensors lower_mish(const Call& call) {
  return activation(call, [](const Num& x) {
    // tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2); 1 to the last bit for larger x.
    const Num e = exp(x);
    const Num n = e * (e + 2.0);
    return select(x > 20.0, x, x * (n / (n + 2.0)));
  });
}

Tensors lower_elu(const Call& call) {
  return activation(call, [&](const Num& x) {
    return elu(x, call.real("alpha"), call.real("scale"), call.real("input_scale"));
  });
}

Tensors lower_celu(const Call& call) {
  const double alpha = call.real("alpha");
  if (alpha == 0) call.unsupported("alpha is 0");
  return activation(call, [&](const Num& x) { return elu(x, alpha, 1.0, 1.0 / alpha); });
}

Tensors lower_selu(const Call& call) {
  return activation(call, [](const Num& x) {
    return elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0);
  });
}

Tensors lower_leaky_relu(const Call& call) {
  const Num slope = parameter(call, "negative_slope");
  return activation(call, [&](const Num& x) { return select(x > 0.0, x, x * slope); });
}

Tensors lower_hardswish(const Call& call) {
  return activation(call, [](const Num& x) { return x * shifted_between(x) / 6.0; });
}

Tensors lower_hardsigmoid(const Call& call) {
  return activation(call, [](const Num& x) { return shifted_between(x) / 6.0; });
}

Tensors lower_softplus(const Call& call) {
  const Num beta = parameter(call, "beta");
  const Num threshold = parameter(call, "threshold");
  return activation(call, [&](const Num& x) {
    const Num scaled = x * beta;
    return select(scaled > threshold, x, log1p(exp(scaled)) / beta);
  });
}

Tensors lower_softshrink(const Call& call) {
  const c10::ScalarType type = call.tensor("self").type();
  if (!(call.real("lambd") >= 0)) call.unsupported("lambd is negative");
  const Num lambda = call.checked_number("lambd", type);
  return activation(call, [&](const Num& x) {
    return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0.0));
  });
}

Tensors lower_hardshrink(const Call& call) {
  const Num lambda = call.checked_number("lambd", call.tensor("self").type());
  return activation(call,
                    [&](const Num& x) { return select((x >= -lambda) & (x <= lambda), 0.0, x); });
}

Tensors lower_threshold(const Call& call) {
  const Num x = call.tensor("self");
  if (is_bool(x.type())) call.unsupported("threshold of bools");
  const Num threshold = call.checked_number("threshold", x.type());
  const Num value = call.checked_number("value", x.type());
  const Num wide = x.cast(opmath(x.type()));
  return result(select(wide <= threshold, value, wide), x.type());
}

Tensors lower_log_sigmoid(const Call& call) {
  return activation(call, [](const Num& x) { return log_sigmoid(x).first; });
}

Tensors lower_log_sigmoid_forward(const Call& call) {
  const Num x = call.tensor("self");
  if (!is_floating(x.type())) call.unsupported("not of floats");
  const auto [value, power] = log_sigmoid(x.cast(opmath(x.type())));
  return {value.cast(x.type()).tensor(), power.cast(x.type()).tensor()};
}

Tensors lower_prelu(const Call& call) {
  const Num x = call.tensor("self");
  const Num weight = call.tensor("weight");
  if (x.type() != weight.type()) call.unsupported("a weight of another dtype");
  Tensor slope = weight.tensor();
  if (call.name() == "aten::prelu") {
    // One weight, or one a channel (dimension 1).
    if (slope.dim() > 1) call.unsupported("a weight of several dimensions");
    const bool one = slope.dims.empty() || slope.dims[0] == kOne;
    if (slope.dim() == 1 && one) slope = call.program().squeeze(slope, 0);
    if (!one) {
      if (x.dim() < 2) call.unsupported("a weight that does not fit");
      call.program().shapes().unify(slope.dims[0], x.tensor().dims[1]);
      for (std::int64_t d = 2; d < x.dim(); ++d)
        slope = call.program().unsqueeze(slope, slope.dim());
    }
  }
  const Num factor = Num(call.program(), slope).cast(opmath(x.type()));
  return activation(call, [&](const Num& z) { return select(z > 0.0, z, z * factor); });
}

Tensors lower_dropout(const Call& call) {
  if (call.flag("train") && call.real("p") != 0) call.unsupported("dropout in training");
  return {call.tensor("input").tensor()};
}

Tensors lower_native_dropout(const Call& call) {
  if (!call.has("train") || call.flag("train")) call.unsupported("dropout in training");
  const Num x = call.tensor("input");
  for (Dim dim : x.tensor().dims)
    if (call.program().shapes().example(dim) == 0) call.unsupported("dropout of nothing");
  const Num kept = call.number(c10::ScalarType::Bool, true);
  return {x.tensor(), kept.expand(x.tensor().dims).tensor()};
}

}  // namespace fx::loops
