#include "fx/compile/tensor_expr.h"

#include <algorithm>
#include <bit>

#include "fx/base/error.h"
#include "fx/base/hash.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

std::size_t hash_of(const Expr& e) {
  Hasher hash;
  const auto add = [&hash](auto value) { hash.add(static_cast<std::uint64_t>(value)); };
  add(e.kind);
  add(e.type);
  add(e.op);
  add(e.reduce);
  add(e.index);
  for (ExprId arg : e.args) add(arg);
  add(e.dims.size());
  for (Dim dim : e.dims) add(dim);
  for (const Affine& at : e.at) {
    add(at.offset);
    for (const Affine::Term& term : at.terms) {
      add(term.axis);
      add(term.step);
    }
  }
  for (std::uint8_t guard : e.guards) add(guard);
  for (int d : e.gathered) add(d);
  for (int n : e.parts) add(n);
  for (Dim factor : e.factors) add(factor);
  for (bool r : e.reduced) add(r);
  add(e.accumulates);
  add(e.in_order);
  if (e.number.isFloatingPoint())
    add(std::bit_cast<std::uint64_t>(e.number.toDouble()));
  else
    add(e.number.toLong());
  return static_cast<std::size_t>(hash.value());
}

bool equal(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.type == b.type && a.dims == b.dims && a.op == b.op &&
         a.reduce == b.reduce && a.args == b.args && a.reduced == b.reduced &&
         a.accumulates == b.accumulates && a.in_order == b.in_order && a.at == b.at &&
         a.guards == b.guards && a.gathered == b.gathered && a.parts == b.parts &&
         a.factors == b.factors && a.index == b.index && same_number(a.number, b.number);
}

bool takes(Op op, c10::ScalarType type) {
  const bool floating = c10::isFloatingType(type);
  const bool integral = c10::isIntegralType(type, /*includeBool=*/false);
  const bool boolean = type == c10::ScalarType::Bool;
  if (!is_loop_type(type) || c10::isReducedFloatingType(type)) return op == Op::kSelect;
  switch (op) {
    case Op::kConstant:
    case Op::kScalar:
    case Op::kExtent:
    case Op::kLoad:
    case Op::kIndex:
    case Op::kReduced:
    case Op::kScan:
    case Op::kCast:
      return false;
    case Op::kBounded:
      return type == c10::ScalarType::Long;
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kNeg:
    case Op::kAbs:
      return floating || integral;
    case Op::kDivisor:
    case Op::kTruncDiv:
    case Op::kFloorDiv:
    case Op::kTruncRem:
    case Op::kFloorRem:
    case Op::kShl:
    case Op::kShr:
      return integral;
    case Op::kBitAnd:
    case Op::kBitOr:
    case Op::kBitXor:
    case Op::kBitNot:
      return integral || boolean;
    case Op::kMaximum:
    case Op::kMinimum:
    case Op::kFmax:
    case Op::kFmin:
      return floating || integral || boolean;
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
    case Op::kSelect:
      return true;
    default:
      return floating;
  }
}

// "i0", "s1 - 1 + -1 * i0", "0".
std::string affine_text(const Affine& affine, const Shapes& shapes) {
  std::string out = affine.offset == kZero ? "" : shapes.str(affine.offset);
  for (const Affine::Term& term : affine.terms) {
    if (!out.empty()) out += " + ";
    if (term.step != kOne) out += shapes.str(term.step) + " * ";
    out += "i" + std::to_string(term.axis);
  }
  return out.empty() ? "0" : out;
}

}  // namespace

bool same_number(const c10::Scalar& a, const c10::Scalar& b) {
  if (a.type() != b.type()) return false;
  if (a.isFloatingPoint())
    return std::bit_cast<std::uint64_t>(a.toDouble()) == std::bit_cast<std::uint64_t>(b.toDouble());
  return a.isBoolean() ? a.toBool() == b.toBool() : a.toLong() == b.toLong();
}

Tensor TensorProgram::add(Expr expr) {
  for (Dim& dim : expr.dims) dim = shapes_.find(dim);
  const std::size_t hash = hash_of(expr);
  const auto [first, last] = table_.equal_range(hash);
  ExprId id = -1;
  for (auto it = first; it != last && id < 0; ++it)
    if (equal(exprs_[static_cast<std::size_t>(it->second)], expr)) id = it->second;
  if (id < 0) {
    id = static_cast<ExprId>(exprs_.size());
    exprs_.push_back(std::move(expr));
    table_.emplace(hash, id);
  }
  const Expr& e = (*this)[id];
  return {.id = id, .type = e.type, .dims = e.dims};
}

Tensor TensorProgram::input(c10::ScalarType type, std::span<const std::int64_t> sizes) {
  if (!is_loop_type(type)) throw Unsupported("dtype " + std::string(c10::toString(type)));
  Expr expr{.kind = Expr::Kind::kInput, .type = type};
  expr.index = num_inputs_++;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    expr.dims.push_back(shapes_.input(expr.index, static_cast<int>(d), sizes[d]));
  return add(std::move(expr));
}

Tensor TensorProgram::scalar(c10::ScalarType type) {
  Expr expr{.kind = Expr::Kind::kScalar, .type = type};
  expr.index = num_scalars_++;
  return add(std::move(expr));
}

Tensor TensorProgram::constant(c10::ScalarType type, const c10::Scalar& number) {
  if (!is_loop_type(type)) throw Unsupported("dtype " + std::string(c10::toString(type)));
  if (number.isComplex()) throw Unsupported("a complex number");
  Expr expr{.kind = Expr::Kind::kConstant, .type = type};
  expr.number = number;
  return add(std::move(expr));
}

Tensor TensorProgram::extent(const Tensor& tensor, std::span<const std::int64_t> dims) {
  Expr expr{.kind = Expr::Kind::kExtent, .type = c10::ScalarType::Long};
  for (std::int64_t d : dims)
    if (const Dim dim = shapes_.find(tensor.dims.at(static_cast<std::size_t>(d))); dim != kOne)
      expr.factors.push_back(dim);
  std::sort(expr.factors.begin(), expr.factors.end());
  return add(std::move(expr));
}

Tensor TensorProgram::apply(Op op, std::span<const Tensor> args) {
  FX_ASSERT(static_cast<int>(args.size()) == arity(op) && op != Op::kCast, "wrong arguments");
  Expr expr{.kind = Expr::Kind::kPointwise, .type = args.back().type, .op = op};
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool condition = op == Op::kSelect && i == 0;
    FX_ASSERT(args[i].type == (condition ? c10::ScalarType::Bool : expr.type),
              "arguments of different types");
    expr.dims = shapes_.broadcast(expr.dims, args[i].dims);
    expr.args.push_back(args[i].id);
  }
  if (!takes(op, expr.type))
    throw Unsupported(std::string(to_string(op)) + " of " + std::string(type_name(expr.type)));
  if (is_predicate(op)) expr.type = c10::ScalarType::Bool;
  return add(std::move(expr));
}

Tensor TensorProgram::cast(const Tensor& tensor, c10::ScalarType type) {
  if (tensor.type == type) return tensor;
  if (!is_loop_type(type)) throw Unsupported("dtype " + std::string(c10::toString(type)));
  return add({.kind = Expr::Kind::kPointwise,
              .type = type,
              .dims = tensor.dims,
              .op = Op::kCast,
              .args = {tensor.id}});
}

Tensor TensorProgram::reduce(Reduce reduce, const Tensor& tensor,
                             std::span<const std::int64_t> dims, bool keepdim) {
  const bool logic = reduce == Reduce::kAny || reduce == Reduce::kAll;
  FX_ASSERT(reduce != Reduce::kLogAddExp, "a reduction without its scan");
  if (logic != (tensor.type == c10::ScalarType::Bool) || c10::isReducedFloatingType(tensor.type))
    throw Unsupported(std::string(to_string(reduce)) + " of " +
                      std::string(type_name(tensor.type)));
  Expr expr{.kind = Expr::Kind::kReduce, .type = tensor.type, .reduce = reduce};
  expr.reduced.resize(tensor.dims.size());
  for (std::int64_t d : dims) expr.reduced.at(static_cast<std::size_t>(d)) = true;
  bool any = false;
  std::vector<int> map;
  Dims kept;
  Dims out;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    any |= expr.reduced[d] && tensor.dims[d] != kOne;
    if (!expr.reduced[d]) {
      map.push_back(static_cast<int>(out.size()));
      kept.push_back(tensor.dims[d]);
    }
    if (!expr.reduced[d] || keepdim) out.push_back(expr.reduced[d] ? kOne : tensor.dims[d]);
  }
  Tensor result;
  if (any) {
    expr.args = {tensor.id};
    expr.dims = kept;
    result = add(std::move(expr));
  } else {
    // Only sizes of 1 go: the values are those of the argument.
    std::vector<int> drop;
    int at = 0;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d)
      drop.push_back(expr.reduced[d] ? -1 : at++);
    result = view(tensor, kept, std::move(drop));
  }
  return out.size() == kept.size() ? result : view(result, std::move(out), std::move(map));
}

Tensor TensorProgram::scan(Reduce reduce, const Tensor& tensor, std::int64_t dim, bool in_order) {
  const auto at = static_cast<std::size_t>(dim);
  FX_ASSERT(reduce != Reduce::kAny && reduce != Reduce::kAll, "a scan of bools");
  FX_ASSERT(shapes_.find(tensor.dims.at(at)) != kOne, "a scan of one element");
  if (tensor.type == c10::ScalarType::Bool || c10::isReducedFloatingType(tensor.type) ||
      (reduce == Reduce::kLogAddExp && !c10::isFloatingType(tensor.type)))
    throw Unsupported(std::string(to_string(reduce)) + " of " +
                      std::string(type_name(tensor.type)));
  Expr expr{.kind = Expr::Kind::kScan, .type = tensor.type, .dims = tensor.dims, .reduce = reduce};
  expr.args = {tensor.id};
  expr.reduced.resize(tensor.dims.size());
  expr.reduced[at] = true;
  expr.in_order = in_order;
  return add(std::move(expr));
}

Affine substitute(Shapes& shapes, const Affine& outer, const std::vector<Affine>& inner) {
  Affine out{.offset = outer.offset};
  for (const Affine::Term& term : outer.terms) {
    const Affine& index = inner[static_cast<std::size_t>(term.axis)];
    out.offset = shapes.add(out.offset, shapes.mul(index.offset, term.step));
    for (const Affine::Term& inside : index.terms) {
      const Dim step = shapes.mul(inside.step, term.step);
      const auto at = std::lower_bound(
          out.terms.begin(), out.terms.end(), inside.axis,
          [](const Affine::Term& existing, int axis) { return existing.axis < axis; });
      if (at != out.terms.end() && at->axis == inside.axis)
        at->step = shapes.add(at->step, step);
      else
        out.terms.insert(at, {inside.axis, step});
    }
  }
  std::erase_if(out.terms, [](const Affine::Term& term) { return term.step == kZero; });
  return out;
}

Tensor TensorProgram::view(const Tensor& tensor, Dims dims, const std::vector<int>& map) {
  std::vector<Affine> at;
  for (int d : map) at.push_back(d < 0 ? Affine{} : Affine::of_axis(d));
  return view(tensor, std::move(dims), std::move(at));
}

Tensor TensorProgram::view(const Tensor& tensor, Dims dims, std::vector<Affine> at) {
  FX_ASSERT(at.size() == tensor.dims.size(), "one index for each dimension");
  const auto is_identity = [&](const Dims& base_dims) {
    bool same = dims.size() == base_dims.size();
    for (std::size_t d = 0; same && d < at.size(); ++d)
      same = shapes_.same(dims[d], base_dims[d]) &&
             (at[d] == Affine::of_axis(static_cast<int>(d)) ||
              (at[d].is_zero() && shapes_.find(dims[d]) == kOne));
    return same;
  };
  if (is_identity(tensor.dims)) return tensor;
  // A view of a view is one view.
  ExprId base = tensor.id;
  if ((*this)[base].kind == Expr::Kind::kView) {
    std::vector<Affine> joined;
    for (const Affine& inner : std::vector<Affine>((*this)[base].at))
      joined.push_back(substitute(shapes_, inner, at));
    at = std::move(joined);
    base = (*this)[base].args[0];
    const Expr& inner = (*this)[base];
    if (is_identity(inner.dims)) return {.id = base, .type = inner.type, .dims = inner.dims};
  }
  return add({.kind = Expr::Kind::kView,
              .type = tensor.type,
              .dims = std::move(dims),
              .args = {base},
              .at = std::move(at)});
}

Tensor TensorProgram::reshape(const Tensor& tensor, const Dims& dims) {
  // Neighbours are taken together until their products are equal in the example, and have to be
  // equal in every call.
  std::vector<int> parts;
  std::size_t i = 0;
  std::size_t k = 0;
  bool other = false;
  while (i < tensor.dims.size() || k < dims.size()) {
    std::size_t i_end = i;
    std::size_t k_end = k;
    Dim from = kOne;
    Dim to = kOne;
    const auto take = [this](const Dims& sizes, std::size_t& at, Dim& product) {
      product = shapes_.mul(product, sizes[at++]);
    };
    do {
      const bool from_is_behind = shapes_.example(from) < shapes_.example(to) ||
                                  (shapes_.example(from) == shapes_.example(to) && i_end == i);
      if (from_is_behind && i_end < tensor.dims.size())
        take(tensor.dims, i_end, from);
      else if (k_end < dims.size())
        take(dims, k_end, to);
      else if (i_end < tensor.dims.size())
        take(tensor.dims, i_end, from);
      else
        break;
      if (shapes_.example(from) == 0 || shapes_.example(to) == 0)
        throw Unsupported("a reshape of nothing");
    } while (shapes_.example(from) != shapes_.example(to));
    shapes_.unify(from, to);
    parts.push_back(static_cast<int>(i_end - i));
    parts.push_back(static_cast<int>(k_end - k));
    other |= parts.back() != 1 || parts[parts.size() - 2] != 1;
    i = i_end;
    k = k_end;
  }
  if (!other) return tensor;
  return add({.kind = Expr::Kind::kReshape,
              .type = tensor.type,
              .dims = dims,
              .args = {tensor.id},
              .parts = std::move(parts)});
}

Tensor TensorProgram::pad(const Tensor& tensor, Dims dims, std::vector<Affine> at,
                          std::vector<std::uint8_t> guards, const Tensor& otherwise) {
  FX_ASSERT(at.size() == tensor.dims.size() && guards.size() == at.size(),
            "one index for each dimension");
  FX_ASSERT(otherwise.type == tensor.type, "arguments of different types");
  if (std::all_of(guards.begin(), guards.end(), [](std::uint8_t g) { return g == kNoGuard; }))
    return view(tensor, std::move(dims), std::move(at));
  shapes_.broadcast(dims, otherwise.dims);
  return add({.kind = Expr::Kind::kPad,
              .type = tensor.type,
              .dims = std::move(dims),
              .args = {tensor.id, otherwise.id},
              .at = std::move(at),
              .guards = std::move(guards)});
}

Tensor TensorProgram::gather(const Tensor& tensor, Dims dims, std::vector<Affine> at,
                             std::vector<int> dims_gathered, std::span<const Tensor> indices) {
  FX_ASSERT(at.size() == tensor.dims.size() && dims_gathered.size() == indices.size(),
            "one index for each dimension");
  Expr expr{.kind = Expr::Kind::kGather, .type = tensor.type, .args = {tensor.id}};
  for (const Tensor& index : indices) {
    FX_ASSERT(index.type == c10::ScalarType::Long, "indices are int64");
    shapes_.broadcast(dims, index.dims);
    expr.args.push_back(index.id);
  }
  expr.dims = std::move(dims);
  expr.at = std::move(at);
  expr.gathered = std::move(dims_gathered);
  return add(std::move(expr));
}

Tensor TensorProgram::scatter(const Tensor& into, const Tensor& values, std::vector<Affine> at,
                              std::vector<int> dims_gathered, std::span<const Tensor> indices,
                              std::optional<Reduce> reduce) {
  FX_ASSERT(at.size() == into.dims.size() && dims_gathered.size() == indices.size(),
            "one index for each dimension");
  FX_ASSERT(reduce || values.type == into.type, "values of another type");
  Expr expr{.kind = Expr::Kind::kScatter, .type = into.type, .dims = into.dims};
  expr.args = {into.id, values.id};
  for (const Tensor& index : indices) {
    FX_ASSERT(index.type == c10::ScalarType::Long, "indices are int64");
    shapes_.broadcast(values.dims, index.dims);
    expr.args.push_back(index.id);
  }
  expr.at = std::move(at);
  expr.gathered = std::move(dims_gathered);
  expr.accumulates = reduce.has_value();
  expr.reduce = reduce.value_or(Reduce::kSum);
  return add(std::move(expr));
}

Tensor TensorProgram::index(Dim size) {
  if (shapes_.find(size) == kOne)
    return view(constant(c10::ScalarType::Long, std::int64_t{0}), {kOne}, std::vector<Affine>{});
  return add({.kind = Expr::Kind::kIndex, .type = c10::ScalarType::Long, .dims = {size}});
}

Tensor TensorProgram::permute(const Tensor& tensor, std::span<const std::int64_t> dims) {
  FX_ASSERT(dims.size() == tensor.dims.size(), "one entry for each dimension");
  Dims out;
  std::vector<int> map(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    out.push_back(tensor.dims.at(static_cast<std::size_t>(dims[d])));
    map[static_cast<std::size_t>(dims[d])] = static_cast<int>(d);
  }
  return view(tensor, std::move(out), std::move(map));
}

Tensor TensorProgram::unsqueeze(const Tensor& tensor, std::int64_t dim) {
  Dims out = tensor.dims;
  out.insert(out.begin() + dim, kOne);
  std::vector<int> map;
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    map.push_back(static_cast<int>(d < dim ? d : d + 1));
  return view(tensor, std::move(out), std::move(map));
}

Tensor TensorProgram::squeeze(const Tensor& tensor, std::int64_t dim) {
  FX_ASSERT(tensor.dims.at(static_cast<std::size_t>(dim)) == kOne, "size 1 wanted");
  Dims out = tensor.dims;
  out.erase(out.begin() + dim);
  std::vector<int> map;
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    map.push_back(static_cast<int>(d < dim ? d : d == dim ? -1 : d - 1));
  return view(tensor, std::move(out), std::move(map));
}

Tensor TensorProgram::expand(const Tensor& tensor, const Dims& dims) {
  if (dims.size() < tensor.dims.size()) throw Unsupported("expand to fewer dimensions");
  const std::size_t offset = dims.size() - tensor.dims.size();
  std::vector<int> map;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
    const bool broadcast = tensor.dims[d] == kOne && dims[offset + d] != kOne;
    if (!broadcast) shapes_.unify(tensor.dims[d], dims[offset + d]);
    map.push_back(broadcast ? -1 : static_cast<int>(offset + d));
  }
  return view(tensor, dims, std::move(map));
}

std::string TensorProgram::str() const {
  std::string out;
  const auto dims_text = [this](const Dims& dims) {
    std::string text = "[";
    for (std::size_t d = 0; d < dims.size(); ++d) text += (d ? ", " : "") + shapes_.str(dims[d]);
    return text + "]";
  };
  for (std::size_t i = 0; i < exprs_.size(); ++i) {
    const Expr& e = exprs_[i];
    out +=
        "%" + std::to_string(i) + ": " + std::string(type_name(e.type)) + dims_text(e.dims) + " = ";
    switch (e.kind) {
      case Expr::Kind::kInput:
        out += "input " + std::to_string(e.index);
        break;
      case Expr::Kind::kConstant:
        out += "constant " + (e.number.isFloatingPoint() ? std::to_string(e.number.toDouble())
                                                         : std::to_string(e.number.toLong()));
        break;
      case Expr::Kind::kScalar:
        out += "scalar " + std::to_string(e.index);
        break;
      case Expr::Kind::kExtent:
        out += "extent " + dims_text(e.factors);
        break;
      case Expr::Kind::kPointwise:
        out += to_string(e.op);
        break;
      case Expr::Kind::kReduce:
        out += to_string(e.reduce);
        break;
      case Expr::Kind::kScan:
        out += "scan " + std::string(to_string(e.reduce)) + (e.in_order ? " in order" : "");
        break;
      case Expr::Kind::kView:
        out += "view";
        break;
      case Expr::Kind::kReshape:
        out += "reshape";
        break;
      case Expr::Kind::kPad:
        out += "pad";
        break;
      case Expr::Kind::kGather:
        out += "gather";
        break;
      case Expr::Kind::kIndex:
        out += "index";
        break;
      case Expr::Kind::kScatter:
        out += "scatter" + (e.accumulates ? " " + std::string(to_string(e.reduce)) : "");
        break;
    }
    for (std::size_t a = 0; a < e.args.size(); ++a)
      out += (a ? ", %" : " %") + std::to_string(e.args[a]);
    if (e.kind == Expr::Kind::kReduce || e.kind == Expr::Kind::kScan) {
      out += e.kind == Expr::Kind::kScan ? " along" : " over";
      for (std::size_t d = 0; d < e.reduced.size(); ++d)
        if (e.reduced[d]) out += " " + std::to_string(d);
    }
    if (!e.at.empty()) out += " at";
    for (std::size_t d = 0; d < e.at.size(); ++d) {
      out += (d ? ", " : " ") + affine_text(e.at[d], shapes_);
      if (!e.guards.empty() && (e.guards[d] & kGuardLow) != 0) out += " >= 0";
      if (!e.guards.empty() && (e.guards[d] & kGuardHigh) != 0) out += " < n";
      for (std::size_t i = 0; i < e.gathered.size(); ++i)
        if (e.gathered[i] == static_cast<int>(d))
          out += " + %" + std::to_string(e.args[e.args.size() - e.gathered.size() + i]);
    }
    out += "\n";
  }
  return out;
}

}  // namespace fx::loops
