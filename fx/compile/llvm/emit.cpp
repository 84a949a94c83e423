#include "fx/compile/llvm/emit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <functional>

#include "fx/base/error.h"
#include "fx/compile/llvm/lane_memory.h"
#include "fx/compile/llvm/loops.h"
#include "fx/compile/llvm/vector_ops.h"

namespace fx::loops {
namespace {

using ::llvm::BasicBlock;
using ::llvm::Value;

// How many vectors a loop works on at a time, so that their latencies overlap.
unsigned unrolling(std::size_t steps) {
  if (steps <= 12) return 4;
  return steps <= 60 ? 2 : 1;
}

// Additions in a row before a partial sum goes to a second accumulator, which bounds the error of
// long sums: n / (lanes * kBlock) + kBlock roundings instead of n / lanes.
constexpr std::int64_t kBlock = 256;

class KernelEmitter {
 public:
  KernelEmitter(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                const KernelTarget& target, const std::string& name)
      : module_(module),
        nest_(nest),
        shape_(shape),
        ir_(module.getContext()),
        ops_(ir_, module, lanes_of(nest, target), target.wide),
        memory_(ir_, ops_, target.wide),
        lanes_(ops_.lanes()) {
    auto* type = ::llvm::FunctionType::get(ir_.getInt32Ty(), {ir_.getPtrTy()}, false);
    function_ = ::llvm::Function::Create(type, ::llvm::Function::ExternalLinkage, name, module);
    function_->setDoesNotThrow();
    if (target.wide) {
      function_->addFnAttr("prefer-vector-width", "512");
      function_->addFnAttr("min-legal-vector-width", "512");
    }
  }

  void run() {
    ir_.SetInsertPoint(BasicBlock::Create(module_.getContext(), "entry", function_));
    load_arguments();
    counted_loop(ir_, ir_.getInt64(0), n_outer_, ir_.getInt64(1), "row", [&](Value* row) {
      row_pointers_ = pointers_;
      for (std::size_t k = 0; k < nest_.operands.size(); ++k)
        row_pointers_[k] = offset(pointers_[k], ir_.CreateMul(row, strides_[k].outer));
      base_ = row_pointers_;
      if (!nest_.has_reductions())
        emit_pointwise();
      else if (shape_.lanes_reduced)
        emit_row();
      else
        emit_columns();
    });
    Value* trapped = ir_.getInt32(0);
    if (trap_) trapped = ir_.CreateLoad(ir_.getInt32Ty(), trap_);
    ir_.CreateRet(trapped);
  }

 private:
  struct Strides {
    Value* lane;
    Value* outer;
    Value* reduce;
  };

  // --- arguments
  // -----------------------------------------------------------------------------------

  Value* field(Value* base, std::size_t byte_offset, ::llvm::Type* type) {
    return ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), base, byte_offset));
  }

  void load_arguments() {
    Value* args = function_->getArg(0);
    ::llvm::Type* pointer = ir_.getPtrTy();
    ::llvm::Type* i64 = ir_.getInt64Ty();
    Value* pointers = field(args, offsetof(KernelArgs, pointers), pointer);
    Value* strides = field(args, offsetof(KernelArgs, strides), pointer);
    gathered_ = field(args, offsetof(KernelArgs, gathered), pointer);
    scalars_ = field(args, offsetof(KernelArgs, scalars), pointer);
    extents_ = field(args, offsetof(KernelArgs, extents), pointer);
    Value* scratch = field(args, offsetof(KernelArgs, scratch), pointer);
    n_lane_ = field(args, offsetof(KernelArgs, n_lane), i64);
    n_outer_ = field(args, offsetof(KernelArgs, n_outer), i64);
    n_reduce_ = field(args, offsetof(KernelArgs, n_reduce), i64);
    for (std::size_t k = 0; k < nest_.operands.size(); ++k) {
      // An index is a number in the place of a pointer.
      pointers_.push_back(
          field(pointers, k * sizeof(char*), nest_.operands[k].is_index() ? i64 : pointer));
      const std::size_t at = k * sizeof(OperandStrides);
      strides_.push_back({field(strides, at + offsetof(OperandStrides, lane), i64),
                          field(strides, at + offsetof(OperandStrides, outer), i64),
                          field(strides, at + offsetof(OperandStrides, reduce), i64)});
    }
    for (std::size_t k = 0; k < nest_.scratch.size(); ++k)
      scratch_.push_back(field(scratch, k * sizeof(char*), pointer));
    for (const NestValue& value : nest_.values)
      if ((value.op == Op::kDivisor || value.op == Op::kBounded) && !trap_) {
        trap_ = ir_.CreateAlloca(ir_.getInt32Ty());
        ir_.CreateStore(ir_.getInt32(0), trap_);
      }
    memory_.make_safe_memory();
    values_.resize(nest_.values.size());
    find_uniform();
  }

  Value* offset(Value* pointer, Value* bytes) { return memory_.offset(pointer, bytes); }

  LaneMemory::Address address(std::size_t operand) {
    return {nest_.operands[operand].type, base_[operand], shape_.lane_strides[operand],
            strides_[operand].lane};
  }

  // --- steps
  // ---------------------------------------------------------------------------------------

  Value* value(ValueId id) const {
    Value* found = values_[static_cast<std::size_t>(id)];
    FX_ASSERT(found, "a value is used before it is computed");
    return found;
  }

  LaneStride lane_stride(int operand) const {
    return shape_.lane_strides[static_cast<std::size_t>(operand)];
  }

  // Notes that the call has no result if `condition` holds in a lane.
  void trap(Value* condition, Value* mask) {
    Value* active = mask ? ir_.CreateAnd(condition, mask) : condition;
    Value* any = ir_.CreateZExt(ir_.CreateOrReduce(active), ir_.getInt32Ty());
    ir_.CreateStore(ir_.CreateOr(ir_.CreateLoad(ir_.getInt32Ty(), trap_), any), trap_);
  }

  Value* load(const NestValue& v, Value* mask) {
    const auto at = static_cast<std::size_t>(v.index);
    LaneMemory::Selection selection{.mask = mask};
    if (v.args[0] >= 0) selection.guard = value(v.args[0]);
    for (std::size_t i = 0; i < nest_.operands[at].gathered.size(); ++i) {
      const ValueId index = v.args[1 + i];
      selection.gathered_uniform &= uniform_[static_cast<std::size_t>(index)];
      const std::size_t place = (at * kMaxGathered + i) * sizeof(std::int64_t);
      selection.gathered.emplace_back(value(index), field(gathered_, place, ir_.getInt64Ty()));
    }
    return memory_.load(address(at), selection);
  }

  void compute(ValueId id, Value* mask) {
    const NestValue& v = nest_.values[static_cast<std::size_t>(id)];
    Value*& result = values_[static_cast<std::size_t>(id)];
    switch (v.op) {
      case Op::kConstant:
        result = ops_.constant(v.type, v.number);
        return;
      case Op::kScalar:
      case Op::kExtent: {
        ::llvm::Type* type =
            v.type == c10::ScalarType::Double ? ir_.getDoubleTy() : ir_.getInt64Ty();
        Value* number =
            ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(
                                     ir_.getInt64Ty(), v.op == Op::kScalar ? scalars_ : extents_,
                                     static_cast<std::uint64_t>(v.index)));
        if (v.type == c10::ScalarType::Bool) number = ir_.CreateICmpNE(number, ir_.getInt64(0));
        result = ops_.splat(number);
        return;
      }
      case Op::kLoad:
        result = load(v, mask);
        return;
      case Op::kIndex: {
        const auto at = static_cast<std::size_t>(v.index);
        result = ops_.splat(base_[at]);
        if (lane_stride(v.index) == LaneStride::kZero) return;
        Value* lanes = memory_.lane_ids();
        if (lane_stride(v.index) == LaneStride::kAny)
          lanes = ir_.CreateMul(lanes, ops_.splat(strides_[at].lane));
        result = ir_.CreateAdd(result, lanes);
        return;
      }
      case Op::kReduced:
        result = reduced_[static_cast<std::size_t>(v.index)];
        return;
      case Op::kCast:
        result = ops_.cast(value(v.args[0]), nest_.values[static_cast<std::size_t>(v.args[0])].type,
                           v.type);
        return;
      case Op::kDivisor: {
        Value* divisor = value(v.args[0]);
        Value* zero = ir_.CreateICmpEQ(divisor, ::llvm::Constant::getNullValue(divisor->getType()));
        trap(zero, mask);
        result = ir_.CreateSelect(zero, ops_.constant(v.type, 1), divisor);
        return;
      }
      case Op::kBounded: {
        Value* index = value(v.args[0]);
        Value* outside = ir_.CreateICmpUGE(index, value(v.args[1]));
        trap(outside, mask);
        result = ir_.CreateSelect(outside, ops_.constant(v.type, 0), index);
        return;
      }
      default: {
        ::llvm::SmallVector<Value*, 3> args;
        c10::ScalarType type = v.type;
        for (ValueId arg : v.args)
          if (arg >= 0) {
            args.push_back(value(arg));
            type = nest_.values[static_cast<std::size_t>(arg)].type;
          }
        result = ops_.apply(v.op, type, args);
      }
    }
  }

  LaneMemory::Address scratch_address(int slot, const std::function<Value*(int)>& scratch) {
    return {nest_.scratch[static_cast<std::size_t>(slot)], scratch(slot), LaneStride::kUnit};
  }

  // `accumulators` by position of the kReduce steps.
  void steps(const std::vector<NestStep>& list, Value* mask, std::vector<Value*>* accumulators,
             const std::function<Value*(int)>& scratch) {
    std::size_t reduction = 0;
    for (const NestStep& step : list) {
      switch (step.kind) {
        case NestStep::Kind::kCompute:
          if (!hoisted(step.index)) compute(step.index, mask);
          break;
        case NestStep::Kind::kKeep:
          memory_.store(scratch_address(step.slot, scratch), value(step.index), nullptr);
          break;
        case NestStep::Kind::kReload:
          values_[static_cast<std::size_t>(step.index)] =
              memory_.load(scratch_address(step.slot, scratch), {});
          break;
        case NestStep::Kind::kReduce: {
          const NestReduction& r = nest_.reductions[static_cast<std::size_t>(step.index)];
          Value* input = value(r.input);
          // Lanes beyond the row are no part of it; those beyond the last column are not stored.
          if (mask && shape_.lanes_reduced)
            input = ir_.CreateSelect(mask, input, ops_.identity(r.reduce, r.type));
          Value*& accumulator = (*accumulators)[reduction++];
          accumulator = ops_.combine(r.reduce, r.type, accumulator, input);
          break;
        }
        case NestStep::Kind::kStore: {
          const NestStore& s = nest_.stores[static_cast<std::size_t>(step.index)];
          memory_.store(address(static_cast<std::size_t>(s.operand)), value(s.value), mask);
          break;
        }
      }
    }
  }

  // --- without reductions
  // --------------------------------------------------------------------------

  // What does not change along the lanes.
  void find_uniform() {
    uniform_.assign(nest_.values.size(), true);
    for (std::size_t i = 0; i < nest_.values.size(); ++i) {
      const NestValue& v = nest_.values[i];
      if (v.op == Op::kLoad || v.op == Op::kIndex)
        uniform_[i] = lane_stride(v.index) == LaneStride::kZero;
      if (v.op == Op::kReduced) uniform_[i] = shape_.lanes_reduced;
      for (ValueId arg : v.args)
        if (arg >= 0 && !uniform_[static_cast<std::size_t>(arg)]) uniform_[i] = false;
    }
  }

  // Computed once a row, before the lanes.
  bool hoisted(int id) const {
    return !nest_.has_reductions() && uniform_[static_cast<std::size_t>(id)];
  }

  void emit_pointwise() {
    const std::vector<NestStep>& list = nest_.loops[0];
    std::size_t varying = 0;
    for (const NestStep& step : list)
      if (step.kind == NestStep::Kind::kCompute) {
        if (hoisted(step.index))
          compute(step.index, nullptr);
        else
          ++varying;
      }
    const unsigned unroll = unrolling(varying);
    const auto at = [&](Value* i) {
      for (std::size_t k = 0; k < base_.size(); ++k)
        base_[k] = offset(row_pointers_[k], ir_.CreateMul(i, strides_of_lane(k)));
    };
    Value* chunk = ir_.getInt64(std::int64_t{lanes_} * unroll);
    Value* main_end = ir_.CreateSub(n_lane_, ir_.CreateSRem(n_lane_, chunk));
    counted_loop(ir_, ir_.getInt64(0), main_end, chunk, "main", [&](Value* i) {
      for (unsigned u = 0; u < unroll; ++u) {
        at(ir_.CreateAdd(i, ir_.getInt64(std::int64_t{u} * lanes_)));
        steps(list, nullptr, nullptr, nullptr);
      }
    });
    counted_loop(ir_, main_end, n_lane_, ir_.getInt64(lanes_), "rest", [&](Value* i) {
      at(i);
      steps(list, memory_.mask_below(i, n_lane_), nullptr, nullptr);
    });
  }

  // The step is known for adjacent elements, which saves a multiplication.
  Value* strides_of_lane(std::size_t operand) {
    switch (shape_.lane_strides[operand]) {
      case LaneStride::kZero:
        return ir_.getInt64(0);
      case LaneStride::kUnit:
        return ir_.getInt64(
            nest_.operands[operand].is_index()
                ? 1
                : static_cast<std::int64_t>(c10::elementSize(nest_.operands[operand].type)));
      case LaneStride::kAny:
        break;
    }
    return strides_[operand].lane;
  }

  // --- with reductions
  // -----------------------------------------------------------------------------

  // Element operands of a row: those that some loop, not the code between, touches. A row operand
  // stays where the row begins.
  bool is_element(std::size_t operand) const {
    for (std::size_t axis = nest_.num_kept; axis < nest_.axes.size(); ++axis)
      if (!nest_.operands[operand].steps_of_axis[axis].empty()) return true;
    return false;
  }

  std::vector<const NestReduction*> reductions_of(std::size_t loop) const {
    std::vector<const NestReduction*> out;
    for (const NestStep& step : nest_.loops[loop])
      if (step.kind == NestStep::Kind::kReduce)
        out.push_back(&nest_.reductions[static_cast<std::size_t>(step.index)]);
    return out;
  }

  std::vector<Value*> identities(const std::vector<const NestReduction*>& reductions) const {
    std::vector<Value*> out;
    for (const NestReduction* r : reductions) out.push_back(ops_.identity(r->reduce, r->type));
    return out;
  }

  // Lanes along the reduced axis.
  void emit_row() {
    reduced_.assign(nest_.reductions.size(), nullptr);
    for (std::size_t s = 0; s < nest_.loops.size(); ++s) {
      steps(nest_.rows[s], nullptr, nullptr, nullptr);
      const auto at = [&](Value* i) {
        for (std::size_t k = 0; k < base_.size(); ++k)
          if (is_element(k))
            base_[k] = offset(line_pointers_[k], ir_.CreateMul(i, strides_of_lane(k)));
        index_ = line_index_ ? ir_.CreateAdd(i, line_index_) : i;
      };
      const auto scratch = [&](int slot) {
        const auto k = static_cast<std::size_t>(slot);
        const auto size = static_cast<std::int64_t>(c10::elementSize(nest_.scratch[k]));
        return offset(scratch_[k], ir_.CreateMul(index_, ir_.getInt64(size)));
      };
      emit_reducing_loop(
          s, n_lane_, lanes_,
          [&](Value* i, std::vector<Value*>& accumulators) {
            at(i);
            steps(nest_.loops[s], nullptr, &accumulators, scratch);
          },
          [&](Value* i, std::vector<Value*>& accumulators) {
            at(i);
            steps(nest_.loops[s], memory_.mask_below(i, n_lane_), &accumulators, scratch);
          });
      base_ = row_pointers_;
    }
    steps(nest_.rows.back(), nullptr, nullptr, nullptr);
  }

  // Lanes along a kept axis: as many rows as lanes at a time.
  void emit_columns() {
    counted_loop(ir_, ir_.getInt64(0), n_lane_, ir_.getInt64(lanes_), "columns",
                 [&](Value* column) {
                   reduced_.assign(nest_.reductions.size(), nullptr);
                   std::vector<Value*> first = row_pointers_;
                   for (std::size_t k = 0; k < first.size(); ++k)
                     first[k] = offset(row_pointers_[k], ir_.CreateMul(column, strides_of_lane(k)));
                   base_ = first;
                   Value* mask = memory_.mask_below(column, n_lane_);
                   for (std::size_t s = 0; s < nest_.loops.size(); ++s) {
                     steps(nest_.rows[s], mask, nullptr, nullptr);
                     const auto body = [&](Value* i, std::vector<Value*>& accumulators) {
                       for (std::size_t k = 0; k < base_.size(); ++k)
                         base_[k] = offset(first[k], ir_.CreateMul(i, strides_[k].reduce));
                       const auto scratch = [&](int slot) {
                         const auto k = static_cast<std::size_t>(slot);
                         const auto size =
                             static_cast<std::int64_t>(c10::elementSize(nest_.scratch[k])) * lanes_;
                         return offset(scratch_[k], ir_.CreateMul(i, ir_.getInt64(size)));
                       };
                       steps(nest_.loops[s], mask, &accumulators, scratch);
                     };
                     emit_reducing_loop(s, n_reduce_, 1, body, body);
                     base_ = first;
                   }
                   steps(nest_.rows.back(), mask, nullptr, nullptr);
                 });
  }

  using Body = std::function<void(Value*, std::vector<Value*>&)>;

  // Loop `s` over [0, n), and over the outer reduced axis if there is one: `whole` for `step`
  // elements at i, `rest` for what is left, with the accumulators of the loop's reductions. Leaves
  // the results in reduced_.
  void emit_reducing_loop(std::size_t s, Value* n, unsigned step, const Body& whole,
                          const Body& rest) {
    const std::vector<const NestReduction*> reductions = reductions_of(s);
    line_pointers_ = row_pointers_;
    std::vector<Value*> all;
    if (shape_.outer_reduced) {
      all = carried_loop(
          ir_, ir_.getInt64(0), n_reduce_, ir_.getInt64(1), "line", identities(reductions),
          [&](Value* line, const std::vector<Value*>& carried) {
            for (std::size_t k = 0; k < line_pointers_.size(); ++k)
              line_pointers_[k] = offset(row_pointers_[k], ir_.CreateMul(line, strides_[k].reduce));
            line_index_ = ir_.CreateMul(line, n_lane_);
            return combined(reductions, carried, reduce_line(s, n, step, whole, rest));
          });
      line_index_ = nullptr;
    } else {
      all = reduce_line(s, n, step, whole, rest);
    }
    std::size_t at = 0;
    for (const NestStep& nest_step : nest_.loops[s])
      if (nest_step.kind == NestStep::Kind::kReduce) {
        const NestReduction& r = nest_.reductions[static_cast<std::size_t>(nest_step.index)];
        Value* total = all[at++];
        if (shape_.lanes_reduced) total = ops_.across(r.reduce, r.type, total);
        reduced_[static_cast<std::size_t>(nest_step.index)] = total;
      }
  }

  // `a` and `b` hold values of the reductions, perhaps several times over.
  std::vector<Value*> combined(const std::vector<const NestReduction*>& reductions,
                               const std::vector<Value*>& a, const std::vector<Value*>& b) {
    std::vector<Value*> out;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const NestReduction* r = reductions[i % reductions.size()];
      out.push_back(ops_.combine(r->reduce, r->type, a[i], b[i]));
    }
    return out;
  }

  // One axis of the loop: the accumulators of its reductions.
  std::vector<Value*> reduce_line(std::size_t s, Value* n, unsigned step, const Body& whole,
                                  const Body& rest) {
    const std::vector<const NestReduction*> reductions = reductions_of(s);
    const std::size_t count = reductions.size();
    const unsigned unroll = unrolling(nest_.loops[s].size());
    const std::vector<Value*> start = identities(reductions);
    std::vector<Value*> all;
    for (unsigned u = 0; u < unroll; ++u) all.insert(all.end(), start.begin(), start.end());
    Value* chunk = ir_.getInt64(std::int64_t{step} * unroll);
    Value* main_end = ir_.CreateSub(n, ir_.CreateSRem(n, chunk));
    const auto unrolled = [&](Value* i, const std::vector<Value*>& carried) {
      std::vector<Value*> next;
      for (unsigned u = 0; u < unroll; ++u) {
        std::vector<Value*> mine(carried.begin() + static_cast<std::ptrdiff_t>(u * count),
                                 carried.begin() + static_cast<std::ptrdiff_t>((u + 1) * count));
        whole(ir_.CreateAdd(i, ir_.getInt64(std::int64_t{u} * step)), mine);
        next.insert(next.end(), mine.begin(), mine.end());
      }
      return next;
    };
    if (count == 0) {
      carried_loop(ir_, ir_.getInt64(0), main_end, chunk, "main", {}, unrolled);
    } else {
      Value* block = ir_.getInt64(std::int64_t{step} * unroll * kBlock);
      all = carried_loop(ir_, ir_.getInt64(0), main_end, block, "block", all,
                         [&](Value* begin, const std::vector<Value*>& totals) {
                           Value* end = ir_.CreateAdd(begin, block);
                           end = ir_.CreateSelect(ir_.CreateICmpSLT(end, main_end), end, main_end);
                           std::vector<Value*> partial;
                           for (std::size_t i = 0; i < totals.size(); ++i)
                             partial.push_back(start[i % count]);
                           return combined(
                               reductions, totals,
                               carried_loop(ir_, begin, end, chunk, "main", partial, unrolled));
                         });
    }
    for (unsigned width = unroll; width > 1; width /= 2) {
      const auto half = static_cast<std::ptrdiff_t>(width / 2 * count);
      all =
          combined(reductions, {all.begin(), all.begin() + half}, {all.begin() + half, all.end()});
    }
    return carried_loop(ir_, main_end, n, ir_.getInt64(step), "rest", all,
                        [&](Value* i, const std::vector<Value*>& carried) {
                          std::vector<Value*> mine = carried;
                          rest(i, mine);
                          return mine;
                        });
  }

  ::llvm::Module& module_;
  const Nest& nest_;
  const KernelShape& shape_;
  ::llvm::IRBuilder<> ir_;
  VectorOps ops_;
  LaneMemory memory_;
  unsigned lanes_;
  ::llvm::Function* function_ = nullptr;

  Value* gathered_ = nullptr;
  Value* scalars_ = nullptr;
  Value* extents_ = nullptr;
  Value* n_lane_ = nullptr;
  Value* n_outer_ = nullptr;
  Value* n_reduce_ = nullptr;
  Value* trap_ = nullptr;  // memory: kTrapped once something trapped
  Value* index_ = nullptr;
  std::vector<Value*> pointers_;       // by operand
  std::vector<Strides> strides_;       // by operand
  std::vector<Value*> scratch_;        // by scratch row
  std::vector<Value*> row_pointers_;   // by operand: where the row begins
  std::vector<Value*> line_pointers_;  // by operand: where the axis of the lanes begins
  Value* line_index_ = nullptr;        // elements of the row before it; null: none
  std::vector<Value*> base_;           // by operand: where lane 0 is now
  std::vector<Value*> values_;         // by value: the last computed
  std::vector<Value*> reduced_;        // by reduction
  std::vector<bool> uniform_;          // by value
};

bool computes_in_double(const Nest& nest) {
  for (const NestValue& v : nest.values)
    if (v.type == c10::ScalarType::Double && v.op != Op::kConstant && v.op != Op::kScalar &&
        v.op != Op::kCast)
      return true;
  return false;
}

}  // namespace

unsigned lanes_of(const Nest& nest, const KernelTarget& target) {
  const unsigned floats = target.wide ? 16 : 8;
  return computes_in_double(nest) ? floats / 2 : floats;
}

void emit_kernel(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                 const KernelTarget& target, const std::string& name) {
  KernelEmitter(module, nest, shape, target, name).run();
}

}  // namespace fx::loops
