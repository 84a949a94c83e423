#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "fx/base/error.h"
#include "fx/compile/nest.h"
#include "fx/compile/nest_schedule.h"
#include "fx/compile/unsupported.h"

namespace fx::loops {
namespace {

// For each dimension of an expression the axis that indexes it, or -1 for index 0.
using AxisMap = std::vector<int>;

class NestBuilder {
 public:
  NestBuilder(const TensorProgram& program, std::string name) : program_(program) {
    nest_.name = std::move(name);
  }

  Nest build(std::span<const Tensor> outputs) {
    choose_axes(outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Expr& expr = program_[outputs[i]];
      const AxisMap map = map_of_output(expr);
      const ValueId value = evaluate(outputs[i].id, map);
      NestOperand operand{.type = expr.type, .output = static_cast<int>(i)};
      operand.dims_of_axis.resize(nest_.axes.size());
      for (std::size_t d = 0; d < map.size(); ++d)
        if (map[d] >= 0)
          operand.dims_of_axis[static_cast<std::size_t>(map[d])].push_back(static_cast<int>(d));
      nest_.stores.push_back({.operand = static_cast<int>(nest_.operands.size()), .value = value});
      nest_.operands.push_back(std::move(operand));
    }
    return std::move(nest_);
  }

 private:
  Dims canonical(const Dims& dims) const {
    Dims out;
    for (Dim dim : dims)
      if (const Dim found = program_.shapes().find(dim); found != kOne) out.push_back(found);
    return out;
  }

  // The axes: those of the tensor that a reduction reads, kept ones first, or of the largest
  // output.
  void choose_axes(std::span<const Tensor> outputs) {
    std::set<ExprId> seen;
    ExprId reduction = -1;
    for (const Tensor& output : outputs) find_reduction(output.id, seen, reduction);
    Dims domain;
    if (reduction >= 0) {
      const Expr& reduce = program_[reduction];
      const Expr& arg = program_[reduce.args[0]];
      Dims reduced;
      for (std::size_t d = 0; d < arg.dims.size(); ++d) {
        const Dim dim = program_.shapes().find(arg.dims[d]);
        if (dim == kOne) continue;
        domain_.push_back(dim);
        is_reduced_.push_back(reduce.reduced[d]);
        (reduce.reduced[d] ? reduced : domain).push_back(dim);
      }
      nest_.num_kept = domain.size();
      domain.insert(domain.end(), reduced.begin(), reduced.end());
    } else {
      for (const Tensor& output : outputs)
        if (Dims dims = canonical(output.dims); dims.size() >= domain.size()) domain = dims;
      domain_ = domain;
      is_reduced_.resize(domain.size());
      nest_.num_kept = domain.size();
    }
    nest_.axes = domain;
    int kept = 0;
    int reduced = static_cast<int>(nest_.num_kept);
    for (bool r : is_reduced_) axis_of_domain_.push_back(r ? reduced++ : kept++);
  }

  void find_reduction(ExprId id, std::set<ExprId>& seen, ExprId& found) const {
    std::vector<ExprId> stack{id};
    while (!stack.empty()) {
      const ExprId top = stack.back();
      stack.pop_back();
      if (!seen.insert(top).second) continue;
      const Expr& expr = program_[top];
      // The last in the program sees the widest domain: those before it were broadcast to it.
      if (expr.kind == Expr::Kind::kReduce) found = std::max(found, top);
      stack.insert(stack.end(), expr.args.begin(), expr.args.end());
    }
  }

  // Dimensions other than 1 are those of the whole domain, or those of its kept axes, in order.
  AxisMap map_of_output(const Expr& expr) const {
    const Dims dims = canonical(expr.dims);
    AxisMap axes;
    if (dims == domain_) {
      axes = axis_of_domain_;
    } else {
      for (std::size_t i = 0; i < domain_.size(); ++i)
        if (!is_reduced_[i]) axes.push_back(axis_of_domain_[i]);
      bool fits = axes.size() == dims.size() && nest_.num_kept < nest_.axes.size();
      for (std::size_t i = 0; fits && i < dims.size(); ++i)
        fits = nest_.axes[static_cast<std::size_t>(axes[i])] == dims[i];
      if (!fits) throw Unsupported("results of different sizes in one kernel");
    }
    AxisMap map;
    std::size_t at = 0;
    for (Dim dim : expr.dims) map.push_back(program_.shapes().find(dim) == kOne ? -1 : axes[at++]);
    return map;
  }

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

  // The value of expression `id` where its dimensions are indexed by `map`.
  ValueId evaluate(ExprId root, const AxisMap& root_map) {
    // Depth first with an own stack: a chain of operators may be thousands deep.
    struct Task {
      ExprId id;
      AxisMap map;
      bool ready;
    };
    std::vector<Task> tasks{{root, root_map, false}};
    while (!tasks.empty()) {
      Task& task = tasks.back();
      if (memo_.contains({task.id, task.map})) {
        tasks.pop_back();
        continue;
      }
      const Expr& expr = program_[task.id];
      std::vector<AxisMap> maps;
      for (std::size_t a = 0; a < expr.args.size(); ++a)
        maps.push_back(map_of_arg(expr, a, task.map));
      if (!task.ready) {
        task.ready = true;
        for (std::size_t a = 0; a < expr.args.size(); ++a)
          tasks.push_back({expr.args[a], maps[a], false});  // invalidates `task`
        if (!expr.args.empty()) continue;
      }
      const Task done = std::move(tasks.back());
      tasks.pop_back();
      std::vector<ValueId> args;
      for (std::size_t a = 0; a < expr.args.size(); ++a)
        args.push_back(memo_.at({expr.args[a], maps[a]}));
      memo_.emplace(std::pair{done.id, done.map}, make(expr, done.map, args));
    }
    return memo_.at({root, root_map});
  }

  AxisMap map_of_arg(const Expr& expr, std::size_t a, const AxisMap& map) const {
    const Expr& arg = program_[expr.args[a]];
    AxisMap out;
    switch (expr.kind) {
      case Expr::Kind::kPointwise: {
        const std::size_t offset = map.size() - arg.dims.size();
        for (std::size_t d = 0; d < arg.dims.size(); ++d)
          out.push_back(program_.shapes().find(arg.dims[d]) == kOne ? -1 : map[offset + d]);
        return out;
      }
      case Expr::Kind::kView:
        for (std::size_t d = 0; d < expr.map.size(); ++d)
          out.push_back(expr.map[d] < 0 || program_.shapes().find(arg.dims[d]) == kOne
                            ? -1
                            : map[static_cast<std::size_t>(expr.map[d])]);
        return out;
      case Expr::Kind::kReduce: {
        // Reduced dimensions run along the reduced axes, in order; kept ones where the result is
        // read, which must be along kept axes only: one value for the row.
        std::size_t kept = 0;
        int axis = static_cast<int>(nest_.num_kept);
        for (std::size_t d = 0; d < arg.dims.size(); ++d) {
          const Dim dim = program_.shapes().find(arg.dims[d]);
          if (!expr.reduced[d]) {
            const int at = map[kept++];
            if (dim != kOne && (at < 0 || at >= static_cast<int>(nest_.num_kept)))
              throw Unsupported("a reduction over other dimensions");
            out.push_back(dim == kOne ? -1 : at);
          } else if (dim == kOne) {
            out.push_back(-1);
          } else {
            if (axis >= static_cast<int>(nest_.axes.size()) ||
                nest_.axes[static_cast<std::size_t>(axis)] != dim)
              throw Unsupported("a reduction over other dimensions");
            out.push_back(axis++);
          }
        }
        if (axis != static_cast<int>(nest_.axes.size()))
          throw Unsupported("a reduction over other dimensions");
        return out;
      }
      default:
        return out;
    }
  }

  ValueId make(const Expr& expr, const AxisMap& map, const std::vector<ValueId>& args) {
    switch (expr.kind) {
      case Expr::Kind::kInput: {
        NestOperand operand{.type = expr.type, .input = expr.index};
        operand.dims_of_axis.resize(nest_.axes.size());
        for (std::size_t d = 0; d < map.size(); ++d)
          if (map[d] >= 0)
            operand.dims_of_axis[static_cast<std::size_t>(map[d])].push_back(static_cast<int>(d));
        std::size_t at = 0;
        while (at < nest_.operands.size() &&
               (nest_.operands[at].input != operand.input ||
                nest_.operands[at].dims_of_axis != operand.dims_of_axis))
          ++at;
        if (at == nest_.operands.size()) nest_.operands.push_back(std::move(operand));
        return add({.op = Op::kLoad, .type = expr.type, .index = static_cast<int>(at)});
      }
      case Expr::Kind::kConstant:
        return add({.op = Op::kConstant, .type = expr.type, .number = expr.number});
      case Expr::Kind::kScalar:
        return add({.op = Op::kScalar, .type = expr.type, .index = expr.index});
      case Expr::Kind::kExtent: {
        const Dims factors = canonical(expr.factors);
        const auto at = std::find(nest_.extents.begin(), nest_.extents.end(), factors);
        const auto index = static_cast<int>(at - nest_.extents.begin());
        if (at == nest_.extents.end()) nest_.extents.push_back(factors);
        return add({.op = Op::kExtent, .type = expr.type, .index = index});
      }
      case Expr::Kind::kPointwise: {
        NestValue value{.op = expr.op, .type = expr.type};
        std::copy(args.begin(), args.end(), value.args.begin());
        return add(std::move(value));
      }
      case Expr::Kind::kView:
        return args[0];
      case Expr::Kind::kReduce: {
        const auto at = std::find_if(
            nest_.reductions.begin(), nest_.reductions.end(),
            [&](const NestReduction& r) { return r.reduce == expr.reduce && r.input == args[0]; });
        const auto index = static_cast<int>(at - nest_.reductions.begin());
        if (at == nest_.reductions.end())
          nest_.reductions.push_back({.reduce = expr.reduce, .input = args[0], .type = expr.type});
        return add({.op = Op::kReduced, .type = expr.type, .index = index});
      }
    }
    FX_ASSERT(false, "unknown kind of expression");
  }

  const TensorProgram& program_;
  Nest nest_;
  Dims domain_;                      // in the order of the tensors' dimensions
  std::vector<bool> is_reduced_;     // of the domain
  std::vector<int> axis_of_domain_;  // of the domain
  std::map<std::pair<ExprId, AxisMap>, ValueId> memo_;
  std::map<std::tuple<Op, c10::ScalarType, std::array<ValueId, 3>, int, bool, std::int64_t>,
           ValueId>
      table_;
};

}  // namespace

Nest build_nest(const TensorProgram& program, std::span<const Tensor> outputs, std::string name) {
  Nest nest = NestBuilder(program, std::move(name)).build(outputs);
  schedule(nest);
  return nest;
}

}  // namespace fx::loops
