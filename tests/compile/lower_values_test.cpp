#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/compile/eager_check.h"
#include "tests/compile/reference.h"
#include "tests/compile/values.h"

namespace fx::loops {
namespace {

const std::vector<std::string>& unary_names() {
  static const std::vector<std::string> names = {
      "abs",         "acos",      "acosh",      "asin",  "asinh",   "atan",
      "atanh",       "ceil",      "cos",        "cosh",  "deg2rad", "erf",
      "erfc",        "exp",       "exp2",       "expm1", "floor",   "frac",
      "hardsigmoid", "hardswish", "isfinite",   "isinf", "isnan",   "isneginf",
      "isposinf",    "log",       "log10",      "log1p", "log2",    "log_sigmoid",
      "logical_not", "mish",      "nan_to_num", "neg",   "rad2deg", "reciprocal",
      "relu",        "relu6",     "round",      "rsqrt", "selu",    "sgn",
      "sigmoid",     "sign",      "signbit",    "silu",  "sin",     "sinh",
      "sqrt",        "square",    "tan",        "tanh",  "trunc"};
  return names;
}

/// Every value of the type.
at::Tensor all_values(at::ScalarType type) {
  const at::Tensor bits = at::arange(-32768, 32768, at::kShort);
  if (type == at::kChar || type == at::kByte) return at::arange(0, 256, at::kShort).to(type);
  return bits.view(type);
}

TEST(LowerValues, UnaryFunctionsOfAllHalves) {
  for (const std::string& name : unary_names())
    for (at::ScalarType type : {at::kBFloat16, at::kHalf})
      EXPECT_EQ(inequality("aten::" + name, {all_values(type)}), "");
}

/// Every 65521st bit pattern of float.
at::Tensor some_floats() {
  return at::arange(-2147483648LL, 2147483648LL, 65521, at::kLong).to(at::kInt).view(at::kFloat);
}

TEST(LowerValues, UnaryFunctionsOfFloats) {
  for (const std::string& name : unary_names()) {
    EXPECT_EQ(inequality("aten::" + name, {some_floats()}), "");
    EXPECT_EQ(inequality("aten::" + name, {some_floats().to(at::kDouble)}), "");
  }
}

/// The error in units of the last place of the exact result, and no less than some denormals.
at::Tensor error_of(const at::Tensor& value, const at::Tensor& truth) {
  const at::Tensor magnitude = at::clamp(truth.abs(), 1.2e-38);
  const at::Tensor ulp = at::exp2(at::floor(at::log2(magnitude)) - 23);
  const at::Tensor error = (value.to(at::kDouble) - truth).abs() / ulp;
  return error.masked_fill(at::logical_not(truth.isfinite()), 0).nan_to_num(0, 0, 0);
}

/// What the reference gives for a call.
at::Tensor lowered(const Overload& overload, const Stack& args) {
  at::Tensor out;
  CheckOptions options;
  options.resize = false;
  options.engine = [&](const TensorProgram& program, std::span<const Tensor> outputs,
                       std::span<const at::Tensor> inputs, std::span<const c10::Scalar> scalars) {
    ReferenceResult result = evaluate(program, outputs, inputs, scalars);
    out = result.outputs[0];
    return result;
  };
  check_call(overload, args, options);
  return out;
}

TEST(LowerValues, CompositeFunctionsAreAsAccurateAsEager) {
  const std::vector<std::pair<std::string, Stack>> calls = {
      {"celu", {0.7}},    {"elu", {}},         {"gelu", {}},   {"hardsigmoid", {}},
      {"hardswish", {}},  {"log_sigmoid", {}}, {"logit", {}},  {"mish", {}},
      {"reciprocal", {}}, {"rsqrt", {}},       {"selu", {}},   {"sigmoid", {}},
      {"silu", {}},       {"softplus", {}},    {"square", {}}, {"leaky_relu", {0.3}}};
  const at::Tensor x = some_floats();
  for (const auto& [name, rest] : calls) {
    const Overload& overload = overload_of("aten::" + name);
    const auto with = [&](const at::Tensor& input) {
      Stack args = {input};
      args.insert(args.end(), rest.begin(), rest.end());
      return with_defaults(overload, args);
    };
    Stack eager = with(x);
    overload.handle.callBoxed(eager);
    Stack exact = with(x.to(at::kDouble));
    overload.handle.callBoxed(exact);
    const at::Tensor ours = lowered(overload, with(x));
    const at::Tensor truth = exact[0].toTensor();
    const at::Tensor error = error_of(ours, truth);
    // Eager's worst among the neighbours: at a single number it may be lucky.
    const at::Tensor around =
        at::max_pool1d(error_of(eager[0].toTensor(), truth).view({1, 1, -1}), 33, 1, 16).view({-1});
    const at::Tensor allowed = at::clamp(1.5 * around, 4.0);
    const auto worst = at::argmax(error - allowed).item<std::int64_t>();
    EXPECT_LE((error - allowed)[worst].item<double>(), 0)
        << name << "(" << x[worst].item<double>() << "): " << error[worst].item<double>()
        << " ulp, eager at most " << around[worst].item<double>();
  }
}

TEST(LowerValues, HalvesAreRoundedWhereEagerRounds) {
  at::manual_seed(1);
  for (at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const auto random = [&]() { return at::randn({4099}, at::kDouble).to(type); };
    const at::Tensor x = random();
    const at::Tensor y = random();
    const at::Tensor z = random();
    const at::Tensor m = random().slice(0, 0, 4096).view({64, 64});
    const std::vector<std::int64_t> last = {1};
    const std::vector<std::int64_t> last_size = {64};
    const std::vector<std::pair<const char*, Stack>> calls = {
        {"aten::add.Tensor", {x, y, 0.3}},
        {"aten::sub.Tensor", {x, y, 0.3}},
        {"aten::add.Scalar", {x, 0.3, 0.7}},
        {"aten::mul.Scalar", {x, 0.3}},
        {"aten::div.Scalar", {x, 0.3}},
        {"aten::mul.Tensor", {x, at::scalar_tensor(0.3, at::kFloat)}},
        {"aten::addcmul", {x, y, z, 0.3}},
        {"aten::addcdiv", {x, y, z, 0.3}},
        {"aten::lerp.Scalar", {x, y, 0.3}},
        {"aten::lerp.Tensor", {x, y, z}},
        {"aten::pow.Tensor_Scalar", {x, 2}},
        {"aten::pow.Tensor_Scalar", {x, 3}},
        {"aten::pow.Tensor_Scalar", {x.abs(), 2.5}},
        {"aten::pow.Tensor_Tensor", {x.abs(), y}},
        {"aten::leaky_relu", {x, 0.3}},
        {"aten::elu", {x, 0.3, 1.7, 0.9}},
        {"aten::celu", {x, 0.3}},
        {"aten::selu", {x}},
        {"aten::softplus", {x, 0.3, 1.1}},
        {"aten::softshrink", {x, 0.3}},
        {"aten::hardshrink", {x, 0.3}},
        {"aten::threshold", {x, 0.3, 0.7}},
        {"aten::hardtanh", {x, -0.3, 0.7}},
        {"aten::clamp", {x, -0.3, 0.7}},
        {"aten::gelu", {x}},
        {"aten::gelu", {x, "tanh"}},
        {"aten::silu", {x}},
        {"aten::mish", {x}},
        {"aten::hardswish", {x}},
        {"aten::hardsigmoid", {x}},
        {"aten::sigmoid", {x}},
        {"aten::log_sigmoid", {x}},
        {"aten::rsqrt", {x.abs()}},
        {"aten::logit", {x.sigmoid()}},
        {"aten::logaddexp", {x, y}},
        {"aten::logaddexp2", {x, y}},
        {"aten::xlogy.Tensor", {x, y.abs()}},
        {"aten::hypot", {x, y}},
        {"aten::atan2", {x, y}},
        {"aten::rad2deg", {x}},
        {"aten::round.decimals", {x, 2}},
        {"aten::masked_fill.Scalar", {x, y.to(at::kBool), 0.3}},
        {"aten::mse_loss", {x, y, 0}},
        {"aten::l1_loss", {x, y, 0}},
        {"aten::huber_loss", {x, y, 0, 0.3}},
        {"aten::smooth_l1_loss", {x, y, 0, 0.3}},
        {"aten::binary_cross_entropy", {x.sigmoid(), y.sigmoid(), c10::IValue(), 0}},
        {"aten::binary_cross_entropy_with_logits",
         {x, y.sigmoid(), c10::IValue(), c10::IValue(), 0}},
        {"aten::sum.dim_IntList", {m, last}},
        {"aten::mean.dim", {m, last}},
        {"aten::var.correction", {m, last}},
        {"aten::std.correction", {m, last}},
        {"aten::linalg_vector_norm", {m, 2, last}},
        {"aten::linalg_vector_norm", {m, 3, last}},
        {"aten::logsumexp", {m, last}},
        {"aten::softmax.int", {m, 1}},
        {"aten::softmax.int", {m, 0}},
        {"aten::log_softmax.int", {m, 0}},
        {"aten::layer_norm", {m, last_size, m[0], m[1]}},
        {"aten::rms_norm", {m, last_size, m[0]}},
        {"aten::group_norm", {m.view({16, 4, -1}), 4, m[0].slice(0, 0, 4), m[1].slice(0, 0, 4)}},
        {"aten::batch_norm",
         {m.view({16, 4, -1}), m[0].slice(0, 0, 4), m[1].slice(0, 0, 4), m[2].slice(0, 0, 4),
          m[3].slice(0, 0, 4).abs(), false, 0.1, 1e-5, false}},
        {"aten::cosine_similarity", {m, m.flip(0), 1}},
        {"aten::softmax.int", {x, 0}},
        {"aten::log_softmax.int", {x, 0}},
        {"aten::layer_norm", {x, std::vector<std::int64_t>{4099}}},
        {"aten::rms_norm", {x, std::vector<std::int64_t>{4099}}},
    };
    for (const auto& [name, first_args] : calls) {
      const Overload& overload = overload_of(name);
      const Stack args = with_defaults(overload, first_args);
      Stack eager = args;
      overload.handle.callBoxed(eager);
      const at::Tensor other =
          at::logical_not(at::isclose(lowered(overload, args), eager[0].toTensor(), 0, 0, true));
      EXPECT_LE(at::mean(other.to(at::kFloat)).item<double>(), 0.01) << call_text(overload, args);
    }
  }
}

TEST(LowerValues, IntegerArithmeticOfAllBytes) {
  const std::vector<std::string> names = {"add.Tensor",
                                          "sub.Tensor",
                                          "mul.Tensor",
                                          "maximum",
                                          "minimum",
                                          "eq.Tensor",
                                          "lt.Tensor",
                                          "bitwise_and.Tensor",
                                          "bitwise_or.Tensor",
                                          "bitwise_xor.Tensor",
                                          "bitwise_left_shift.Tensor",
                                          "bitwise_right_shift.Tensor",
                                          "logical_xor",
                                          "floor_divide",
                                          "remainder.Tensor",
                                          "fmod.Tensor",
                                          "div.Tensor"};
  for (at::ScalarType type : {at::kChar, at::kByte}) {
    const at::Tensor a = all_values(type).unsqueeze(1);
    const at::Tensor b = all_values(type);
    const at::Tensor divisors = b.masked_fill(b == 0, 1);
    for (const std::string& name : names) {
      const bool divides = name == "floor_divide" || name.find("mod") != std::string::npos ||
                           name.starts_with("remainder");
      EXPECT_EQ(inequality("aten::" + name, {a, divides ? divisors : b}), "");
    }
  }
}

TEST(LowerValues, FloatArithmeticOfSpecialValues) {
  const std::vector<std::string> names = {"add.Tensor",
                                          "sub.Tensor",
                                          "mul.Tensor",
                                          "div.Tensor",
                                          "maximum",
                                          "minimum",
                                          "fmax",
                                          "fmin",
                                          "atan2",
                                          "copysign.Tensor",
                                          "hypot",
                                          "eq.Tensor",
                                          "ne.Tensor",
                                          "lt.Tensor",
                                          "le.Tensor",
                                          "gt.Tensor",
                                          "ge.Tensor",
                                          "xlogy.Tensor",
                                          "logaddexp",
                                          "logaddexp2",
                                          "pow.Tensor_Tensor",
                                          "fmod.Tensor",
                                          "remainder.Tensor",
                                          "floor_divide",
                                          "logical_and",
                                          "heaviside"};
  for (at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor values =
        floats({kNan, kInf, -kInf, 0.0,  -0.0, 1.0,  -1.0,  0.5,    -0.5, 2.0,  -2.0,
                3.0,  -3.0, 0.1,   -0.1, 7.5,  -7.5, 100.0, -100.0, 1e-4, -1e-4},
               type);
    for (const std::string& name : names)
      EXPECT_EQ(inequality("aten::" + name, {values.unsqueeze(1), values}), "");
  }
}

TEST(LowerValues, CastsBetweenAllTypes) {
  const std::vector<at::ScalarType> types = {at::kBool,  at::kByte,  at::kChar, at::kShort,
                                             at::kInt,   at::kLong,  at::kHalf, at::kBFloat16,
                                             at::kFloat, at::kDouble};
  const at::Tensor values =
      floats({kNan,  kInf,   -kInf, 0.0,   -0.0,   0.5,        -0.5,         1.5,           -1.0,
              127,   128,    129,   -128,  -129,   255,        256,          300,           32767,
              32768, -32769, 65504, 65519, 65520,  2147483647, 2147483648.0, -2147483649.0, 3e9,
              9e18,  1e19,   -1e19, 1e300, 1e-300, 16777217},
             at::kDouble);
  for (at::ScalarType from : types)
    for (at::ScalarType to : types)
      EXPECT_EQ(inequality("aten::to.dtype", {values.to(from), static_cast<std::int64_t>(to)}), "");
}

}  // namespace
}  // namespace fx::loops
