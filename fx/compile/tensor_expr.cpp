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
  for (int d : e.map) add(d);
  for (Dim factor : e.factors) add(factor);
  for (bool r : e.reduced) add(r);
  if (e.number.isFloatingPoint())
    add(std::bit_cast<std::uint64_t>(e.number.toDouble()));
  else
    add(e.number.toLong());
  return static_cast<std::size_t>(hash.value());
}

bool equal(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.type == b.type && a.dims == b.dims && a.op == b.op &&
         a.reduce == b.reduce && a.args == b.args && a.reduced == b.reduced && a.map == b.map &&
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
    case Op::kReduced:
    case Op::kCast:
      return false;
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

Tensor TensorProgram::view(const Tensor& tensor, Dims dims, std::vector<int> map) {
  FX_ASSERT(map.size() == tensor.dims.size(), "one entry for each dimension");
  bool same = dims.size() == tensor.dims.size();
  for (std::size_t d = 0; d < map.size(); ++d) {
    FX_ASSERT(map[d] < static_cast<int>(dims.size()), "no such dimension");
    same = same && map[d] == static_cast<int>(d) && shapes_.same(dims[d], tensor.dims[d]);
  }
  if (same) return tensor;
  // A view of a view is one view.
  ExprId base = tensor.id;
  if (const Expr& e = (*this)[base]; e.kind == Expr::Kind::kView) {
    std::vector<int> joined;
    for (int d : e.map) joined.push_back(d < 0 ? -1 : map[static_cast<std::size_t>(d)]);
    map = std::move(joined);
    base = e.args[0];
    const Expr& inner = (*this)[base];
    bool identity = dims.size() == inner.dims.size();
    for (std::size_t d = 0; identity && d < map.size(); ++d)
      identity = map[d] == static_cast<int>(d) && shapes_.same(dims[d], inner.dims[d]);
    if (identity) return {.id = base, .type = inner.type, .dims = inner.dims};
  }
  return add({.kind = Expr::Kind::kView,
              .type = tensor.type,
              .dims = std::move(dims),
              .args = {base},
              .map = std::move(map)});
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
      case Expr::Kind::kView:
        out += "view";
        break;
    }
    for (std::size_t a = 0; a < e.args.size(); ++a)
      out += (a ? ", %" : " %") + std::to_string(e.args[a]);
    if (e.kind == Expr::Kind::kReduce || e.kind == Expr::Kind::kView) {
      out += e.kind == Expr::Kind::kReduce ? " over" : " at";
      for (std::size_t d = 0; d < e.reduced.size(); ++d)
        if (e.reduced[d]) out += " " + std::to_string(d);
      for (int d : e.map) out += d < 0 ? " -" : " " + std::to_string(d);
    }
    out += "\n";
  }
  return out;
}

}  // namespace fx::loops
