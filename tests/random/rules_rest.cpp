// Tensors from nothing and from attributes, operators that do nothing, operators that write.

#include <torch/nn/modules/linear.h>

#include "tests/random/maker.h"

namespace fx::fuzz {
namespace {

using at::Tensor;

// --- factories -----------------------------------------------------------------------------------

bool filled(Maker& m) {
  const Shape shape = m.pick_shape(3);
  const at::ScalarType dtype = m.pick_dtype();
  const at::TensorOptions options = at::TensorOptions().dtype(dtype);
  switch (m.choices.below(3)) {
    case 0:
      m.call({"aten::zeros", "torch.zeros"}, {ints(shape)}, {{"dtype", dtype}},
             [shape, options] { return at::zeros(shape, options); });
      break;
    case 1:
      m.call({"aten::ones", "torch.ones"}, {ints(shape)}, {{"dtype", dtype}},
             [shape, options] { return at::ones(shape, options); });
      break;
    default:
      m.call({"aten::full", "torch.full"}, {ints(shape), 1}, {{"dtype", dtype}},
             [shape, options] { return at::full(shape, 1, options); });
  }
  return true;
}

bool filled_like(Maker& m) {
  const auto x = m.pick();
  if (!x) return false;
  if (m.choices.chance(50))
    m.call({"aten::zeros_like", "torch.zeros_like"}, {*x},
           [t = x->tensor] { return at::zeros_like(t); });
  else
    m.call({"aten::full_like", "torch.full_like"}, {*x, 1},
           [t = x->tensor] { return at::full_like(t, 1); });
  return true;
}

bool range(Maker& m) {
  const std::int64_t end = m.choices.between(0, 9);
  m.call({"aten::arange", "torch.arange"}, {end}, [end] { return at::arange(end); });
  return true;
}

bool new_attribute(Maker& m) {
  const auto kind =
      m.choices.pick({Maker::Kind::kParameter, Maker::Kind::kBuffer, Maker::Kind::kConstant});
  const at::ScalarType dtype = m.choices.chance(50) ? at::kFloat : m.pick_dtype();
  const Tensor tensor = m.values(dtype, m.pick_shape(3));
  m.get_attr(m.add_attribute(kind, tensor), tensor);
  return true;
}

// The same attribute again, also weights of modules.
bool old_attribute(Maker& m) {
  if (m.attributes().empty()) return false;
  const auto [path, tensor] = m.choices.pick(m.attributes());
  m.get_attr(path, tensor);
  return true;
}

// An attribute in the memory of another one, which must hold what it holds before the run.
bool shared_attribute(Maker& m) {
  if (m.attributes().empty() || m.has_written()) return false;
  const Tensor tensor = m.choices.pick(m.attributes()).second.detach();
  const Tensor view = tensor.dim() >= 2   ? tensor.transpose(0, 1)
                      : tensor.dim() == 1 ? tensor.slice(0, 0, INT64_MAX, 2)
                                          : tensor.unsqueeze(0);
  m.get_attr(m.add_attribute(Maker::Kind::kBuffer, view), view);
  return true;
}

bool drawn(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float(); });
  if (!x || !m.drawing()) return false;
  m.note_draw();
  const Tensor t = x->tensor;
  switch (m.choices.below(3)) {
    case 0:
      m.call({"aten::rand_like", "torch.rand_like"}, {*x}, [t] { return at::rand_like(t); });
      break;
    case 1:
      m.call({"aten::bernoulli.p"}, {*x, 0.5}, [t] { return at::bernoulli(t, 0.5); });
      break;
    default:
      m.note_active_dropout();
      m.call({"aten::dropout", "torch.dropout"}, {*x, 0.5, true},
             [t] { return at::dropout(t, 0.5, true); });
  }
  return true;
}

// --- what returns its operand as it is -----------------------------------------------------------

bool neutral_number(Maker& m) {
  const auto x = m.pick([](const Item& item) { return !item.is_bool(); });
  if (!x) return false;
  const Tensor t = x->tensor;
  switch (m.choices.below(4)) {
    case 0:
      m.call({"aten::mul.Scalar", "torch.mul", "operator.mul"}, {*x, 1},
             [t] { return at::mul(t, 1); });
      break;
    case 1:
      m.call({"aten::sub.Scalar", "torch.sub", "operator.sub"}, {*x, 0},
             [t] { return at::sub(t, 0); });
      break;
    case 2:
      m.call({"aten::add.Scalar", "torch.add", "operator.add"}, {*x, 0},
             [t] { return at::add(t, 0); });
      break;
    default:
      m.call({"aten::div.Scalar", "torch.div", "operator.truediv"}, {*x, 1},
             [t] { return at::div(t, 1); });
  }
  return true;
}

bool same_view(Maker& m) {
  const auto x = m.pick({}, /*inexact=*/true);
  if (!x) return false;
  const Tensor t = x->tensor;
  switch (m.choices.below(5)) {
    case 0:
      m.call({"aten::alias"}, {*x}, [t] { return at::alias(t); });
      break;
    case 1:
      m.call({"aten::detach", ".detach"}, {*x}, [t] { return t.detach(); });
      break;
    case 2: {
      const Shape shape = t.sizes().vec();
      m.call({"aten::expand", ".expand"}, {*x, ints(shape)},
             [t, shape] { return t.expand(shape); });
      break;
    }
    case 3:
      if (x->dim() < 1) return false;
      m.call({"aten::slice.Tensor"}, {*x, 0, 0, INT64_MAX}, [t] { return t.slice(0); });
      break;
    default: {
      Shape dims;
      for (std::int64_t d = 0; d < x->dim(); ++d) dims.push_back(d);
      m.call({"aten::permute", ".permute"}, {*x, ints(dims)},
             [t, dims] { return t.permute(dims); });
    }
  }
  return true;
}

bool same_dtype(Maker& m) {
  const auto x = m.pick({}, /*inexact=*/true);
  if (!x) return false;
  m.call({".to", "aten::to.dtype"}, {*x, x->dtype()}, [t = x->tensor] { return t; });
  return true;
}

bool idle_dropout(Maker& m) {
  const auto x = m.pick([](const Item& item) { return item.is_float(); }, /*inexact=*/true);
  if (!x) return false;
  const bool by_p = m.choices.chance(20) && !m.is_inexact(*x->node) && !m.drawing();
  m.call({"aten::dropout", "torch.dropout"}, {*x, by_p ? 0.0 : 0.5, false},
         [t = x->tensor, by_p] { return at::dropout(t, by_p ? 0.0 : 0.5, false); });
  return true;
}

bool identity_module(Maker& m) {
  const auto x = m.pick({}, /*inexact=*/true);
  if (!x) return false;
  auto identity = std::make_shared<torch::nn::IdentityImpl>();
  m.call_module(m.add_made_module(identity, at::kFloat), *x,
                [identity, t = x->tensor] { return identity->forward(t); });
  return true;
}

// --- in place ------------------------------------------------------------------------------------

std::optional<Item> pick_target(Maker& m, const Wanted& wanted = {}) {
  return m.pick([&](const Item& item) { return m.writable(item) && (!wanted || wanted(item)); });
}

// Whether values of `from` may be written to memory of `to`.
bool can_take(const Item& to, const Item& from) {
  return at::canCast(at::result_type(to.tensor, from.tensor), to.dtype());
}

// An operand that fits the target, in memory of its own: LibTorch refuses operands that overlap in
// part with what is written.
std::optional<Item> pick_operand(Maker& m, const Item& target) {
  const auto x = m.pick([&](const Item& item) {
    const auto shape = broadcast(target.tensor.sizes(), item.tensor.sizes());
    return shape && at::IntArrayRef(*shape) == target.tensor.sizes() && can_take(target, item);
  });
  if (!x) return std::nullopt;
  return m.call({"aten::clone", ".clone"}, {*x}, [t = x->tensor] { return t.clone(); });
}

bool is_number(const Item& item) { return !item.is_bool(); }

bool write_number(Maker& m) {
  const auto x = pick_target(m, is_number);
  if (!x) return false;
  m.note_write();
  Tensor t = x->tensor;
  switch (m.choices.below(5)) {
    case 0:
      m.call({"aten::add_.Scalar", ".add_", "operator.iadd"}, {*x, 1},
             [t]() mutable { return t.add_(1); });
      break;
    case 1:
      m.call({"aten::mul_.Scalar", ".mul_", "operator.imul"}, {*x, 2},
             [t]() mutable { return t.mul_(2); });
      break;
    case 2:
      m.call({"aten::fill_.Scalar", ".fill_"}, {*x, 1}, [t]() mutable { return t.fill_(1); });
      break;
    case 3:
      m.call({"aten::zero_", ".zero_"}, {*x}, [t]() mutable { return t.zero_(); });
      break;
    default:
      m.call({"aten::relu_", ".relu_", "torch.relu_"}, {*x}, [t]() mutable { return t.relu_(); });
  }
  return true;
}

bool write_function(Maker& m) {
  const auto x = pick_target(m, [](const Item& item) { return item.is_float(); });
  if (!x) return false;
  m.note_write();
  Tensor t = x->tensor;
  if (m.choices.chance(50))
    m.call({"aten::cos_", ".cos_"}, {*x}, [t]() mutable { return t.cos_(); });
  else
    m.call({"aten::sigmoid_", ".sigmoid_"}, {*x}, [t]() mutable { return t.sigmoid_(); });
  return true;
}

bool write_tensor(Maker& m) {
  const auto x = pick_target(m);
  if (!x) return false;
  const auto y = pick_operand(m, *x);
  if (!y) return false;
  m.note_write();
  Tensor t = x->tensor;
  const Tensor from = y->tensor;
  switch (m.choices.below(3)) {
    case 0:
      m.call({"aten::copy_", ".copy_"}, {*x, *y}, [t, from]() mutable { return t.copy_(from); });
      break;
    case 1:
      m.call({"aten::mul_.Tensor", ".mul_", "operator.imul"}, {*x, *y},
             [t, from]() mutable { return t.mul_(from); });
      break;
    default:
      m.call({"aten::add_.Tensor", ".add_", "operator.iadd"}, {*x, *y},
             [t, from]() mutable { return t.add_(from); });
  }
  return true;
}

// x[0:1] = y, and what the base holds is read later on.
bool set_item(Maker& m) {
  const auto x =
      pick_target(m, [](const Item& item) { return item.dim() >= 1 && is_number(item); });
  if (!x) return false;
  m.note_write();
  Tensor t = x->tensor;
  m.call({"aten::fill_.Scalar", ".fill_"},
         {m.call({"aten::slice.Tensor"}, {*x, 0, 0, 1}, [t] { return t.slice(0, 0, 1); }), 3},
         [t]() mutable { return t.slice(0, 0, 1).fill_(3); });
  return true;
}

// torch.add(x, y, out=z)
bool write_out(Maker& m) {
  const auto z = pick_target(m, is_number);
  if (!z) return false;
  const auto y = pick_operand(m, *z);
  if (!y || y->tensor.sizes() != z->tensor.sizes()) return false;
  m.note_write();
  Tensor out = z->tensor;
  m.call({"aten::add.out", "torch.add"}, {*y, *y}, {{"out", *z}},
         [out, t = y->tensor]() mutable { return at::add_out(out, t, t); });
  return true;
}

}  // namespace

std::span<const Rule> factory_rules() {
  static constexpr Rule kRules[] = {
      {"filled", 3, filled},
      {"filled_like", 2, filled_like},
      {"range", 1, range},
      {"new_attribute", 5, new_attribute},
      {"old_attribute", 3, old_attribute},
      {"shared_attribute", 2, shared_attribute},
      {"drawn", 4, drawn},
  };
  return kRules;
}

std::span<const Rule> noop_rules() {
  static constexpr Rule kRules[] = {
      {"neutral_number", 3, neutral_number},   {"same_view", 4, same_view},
      {"same_dtype", 1, same_dtype},           {"idle_dropout", 2, idle_dropout},
      {"identity_module", 1, identity_module},
  };
  return kRules;
}

std::span<const Rule> write_rules() {
  static constexpr Rule kRules[] = {
      {"write_number", 4, write_number}, {"write_function", 2, write_function},
      {"write_tensor", 4, write_tensor}, {"set_item", 2, set_item},
      {"write_out", 1, write_out},
  };
  return kRules;
}

}  // namespace fx::fuzz
