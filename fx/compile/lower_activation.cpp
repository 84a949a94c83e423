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

}  // namespace

Tensors lower_silu(const Call& call) {
  return activation(call, [](const Num& x) { return x / (1.0 + exp(-x)); });
}

Tensors lower_gelu(const Call& call) {
  const std::string mode = call.text("approximate");
  if (mode == "none")
    return activation(call, [](const Num& x) {
      const Num cdf = fma(erf(x * M_SQRT1_2), x.number(0.5), x.number(0.5));
      return x * cdf;
    });
  if (mode != "tanh") call.unsupported("approximate=" + mode);
  return activation(call, [](const Num& x) {
    const double beta = M_SQRT2 * M_2_SQRTPI * 0.5;
    const Num inner = beta * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (1.0 + tanh(inner));
  });
}

Tensors lower_leaky_relu(const Call& call) {
  const Num slope = call.checked_number("negative_slope", opmath(call.tensor("self").type()));
  return activation(call, [&](const Num& x) { return select(x > 0.0, x, x * slope); });
}

}  // namespace fx::loops
