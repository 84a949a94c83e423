#include "fx/compile/llvm/emit.h"

#include <llvm/IR/Intrinsics.h>

#include "fx/base/error.h"
#include "fx/compile/jit.h"
#include "fx/compile/llvm/kernel_emitter.h"
#include "fx/compile/llvm/loops.h"

namespace fx::loops {

using ::llvm::BasicBlock;
using ::llvm::Value;

namespace {

constexpr std::size_t kFewSteps = 12;
constexpr std::size_t kManySteps = 60;
constexpr unsigned kInterleaved = 4;          // vectors
constexpr std::size_t kStepsOfFunction = 15;  // of an exponential; an error function has 30

}  // namespace

std::size_t KernelEmitter::length_of(const std::vector<NestStep>& list) const {
  std::size_t length = 0;
  for (const NestStep& step : list) {
    const bool computes = step.kind == NestStep::Kind::kCompute;
    if (computes && hoisted(step.index)) continue;
    if (!computes) {
      ++length;
      continue;
    }
    const NestValue& v = nest_.values[static_cast<std::size_t>(step.index)];
    const bool adds_exps =
        v.op == Op::kScan &&
        nest_.scans[static_cast<std::size_t>(v.index)].reduce == Reduce::kLogAddExp;
    // Two functions for each width of lanes and for the carry.
    length += adds_exps          ? kStepsOfFunction * (shape_.lanes_reduced ? 10 : 2)
              : v.op >= Op::kExp ? kStepsOfFunction
                                 : 1;
  }
  return length;
}

unsigned unrolling(std::size_t length) {
  if (length <= kFewSteps) return 4;
  return length <= kManySteps ? 2 : 1;
}

KernelEmitter::KernelEmitter(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                             const KernelTarget& target, const std::string& name)
    : module_(module),
      nest_(nest),
      shape_(shape),
      ir_(module.getContext()),
      ops_(ir_, module, lanes_of(nest, target), target.wide),
      memory_(ir_, ops_, target.wide),
      lanes_(ops_.lanes()),
      has_phases_(has_phases(nest, shape)) {
  auto* type = ::llvm::FunctionType::get(ir_.getInt32Ty(), {ir_.getPtrTy()}, false);
  function_ = ::llvm::Function::Create(type, ::llvm::Function::ExternalLinkage, name, module);
  function_->setDoesNotThrow();
  if (target.wide) {
    function_->addFnAttr("prefer-vector-width", "512");
    function_->addFnAttr("min-legal-vector-width", "512");
  }
}

void KernelEmitter::run() {
  ir_.SetInsertPoint(BasicBlock::Create(module_.getContext(), "entry", function_));
  load_arguments();
  counted_loop(ir_, ir_.getInt64(0), n_outer_, ir_.getInt64(1), "row", [&](Value* row) {
    row_pointers_ = pointers_;
    for (std::size_t k = 0; k < nest_.operands.size(); ++k)
      row_pointers_[k] = offset(pointers_[k], ir_.CreateMul(row, strides_[k].outer));
    base_ = row_pointers_;
    if (!nest_.has_rows())
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

Value* KernelEmitter::field(Value* base, std::size_t byte_offset, ::llvm::Type* type) {
  return ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), base, byte_offset));
}

void KernelEmitter::load_arguments() {
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
  all_lanes_ = field(args, offsetof(KernelArgs, all_lanes), i64);
  if (has_phases_) {
    phase_ = field(args, offsetof(KernelArgs, phase), i64);
    totals_ = field(args, offsetof(KernelArgs, totals), pointer);
    partials_ = field(args, offsetof(KernelArgs, partials), pointer);
  }
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
  carries_.resize(nest_.values.size());
  find_uniform();
}

LaneMemory::Address KernelEmitter::address(std::size_t operand) {
  return {nest_.operands[operand].type, base_[operand], shape_.lane_strides[operand],
          strides_[operand].lane};
}

Value* KernelEmitter::value(ValueId id) const {
  Value* found = values_[static_cast<std::size_t>(id)];
  FX_ASSERT(found, "a value is used before it is computed");
  return found;
}

// Notes that the call has no result if `condition` holds in a lane.
void KernelEmitter::trap(Value* condition, Value* mask) {
  Value* active = mask ? ir_.CreateAnd(condition, mask) : condition;
  Value* any = ir_.CreateZExt(ir_.CreateOrReduce(active), ir_.getInt32Ty());
  ir_.CreateStore(ir_.CreateOr(ir_.CreateLoad(ir_.getInt32Ty(), trap_), any), trap_);
}

// The indices of gathered dimensions.
void KernelEmitter::select(LaneMemory::Selection& selection, std::size_t operand,
                           const ValueId* indices) {
  for (std::size_t i = 0; i < nest_.operands[operand].gathered.size(); ++i) {
    selection.gathered_uniform &= uniform_[static_cast<std::size_t>(indices[i])];
    const std::size_t place = (operand * kMaxGathered + i) * sizeof(std::int64_t);
    selection.gathered.emplace_back(value(indices[i]), field(gathered_, place, ir_.getInt64Ty()));
  }
}

Value* KernelEmitter::load(const NestValue& v, Value* mask) {
  const auto at = static_cast<std::size_t>(v.index);
  LaneMemory::Selection selection{.mask = mask};
  if (prefetches_ && v.args[0] < 0 && shape_.lane_strides[at] == LaneStride::kUnit &&
      nest_.operands[at].gathered.empty()) {
    // The operands: an address, to read, into the second level of cache, data.
    Value* ahead = offset(base_[at], strides_[at].outer);
    ir_.CreateIntrinsic(::llvm::Intrinsic::prefetch, {ir_.getPtrTy()},
                        {ahead, ir_.getInt32(0), ir_.getInt32(2), ir_.getInt32(1)});
  }
  if (v.args[0] >= 0) selection.guard = value(v.args[0]);
  select(selection, at, &v.args[1]);
  return memory_.load(address(at), selection);
}

void KernelEmitter::compute(ValueId id, Value* mask) {
  const NestValue& v = nest_.values[static_cast<std::size_t>(id)];
  Value*& result = values_[static_cast<std::size_t>(id)];
  switch (v.op) {
    case Op::kConstant:
      result = ops_.constant(v.type, v.number);
      return;
    case Op::kScalar:
    case Op::kExtent: {
      ::llvm::Type* type = v.type == c10::ScalarType::Double ? ir_.getDoubleTy() : ir_.getInt64Ty();
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
    case Op::kScan:
      result = scan(id);
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

LaneMemory::Address KernelEmitter::scratch_address(int slot, const Scratch& scratch) {
  return {nest_.scratch[static_cast<std::size_t>(slot)], scratch(slot), LaneStride::kUnit};
}

// `accumulators` by position of the kReduce steps.
void KernelEmitter::steps(const std::vector<NestStep>& list, Value* mask,
                          std::vector<Value*>* accumulators, const Scratch& scratch) {
  std::size_t reduction = 0;
  for (const NestStep& step : list) {
    switch (step.kind) {
      case NestStep::Kind::kCompute:
        if (shared_ && uniform_[static_cast<std::size_t>(step.index)])
          values_[static_cast<std::size_t>(step.index)] =
              (*shared_)[static_cast<std::size_t>(step.index)];
        else if (!hoisted(step.index))
          compute(step.index, mask);
        break;
      case NestStep::Kind::kKeep:
        memory_.store(scratch_address(step.slot, scratch), value(step.index),
                      {.mask = has_phases_ ? mask : nullptr});  // another thread's follow
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
        const auto store = [&] {
          LaneMemory::Selection selection{.mask = mask};
          select(selection, static_cast<std::size_t>(s.operand), s.gathered.data());
          memory_.store(address(static_cast<std::size_t>(s.operand)), value(s.value), selection);
        };
        // Of a row in parts once: kAllPhases and their number are what no loop has.
        if (!s.element && has_phases_)
          when(ir_,
               ir_.CreateICmpUGE(phase_,
                                 ir_.getInt64(static_cast<std::int64_t>(nest_.loops.size()))),
               "store", store);
        else
          store();
        break;
      }
    }
  }
}

// What does not change along the lanes.
void KernelEmitter::find_uniform() {
  uniform_.assign(nest_.values.size(), true);
  for (std::size_t i = 0; i < nest_.values.size(); ++i) {
    const NestValue& v = nest_.values[i];
    if (v.op == Op::kLoad || v.op == Op::kIndex)
      uniform_[i] = lane_stride(v.index) == LaneStride::kZero;
    if (v.op == Op::kReduced) uniform_[i] = shape_.lanes_reduced;
    if (v.op == Op::kScan) uniform_[i] = !shape_.lanes_reduced;
    for (ValueId arg : v.args)
      if (arg >= 0 && !uniform_[static_cast<std::size_t>(arg)]) uniform_[i] = false;
  }
}

// Computed once a row, before the lanes.
bool KernelEmitter::hoisted(int id) const {
  return !nest_.has_rows() && uniform_[static_cast<std::size_t>(id)];
}

void KernelEmitter::emit_pointwise() {
  const std::vector<NestStep>& list = nest_.loops[0];
  for (const NestStep& step : list)
    if (step.kind == NestStep::Kind::kCompute && hoisted(step.index)) compute(step.index, nullptr);
  const std::size_t length = length_of(list);
  const unsigned unroll = shape_.interleaved ? kInterleaved : unrolling(length);
  prefetches_ = shape_.rows_apart;
  const auto at = [&](Value* i) {
    for (std::size_t k = 0; k < base_.size(); ++k)
      base_[k] = offset(row_pointers_[k], ir_.CreateMul(i, strides_of_lane(k)));
  };
  Value* chunk = ir_.getInt64(std::int64_t{lanes_} * unroll);
  // Beside so many steps masks cost nothing, and the code is made once instead of twice.
  const bool all_masked = length > kManySteps && !shape_.interleaved;
  Value* main_end =
      all_masked ? ir_.getInt64(0) : ir_.CreateSub(n_lane_, ir_.CreateSRem(n_lane_, chunk));
  if (!all_masked)
    counted_loop(ir_, ir_.getInt64(0), main_end, chunk, "main", [&](Value* i) {
      // What the processor sees of the code at once are then parts of all vectors.
      const std::size_t part = shape_.interleaved ? 1 : list.size();
      std::vector<std::vector<Value*>> values(unroll, values_);
      std::vector<std::vector<Value*>> bases;
      for (unsigned u = 0; u < unroll; ++u) {
        at(ir_.CreateAdd(i, ir_.getInt64(std::int64_t{u} * lanes_)));
        bases.push_back(base_);
      }
      for (std::size_t begin = 0; begin < list.size(); begin += part)
        for (unsigned u = 0; u < unroll; ++u) {
          base_ = bases[u];
          values_.swap(values[u]);
          steps({list.begin() + static_cast<std::ptrdiff_t>(begin),
                 list.begin() + static_cast<std::ptrdiff_t>(begin + part)},
                nullptr, nullptr, nullptr);
          values_.swap(values[u]);
        }
    });
  counted_loop(ir_, main_end, n_lane_, ir_.getInt64(lanes_), "rest", [&](Value* i) {
    at(i);
    steps(list, memory_.mask_below(i, n_lane_), nullptr, nullptr);
  });
}

// The step is known for adjacent elements, which saves a multiplication.
Value* KernelEmitter::strides_of_lane(std::size_t operand) {
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

namespace {

bool computes_in_double(const Nest& nest) {
  for (const NestValue& v : nest.values)
    if (v.type == c10::ScalarType::Double && v.op != Op::kConstant && v.op != Op::kScalar &&
        v.op != Op::kCast)
      return true;
  return false;
}

}  // namespace

unsigned lanes_of(const Nest& nest, const KernelTarget& target) {
  const unsigned floats = target.wide ? 16 : target.neon ? 4 : 8;
  return computes_in_double(nest) ? floats / 2 : floats;
}

void emit_kernel(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                 const KernelTarget& target, const std::string& name) {
  KernelEmitter(module, nest, shape, target, name).run();
}

}  // namespace fx::loops
