#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"

/// Normalization with parameters a channel, which is dimension 1.
namespace fx::loops {
namespace {

/// A parameter, if there, in opmath and with dimensions like those of `x` behind the batch.
std::optional<Num> channel(const Call& call, const char* argument, const Num& x) {
  if (!call.has(argument)) return std::nullopt;
  const Num value = call.tensor(argument);
  if (!is_floating(value.type()) || value.dim() != 1)
    call.unsupported(std::string(argument) + " does not fit");
  call.program().shapes().unify(value.tensor().dims[0], x.tensor().dims[1]);
  Tensor out = value.tensor();
  for (std::int64_t d = 2; d < x.dim(); ++d) out = call.program().unsqueeze(out, out.dim());
  return Num(call.program(), out).cast(opmath(x.type()));
}

Num scaled(const Num& x, const std::optional<Num>& weight, const std::optional<Num>& bias) {
  if (weight && bias) return fma(x, *weight, *bias);
  if (weight) return x * *weight;
  return bias ? x + *bias : x;
}

Num input(const Call& call, std::int64_t least) {
  const Num x = call.tensor("input");
  if (!is_floating(x.type())) call.unsupported("normalization of integers");
  if (x.dim() < least) call.unsupported("too few dimensions");
  return x;
}

/// With the running statistics.
Tensors batch_norm(const Call& call, bool statistics) {
  const Num self = input(call, 2);
  if (!call.has("running_mean") || !call.has("running_var"))
    call.unsupported("no running statistics");
  const c10::ScalarType type = self.type();
  const c10::ScalarType saved =
      parameter_type(call, type, {"weight", "bias", "running_mean", "running_var"});
  const Num x = self.cast(opmath(type));
  const std::optional<Num> weight = channel(call, "weight", x);
  const std::optional<Num> bias = channel(call, "bias", x);
  const Num inverse = 1.0 / sqrt(*channel(call, "running_var", x) + call.real("eps"));
  const Num slope = weight ? inverse * *weight : inverse;
  const Num shift = -(*channel(call, "running_mean", x) * slope);
  Tensors out = result(fma(x, slope, bias ? *bias + shift : shift), type);
  if (statistics) {
    const Dims nothing = {call.program().shapes().constant(0)};
    for (int i = 0; i < 2; ++i) out.push_back(call.number(saved, 0).expand(nothing).tensor());
  }
  return out;
}

Tensors group_norm(const Call& call, std::int64_t groups, bool statistics) {
  const Num self = input(call, 2);
  const c10::ScalarType type = self.type();
  const c10::ScalarType saved = parameter_type(call, type, {"weight", "bias"});
  Shapes& shapes = call.program().shapes();
  for (Dim dim : self.tensor().dims)
    if (shapes.example(dim) == 0) call.unsupported("group_norm of nothing");
  const Num x = self.cast(opmath(type));
  // Channels fall apart into groups and the channels of each.
  const Dims whole = x.tensor().dims;
  const Dim number = shapes.constant(groups);
  Dims apart = whole;
  apart[1] = shapes.size(shapes.floor_div(whole[1], number));
  apart.insert(apart.begin() + 1, number);
  std::vector<std::int64_t> dims = all_dims(x.dim() + 1);
  dims.erase(dims.begin(), dims.begin() + 2);
  TensorProgram& program = call.program();
  const Normalized n =
      normalize(Num(program, program.reshape(x.tensor(), apart)), dims, call.real("eps"));
  const Num value(program, program.reshape(n.value.tensor(), whole));
  Tensors out = result(scaled(value, channel(call, "weight", x), channel(call, "bias", x)), type);
  if (statistics)
    for (const Num& statistic : {n.mean, n.inverse})
      out.push_back(without_dims(statistic, dims, false).cast(saved).tensor());
  return out;
}

}  // namespace

Tensors lower_batch_norm(const Call& call) {
  if (call.flag("training", false)) call.unsupported("batch_norm in training");
  return batch_norm(call, false);
}

Tensors lower_native_batch_norm(const Call& call) {
  if (call.flag("training", false)) call.unsupported("batch_norm in training");
  return batch_norm(call, true);
}

Tensors lower_group_norm(const Call& call) {
  return group_norm(call, call.integer("num_groups"), false);
}

Tensors lower_native_group_norm(const Call& call) {
  const Num x = input(call, 2);
  Shapes& shapes = call.program().shapes();
  shapes.unify(x.tensor().dims[0], shapes.constant(call.integer("N")));
  shapes.unify(x.tensor().dims[1], shapes.constant(call.integer("C")));
  // The product of the others is an argument: they can only be what they are.
  std::int64_t product = 1;
  for (std::int64_t d = 2; d < x.dim(); ++d) {
    const Dim dim = x.tensor().dims[static_cast<std::size_t>(d)];
    product *= shapes.example(dim);
    shapes.unify(dim, shapes.constant(shapes.example(dim)));
  }
  if (product != call.integer("HxW")) call.unsupported("HxW does not fit");
  return group_norm(call, call.integer("group"), true);
}

Tensors lower_instance_norm(const Call& call) {
  if (!call.flag("use_input_stats")) {
    const c10::ScalarType type = input(call, 2).type();
    if (parameter_type(call, type, {"weight", "bias", "running_mean", "running_var"}) != type)
      call.unsupported("parameters of another dtype");
    return batch_norm(call, false);
  }
  if (call.has("running_mean") || call.has("running_var"))
    call.unsupported("instance_norm that updates statistics");
  const Num self = input(call, 2);
  parameter_type(call, self.type(), {"weight", "bias"});
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 2; d < self.dim(); ++d) dims.push_back(d);
  const Num x = self.cast(opmath(self.type()));
  const Normalized n = normalize(x, dims, call.real("eps"));
  return result(scaled(n.value, channel(call, "weight", x), channel(call, "bias", x)), self.type());
}

}  // namespace fx::loops
