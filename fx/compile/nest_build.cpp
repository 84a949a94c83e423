#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "fx/base/error.h"
#include "fx/compile/kernel_abi.h"
#include "fx/compile/nest.h"
#include "fx/compile/nest_index.h"
#include "fx/compile/nest_schedule.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

class NestBuilder {
 public:
  NestBuilder(TensorProgram& program, std::string name)
      : program_(program), shapes_(program.shapes()) {
    nest_.name = std::move(name);
  }

  Nest build(std::span<const Tensor> outputs) {
    choose_axes(outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Expr& expr = program_[outputs[i]];
      const AxisMap map = map_of_output(expr);
      const ValueId value = evaluate({outputs[i].id, map, kNone});
      NestOperand operand = operand_at(expr.type, map);
      operand.output = static_cast<int>(i);
      nest_.stores.push_back({.operand = static_cast<int>(nest_.operands.size()), .value = value});
      nest_.operands.push_back(std::move(operand));
    }
    return std::move(nest_);
  }

  Nest build_scatter(const Tensor& output) {
    const Expr scatter = program_[output];
    FX_ASSERT(scatter.kind == Expr::Kind::kScatter, "a scatter wanted");
    const Expr& values = program_[scatter.args[1]];
    nest_.scatters = true;
    const AxisMap map = choose_axes_of_scatter(scatter, values);
    // Its place: where the dimensions of the values have the indices of the axes.
    AxisMap place;
    for (const Affine& at : scatter.at) place.push_back(substitute(shapes_, at, map));
    std::vector<ValueId> gathered;
    NestOperand operand = operand_at(scatter.type, place);
    operand.output = 0;
    for (std::size_t i = 0; i < scatter.gathered.size(); ++i) {
      const ExprId id = scatter.args[2 + i];
      gathered.push_back(evaluate({id, broadcast_map(program_[id], map), kNone}));
      operand.gathered.push_back({scatter.gathered[i], kOne});
    }
    if (gathered.size() > kMaxGathered) throw Unsupported("more than two gathered dimensions");
    ValueId value = evaluate({scatter.args[1], map, kNone});
    const int index = add_operand(std::move(operand));
    if (scatter.accumulates) {
      NestValue before{.op = Op::kLoad, .type = scatter.type, .index = index};
      std::copy(gathered.begin(), gathered.end(), before.args.begin() + 1);
      const auto cast = [this](ValueId from, c10::ScalarType type) {
        return nest_.values[static_cast<std::size_t>(from)].type == type
                   ? from
                   : add(Op::kCast, type, from, kNone);
      };
      const c10::ScalarType wide = nest_.values[static_cast<std::size_t>(value)].type;
      const ValueId old = cast(add(std::move(before)), wide);
      value = cast(add(op_of(scatter.reduce), wide, old, value), scatter.type);
    }
    nest_.stores.push_back({.operand = index, .value = value, .gathered = std::move(gathered)});
    return std::move(nest_);
  }

 private:
  static constexpr ValueId kNone = -1;

  // One expression at one place: where its dimensions are indexed by `map`, which is inside of its
  // tensors only where `guard` is true.
  struct Place {
    ExprId id;
    AxisMap map;
    ValueId guard;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  Dims canonical(const Dims& dims) const {
    Dims out;
    for (Dim dim : dims)
      if (const Dim found = shapes_.find(dim); found != kOne) out.push_back(found);
    return out;
  }

  // --- axes

  // The axes: those of the tensor that a reduction reads, kept ones first, or of the largest
  // output.
  void choose_axes(std::span<const Tensor> outputs) {
    ExprId reduction = kNone;
    visit(outputs, [&](ExprId id, const Expr& expr) {
      // The last in the program sees the widest domain: those before it were broadcast to it.
      if (expr.kind == Expr::Kind::kReduce || expr.kind == Expr::Kind::kScan)
        reduction = std::max(reduction, id);
      if (expr.kind == Expr::Kind::kReshape)
        collect_factors(shapes_, expr, program_[expr.args[0]].dims, factors_);
    });
    if (reduction >= 0) {
      const Expr& reduce = program_[reduction];
      const Expr& arg = program_[reduce.args[0]];
      for (std::size_t d = 0; d < arg.dims.size(); ++d)
        if (const Dim dim = shapes_.find(arg.dims[d]); dim != kOne) {
          domain_.push_back(dim);
          is_reduced_.push_back(reduce.reduced[d]);
        }
    } else {
      for (const Tensor& output : outputs)
        if (Dims dims = canonical(output.dims); dims.size() >= domain_.size()) domain_ = dims;
      is_reduced_.resize(domain_.size());
    }
    index_of_domain_.resize(domain_.size());
    for (const bool reduced : {false, true}) {
      for (std::size_t i = 0; i < domain_.size(); ++i) {
        if (is_reduced_[i] != reduced) continue;
        const std::size_t first = nest_.axes.size();
        add_axes(domain_[i], 0);
        Dim step = kOne;
        Affine& index = index_of_domain_[i].affine;
        for (std::size_t axis = nest_.axes.size(); axis-- > first;) {
          index.terms.insert(index.terms.begin(), {static_cast<int>(axis), step});
          step = shapes_.mul(step, nest_.axes[axis]);
        }
      }
      if (!reduced) nest_.num_kept = nest_.axes.size();
    }
  }

  // The axes of a scatter: the dimensions of the values, kept those that places move along by
  // themselves, so that no two of them are the same.
  AxisMap choose_axes_of_scatter(const Expr& scatter, const Expr& values) {
    AxisMap map(values.dims.size());
    std::vector<bool> differ(values.dims.size());
    for (const Affine& at : scatter.at)
      for (const Affine::Term& term : at.terms) differ[static_cast<std::size_t>(term.axis)] = true;
    for (const bool kept : {true, false}) {
      for (std::size_t d = 0; d < map.size(); ++d) {
        const Dim dim = shapes_.find(values.dims[d]);
        if (dim == kOne || differ[d] != kept) continue;
        map[d].affine = Affine::of_axis(static_cast<int>(nest_.axes.size()));
        nest_.axes.push_back(dim);
      }
      if (kept) nest_.num_kept = nest_.axes.size();
    }
    return map;
  }

  static Op op_of(Reduce reduce) {
    switch (reduce) {
      case Reduce::kSum:
        return Op::kAdd;
      case Reduce::kProd:
        return Op::kMul;
      case Reduce::kMax:
        return Op::kMaximum;
      case Reduce::kMin:
        return Op::kMinimum;
      case Reduce::kAny:
        return Op::kBitOr;
      case Reduce::kAll:
        return Op::kBitAnd;
      case Reduce::kLogAddExp:
        break;
    }
    FX_ASSERT(false, "no operation of two numbers");
  }

  void add_axes(Dim dim, int depth) {
    const auto found = std::find_if(factors_.begin(), factors_.end(), [&](const auto& entry) {
      return shapes_.same(entry.first, dim);
    });
    if (found == factors_.end() || depth > 8) {
      nest_.axes.push_back(shapes_.find(dim));
    } else {
      for (Dim factor : found->second) add_axes(factor, depth + 1);
    }
  }

  template <typename Fn>
  void visit(std::span<const Tensor> outputs, Fn fn) const {
    std::set<ExprId> seen;
    std::vector<ExprId> stack;
    for (const Tensor& output : outputs) stack.push_back(output.id);
    while (!stack.empty()) {
      const ExprId top = stack.back();
      stack.pop_back();
      if (!seen.insert(top).second) continue;
      const Expr& expr = program_[top];
      fn(top, expr);
      stack.insert(stack.end(), expr.args.begin(), expr.args.end());
    }
  }

  // Dimensions other than 1 are those of the whole domain, or those of its kept axes, in order;
  // some may be products of neighbours.
  AxisMap map_of_output(const Expr& expr) {
    const Dims dims = canonical(expr.dims);
    std::vector<std::size_t> places;
    const auto elements = [this](const Dims& sizes) {
      std::int64_t product = 1;
      for (Dim dim : sizes) product *= shapes_.example(dim);
      return product;
    };
    const bool whole = shapes_.same(dims, domain_) ||
                       (dims.size() < domain_.size() && elements(dims) == elements(domain_));
    for (std::size_t i = 0; i < domain_.size(); ++i)
      if (whole || !is_reduced_[i]) places.push_back(i);
    bool fits = places.size() >= dims.size() && (whole || nest_.num_kept < nest_.axes.size());
    for (std::size_t i = 0; fits && places.size() == dims.size() && i < dims.size(); ++i)
      fits = shapes_.same(domain_[places[i]], dims[i]);
    if (!fits) throw Unsupported("results of different sizes in one kernel");
    AxisMap map;
    std::size_t at = 0;
    for (Dim dim : expr.dims) {
      AxisIndex& index = map.emplace_back();
      if (shapes_.find(dim) == kOne) continue;
      const std::size_t first = at;
      Dim product = kOne;
      do {
        if (at == places.size()) throw Unsupported("results of different sizes in one kernel");
        product = shapes_.mul(product, domain_[places[at++]]);
      } while (shapes_.example(product) < shapes_.example(dim));
      shapes_.unify(product, dim);
      Dim step = kOne;
      for (std::size_t i = at; i-- > first;) {
        const Affine part{.terms = {{0, step}}};
        for (const Affine::Term& term :
             substitute(shapes_, part, AxisMap{index_of_domain_[places[i]]}).affine.terms)
          index.affine.terms.push_back(term);
        step = shapes_.mul(step, domain_[places[i]]);
      }
      std::sort(index.affine.terms.begin(), index.affine.terms.end());
    }
    if (at != places.size()) throw Unsupported("results of different sizes in one kernel");
    return map;
  }

  // --- values

  ValueId add(NestValue value) {
    // Equal values are one: by all that makes them.
    const bool real = value.number.isFloatingPoint();
    const auto bits =
        real ? std::bit_cast<std::int64_t>(value.number.toDouble()) : value.number.toLong();
    const auto key = std::make_tuple(value.op, value.type, value.args, value.index, real, bits);
    const auto [at, is_new] = table_.emplace(key, static_cast<ValueId>(nest_.values.size()));
    if (is_new) nest_.values.push_back(std::move(value));
    return at->second;
  }

  ValueId add(Op op, c10::ScalarType type, ValueId a, ValueId b) {
    return add({.op = op, .type = type, .args = {a, b, kNone}});
  }

  // A number of the shapes.
  ValueId number(Dim dim) {
    dim = shapes_.find(dim);
    if (shapes_.is_constant(dim))
      return add(
          {.op = Op::kConstant, .type = c10::ScalarType::Long, .number = shapes_.example(dim)});
    return extent({dim});
  }

  ValueId extent(const Dims& factors) {
    const auto at = std::find(nest_.extents.begin(), nest_.extents.end(), factors);
    const auto index = static_cast<int>(at - nest_.extents.begin());
    if (at == nest_.extents.end()) nest_.extents.push_back(factors);
    return add({.op = Op::kExtent, .type = c10::ScalarType::Long, .index = index});
  }

  int add_operand(NestOperand operand) {
    std::size_t at = 0;
    const auto same = [&](const NestOperand& other) {
      return other.input == operand.input && other.output == operand.output &&
             other.steps_of_axis == operand.steps_of_axis && other.offset == operand.offset &&
             other.gathered == operand.gathered;
    };
    while (at < nest_.operands.size() && !same(nest_.operands[at])) ++at;
    if (at == nest_.operands.size()) nest_.operands.push_back(std::move(operand));
    return static_cast<int>(at);
  }

  // How a tensor at the place `map` moves, but for what is gathered.
  NestOperand operand_at(c10::ScalarType type, const AxisMap& map) const {
    NestOperand operand{.type = type};
    operand.steps_of_axis.resize(nest_.axes.size());
    for (std::size_t d = 0; d < map.size(); ++d) {
      const auto dim = static_cast<int>(d);
      for (const Affine::Term& term : map[d].affine.terms)
        operand.steps_of_axis[static_cast<std::size_t>(term.axis)].push_back({dim, term.step});
      if (map[d].affine.offset != kZero) operand.offset.push_back({dim, map[d].affine.offset});
    }
    return operand;
  }

  ValueId load(const Expr& input, const AxisMap& map, ValueId guard) {
    NestOperand operand = operand_at(input.type, map);
    operand.input = input.index;
    NestValue value{.op = Op::kLoad, .type = input.type, .args = {guard, kNone, kNone}};
    for (std::size_t d = 0; d < map.size(); ++d)
      for (const auto& [index, step] : map[d].values) {
        if (operand.gathered.size() == kMaxGathered)
          throw Unsupported("more than two gathered dimensions");
        operand.gathered.push_back({static_cast<int>(d), step});
        value.args[operand.gathered.size()] = index;
      }
    value.index = add_operand(std::move(operand));
    return add(std::move(value));
  }

  // The index as an int64.
  ValueId index_value(const AxisIndex& index) {
    ValueId sum = kNone;
    const auto plus = [&](ValueId value) {
      sum = sum == kNone ? value : add(Op::kAdd, c10::ScalarType::Long, sum, value);
    };
    for (const auto& [value, step] : index.values)
      plus(step == kOne ? value : add(Op::kMul, c10::ScalarType::Long, value, number(step)));
    if (!index.affine.terms.empty())
      plus(add({.op = Op::kIndex,
                .type = c10::ScalarType::Long,
                .index = add_operand(operand_at(c10::ScalarType::Long, {index}))}));
    else if (index.affine.offset != kZero || sum == kNone)
      plus(number(index.affine.offset));
    return sum;
  }

  // Whether all guarded indices of a pad lie in its argument.
  ValueId inside(const Expr& pad, const AxisMap& map) {
    const Dims& dims = program_[pad.args[0]].dims;
    ValueId all = kNone;
    const auto also = [&](ValueId value) {
      all = all == kNone ? value : add(Op::kBitAnd, c10::ScalarType::Bool, all, value);
    };
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (pad.guards[d] == kNoGuard) continue;
      const ValueId index = index_value(substitute(shapes_, pad.at[d], map));
      if ((pad.guards[d] & kGuardLow) != 0)
        also(add(Op::kGe, c10::ScalarType::Bool, index, number(kZero)));
      if ((pad.guards[d] & kGuardHigh) != 0)
        also(add(Op::kLt, c10::ScalarType::Bool, index, number(dims[d])));
    }
    return all;
  }

  // --- expressions

  ValueId evaluate(const Place& root) {
    // Depth first with an own stack: a chain of operators may be thousands deep.
    struct Task {
      Place place;
      int phase = 0;
      std::vector<Place> args = {};
      ValueId inside = kNone;  // of a pad
    };
    std::vector<Task> tasks{{root}};
    while (!tasks.empty()) {
      Task& task = tasks.back();
      if (memo_.contains(task.place)) {
        tasks.pop_back();
        continue;
      }
      const Expr& expr = program_[task.place.id];
      const bool gathers = expr.kind == Expr::Kind::kGather;
      if (task.phase == 0) {
        if (expr.kind == Expr::Kind::kPad) task.inside = inside(expr, task.place.map);
        for (std::size_t a = gathers ? 1 : 0; a < expr.args.size(); ++a)
          task.args.push_back(place_of_arg(expr, a, task.place, task.inside));
      } else if (task.phase == 1 && gathers) {
        // The place of what is gathered depends on the indices.
        std::vector<ValueId> indices;
        for (const Place& place : task.args) indices.push_back(memo_.at(place));
        task.args.insert(task.args.begin(), place_of_gathered(expr, task.place, indices));
      } else {
        const Task done = std::move(tasks.back());
        tasks.pop_back();
        std::vector<ValueId> args;
        for (const Place& place : done.args) args.push_back(memo_.at(place));
        memo_.emplace(done.place, make(expr, done.place, args, done.inside));
        continue;
      }
      ++task.phase;
      for (const Place& place : std::vector<Place>(task.args))  // pushing invalidates `task`
        if (!memo_.contains(place)) tasks.push_back({place});
    }
    return memo_.at(root);
  }

  Place place_of_arg(const Expr& expr, std::size_t a, const Place& place, ValueId inside) {
    const ExprId id = expr.args[a];
    const Expr& arg = program_[id];
    switch (expr.kind) {
      case Expr::Kind::kView:
        return {id, map_through(expr, place.map), place.guard};
      case Expr::Kind::kReshape:
        return {id, reshape_map(shapes_, nest_.axes, expr, arg.dims, place.map), place.guard};
      case Expr::Kind::kPad:
        if (a == 0)
          return {id, map_through(expr, place.map),
                  place.guard == kNone
                      ? inside
                      : add(Op::kBitAnd, c10::ScalarType::Bool, place.guard, inside)};
        break;
      case Expr::Kind::kScatter:
        throw Unsupported("a scatter in the middle of a kernel");
      case Expr::Kind::kReduce:
        if (nest_.scatters) throw Unsupported("a reduction beside a scatter");
        if (place.guard != kNone) throw Unsupported("a reduction in a part of a result");
        return {id, map_of_reduced(expr, arg, place.map), kNone};
      case Expr::Kind::kScan:
        if (nest_.scatters) throw Unsupported("a scan beside a scatter");
        if (place.guard != kNone) throw Unsupported("a scan in a part of a result");
        check_scanned(expr, place.map);
        return {id, place.map, kNone};
      default:
        break;
    }
    return {id, broadcast_map(arg, place.map), place.guard};
  }

  // Where `arg` is read that was broadcast to dimensions with the indices `to`.
  AxisMap broadcast_map(const Expr& arg, const AxisMap& to) const {
    AxisMap map;
    const std::size_t offset = to.size() - arg.dims.size();
    for (std::size_t d = 0; d < arg.dims.size(); ++d)
      map.push_back(shapes_.find(arg.dims[d]) == kOne ? AxisIndex{} : to[offset + d]);
    return map;
  }

  // Of a view, a pad or a gather.
  AxisMap map_through(const Expr& expr, const AxisMap& map) {
    AxisMap out;
    for (const Affine& at : expr.at) out.push_back(substitute(shapes_, at, map));
    return out;
  }

  Place place_of_gathered(const Expr& expr, const Place& place,
                          const std::vector<ValueId>& indices) {
    AxisMap map = map_through(expr, place.map);
    for (std::size_t i = 0; i < indices.size(); ++i)
      map[static_cast<std::size_t>(expr.gathered[i])].values.emplace_back(indices[i], kOne);
    return {expr.args[0], std::move(map), place.guard};
  }

  // Reduced dimensions run along the reduced axes, in order; kept ones where the result is read,
  // which must be along kept axes only: one value for the row.
  AxisMap map_of_reduced(const Expr& expr, const Expr& arg, const AxisMap& map) const {
    AxisMap out;
    std::size_t kept = 0;
    std::size_t next = 0;  // in the domain
    const auto skip_kept = [&] {
      while (next < domain_.size() && !is_reduced_[next]) ++next;
    };
    for (std::size_t d = 0; d < arg.dims.size(); ++d) {
      const Dim dim = shapes_.find(arg.dims[d]);
      if (!expr.reduced[d]) {
        const AxisIndex& index = map[kept++];
        bool fits = dim == kOne || (index.values.empty() && !index.affine.terms.empty());
        for (const Affine::Term& term : index.affine.terms)
          fits &= term.axis < static_cast<int>(nest_.num_kept);
        if (!fits) throw Unsupported("a reduction over other dimensions");
        out.push_back(dim == kOne ? AxisIndex{} : index);
      } else if (dim == kOne) {
        out.emplace_back();
      } else {
        skip_kept();
        if (next == domain_.size() || !shapes_.same(domain_[next], dim))
          throw Unsupported("a reduction over other dimensions");
        out.push_back(index_of_domain_[next++]);
      }
    }
    skip_kept();
    if (next != domain_.size()) throw Unsupported("a reduction over other dimensions");
    return out;
  }

  // A scan goes along the one reduced axis from its begin to its end, once for each row.
  void check_scanned(const Expr& expr, const AxisMap& map) const {
    bool fits = nest_.axes.size() == nest_.num_kept + 1;
    for (std::size_t d = 0; d < map.size(); ++d) {
      if (expr.reduced[d]) {
        fits &= map[d] == AxisIndex{Affine::of_axis(static_cast<int>(nest_.num_kept))} &&
                shapes_.same(expr.dims[d], nest_.axes.back());
      } else {
        fits &= map[d].values.empty();
        for (const Affine::Term& term : map[d].affine.terms)
          fits &= term.axis < static_cast<int>(nest_.num_kept);
      }
    }
    if (!fits) throw Unsupported("a scan along another dimension");
  }

  ValueId make(const Expr& expr, const Place& place, const std::vector<ValueId>& args,
               ValueId inside) {
    switch (expr.kind) {
      case Expr::Kind::kInput:
        return load(expr, place.map, place.guard);
      case Expr::Kind::kConstant:
        return add({.op = Op::kConstant, .type = expr.type, .number = expr.number});
      case Expr::Kind::kScalar:
        return add({.op = Op::kScalar, .type = expr.type, .index = expr.index});
      case Expr::Kind::kExtent:
        return extent(canonical(expr.factors));
      case Expr::Kind::kIndex:
        return index_value(place.map[0]);
      case Expr::Kind::kPointwise: {
        NestValue value{.op = expr.op, .type = expr.type};
        std::copy(args.begin(), args.end(), value.args.begin());
        return add(std::move(value));
      }
      case Expr::Kind::kView:
      case Expr::Kind::kReshape:
      case Expr::Kind::kGather:
        return args[0];
      case Expr::Kind::kScatter:
        break;
      case Expr::Kind::kPad:
        return add({.op = Op::kSelect, .type = expr.type, .args = {inside, args[0], args[1]}});
      case Expr::Kind::kReduce: {
        const auto at = std::find_if(
            nest_.reductions.begin(), nest_.reductions.end(),
            [&](const NestReduction& r) { return r.reduce == expr.reduce && r.input == args[0]; });
        const auto index = static_cast<int>(at - nest_.reductions.begin());
        if (at == nest_.reductions.end())
          nest_.reductions.push_back({.reduce = expr.reduce, .input = args[0], .type = expr.type});
        return add({.op = Op::kReduced, .type = expr.type, .index = index});
      }
      case Expr::Kind::kScan: {
        const NestScan scan{.reduce = expr.reduce, .in_order = expr.in_order};
        const auto at = std::find(nest_.scans.begin(), nest_.scans.end(), scan);
        const auto index = static_cast<int>(at - nest_.scans.begin());
        if (at == nest_.scans.end()) nest_.scans.push_back(scan);
        return add(
            {.op = Op::kScan, .type = expr.type, .args = {args[0], kNone, kNone}, .index = index});
      }
    }
    FX_ASSERT(false, "unknown kind of expression");
  }

  TensorProgram& program_;
  Shapes& shapes_;
  Nest nest_;
  Dims domain_;                   // in the order of the tensors' dimensions
  std::vector<bool> is_reduced_;  // of the domain
  AxisMap index_of_domain_;       // the index in each of its dimensions
  std::vector<std::pair<Dim, Dims>> factors_;
  std::map<Place, ValueId> memo_;
  std::map<std::tuple<Op, c10::ScalarType, std::array<ValueId, 3>, int, bool, std::int64_t>,
           ValueId>
      table_;
};

}  // namespace

Nest build_nest(TensorProgram& program, std::span<const Tensor> outputs, std::string name) {
  Nest nest = NestBuilder(program, std::move(name)).build(outputs);
  schedule(nest);
  return nest;
}

Nest build_scatter_nest(TensorProgram& program, const Tensor& output, std::string name) {
  Nest nest = NestBuilder(program, std::move(name)).build_scatter(output);
  schedule(nest);
  return nest;
}

}  // namespace fx::loops
