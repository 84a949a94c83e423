#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"

/// Losses. Those that eager makes of several operators round between them, as it does.
namespace fx::loops {
namespace {

struct Pair {
  c10::ScalarType type;
  Num a;
  Num b;
};

/// Input and target in opmath of their common dtype.
Pair read_pair(const Call& call) {
  const Num a = call.tensor("self");
  const Num b = call.tensor("target");
  if (a.type() != b.type()) call.unsupported("a target of another dtype");
  if (!is_floating(a.type())) call.unsupported("a loss of integers");
  return {a.type(), a.cast(opmath(a.type())), b.cast(opmath(b.type()))};
}

/// Whether the sizes are the same now; then they are from now on.
bool same_sizes(const Call& call, const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  Shapes& shapes = call.program().shapes();
  for (std::size_t d = 0; d < a.size(); ++d)
    if (shapes.example(a[d]) != shapes.example(b[d])) return false;
  for (std::size_t d = 0; d < a.size(); ++d) shapes.unify(a[d], b[d]);
  return true;
}

/// The elements, their mean or their sum.
Tensors reduced(const Call& call, const Num& loss, c10::ScalarType type) {
  const Num each = loss.rounded(type);
  const std::vector<std::int64_t> dims = all_dims(each.dim());
  switch (call.integer("reduction")) {
    case 0:
      return result(each, type);
    case 1:
      return result(without_dims(mean_of(each, dims), dims, false), type);
    case 2:
      return result(each.reduce(Reduce::kSum, dims, false), type);
    default:
      call.unsupported("an unknown reduction");
  }
}

}  // namespace

Tensors lower_mse_loss(const Call& call) {
  const Pair p = read_pair(call);
  const Num difference = (p.a - p.b).rounded(p.type);
  return reduced(call, difference * difference, p.type);
}

Tensors lower_l1_loss(const Call& call) {
  const Pair p = read_pair(call);
  return reduced(call, abs(p.a - p.b), p.type);
}

Tensors lower_smooth_l1_loss(const Call& call) {
  const double beta = call.real("beta");
  if (!(beta >= 0)) call.unsupported("beta is negative");
  if (beta == 0) return lower_l1_loss(call);
  const Pair p = read_pair(call);
  // Of half, eager rounds each step.
  const auto round = [&](const Num& x) {
    return p.type == c10::ScalarType::Half ? x.rounded(p.type) : x;
  };
  const Num z = abs(round(p.a - p.b));
  const Num bound = round(z.number(beta));
  const Num near = round(round(0.5 * z) * z) / bound;
  return reduced(call, select(z >= bound, z - round(0.5 * bound), near), p.type);
}

Tensors lower_huber_loss(const Call& call) {
  const double delta = call.real("delta");
  if (!(delta > 0)) call.unsupported("delta is not positive");
  const Pair p = read_pair(call);
  // Of bfloat16, eager rounds each step.
  const auto round = [&](const Num& x) {
    return p.type == c10::ScalarType::BFloat16 ? x.rounded(p.type) : x;
  };
  const Num z = abs(round(p.a - p.b));
  const Num bound = round(z.number(delta));
  const Num far = bound * round(z - round(0.5 * bound));
  return reduced(call, select(z >= bound, far, round(0.5 * z) * z), p.type);
}

Tensors lower_bce(const Call& call) {
  const Pair p = read_pair(call);
  const Dims dims = p.a.tensor().dims;
  if (!same_sizes(call, p.b.tensor().dims, dims)) call.unsupported("a target of other sizes");
  const auto round = [&](const Num& x) { return x.rounded(p.type); };
  const Num floor = p.a.number(-100.0);
  const Num log_other = maximum(round(log1p(-p.a)), floor);
  const Num log_this = maximum(round(log(p.a)), floor);
  const Num loss = round(round(p.b - 1.0) * log_other) - round(p.b * log_this);
  // Eager reports an error for inputs that are no probabilities: so does a divisor that is zero.
  const auto is_probability = [](const Num& x) { return (x >= 0.0) & (x <= 1.0); };
  const Num valid = (is_probability(p.a) & is_probability(p.b)).cast(c10::ScalarType::Int);
  const Num checked = valid.apply(Op::kDivisor) == 1;
  Num each = round(select(checked, loss, 0.0));
  if (call.has("weight")) {
    const Num weight = call.tensor("weight");
    if (weight.type() != p.type) call.unsupported("a weight of another dtype");
    each = each * weight.cast(each.type());
    if (!same_sizes(call, each.tensor().dims, dims)) call.unsupported("a weight of more elements");
  }
  return reduced(call, each, p.type);
}

Tensors lower_bce_with_logits(const Call& call) {
  const Pair p = read_pair(call);
  const auto round = [&](const Num& x) { return x.rounded(p.type); };
  const auto other = [&](const char* argument) {
    const Num value = call.tensor(argument);
    if (value.type() != p.type) call.unsupported(std::string(argument) + " of another dtype");
    return value.cast(p.a.type());
  };
  Num log_sigmoid = round(at_most(p.a, p.a.number(0.0)) - log1p(exp(-abs(p.a))));
  // Eager computes in place: nothing may broadcast.
  const Dims dims = p.a.tensor().dims;
  if (!same_sizes(call, p.b.tensor().dims, dims)) call.unsupported("a target of other sizes");
  if (call.has("pos_weight")) {
    const Num factor = round(round(round(other("pos_weight") - 1.0) * p.b) + 1.0);
    log_sigmoid = round(log_sigmoid * factor);
  }
  Num loss = round(round(round(1.0 - p.b) * p.a) - log_sigmoid);
  if (call.has("weight")) loss = round(loss * other("weight"));
  if (!same_sizes(call, loss.tensor().dims, dims)) call.unsupported("a weight of more elements");
  return reduced(call, loss, p.type);
}

}  // namespace fx::loops
