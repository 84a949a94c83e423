#include "fx/base/error.h"
#include "fx/compile/llvm/kernel_emitter.h"

/// Scans: reductions of which every element of the row gets what there is so far.
namespace fx::loops {

using ::llvm::Value;

// Before a loop: what its scans carry is that of nothing. The memory is in the function's frame,
// so that scans need not be known to the loops around them.
void KernelEmitter::begin_scans(std::size_t loop) {
  for (const NestStep& step : nest_.loops[loop]) {
    const auto id = static_cast<std::size_t>(step.index);
    if (step.kind != NestStep::Kind::kCompute || nest_.values[id].op != Op::kScan) continue;
    const NestValue& v = nest_.values[id];
    if (!carries_[id].memory) {
      ::llvm::BasicBlock& entry = function_->getEntryBlock();
      ::llvm::IRBuilder<> at_entry(&entry, entry.begin());
      carries_[id].memory = at_entry.CreateAlloca(ops_.vector_type(v.type));
    }
    const Reduce reduce = nest_.scans[static_cast<std::size_t>(v.index)].reduce;
    carries_[id].block = nullptr;
    ir_.CreateStore(ops_.identity(reduce, v.type), carries_[id].memory);
  }
}

// What there is behind `element` if there was `before`; of vectors or of single numbers. An
// extremum is the last of equal ones, and the last NaN until there is one that is NaN.
Value* KernelEmitter::scan_step(const NestValue& v, Value* before, Value* element) {
  const bool floating = c10::isFloatingType(v.type);
  switch (nest_.scans[static_cast<std::size_t>(v.index)].reduce) {
    case Reduce::kSum:
      return floating ? ir_.CreateFAdd(before, element) : ir_.CreateAdd(before, element);
    case Reduce::kProd:
      return floating ? ir_.CreateFMul(before, element) : ir_.CreateMul(before, element);
    case Reduce::kLogAddExp:
      return ops_.combine(Reduce::kLogAddExp, v.type, before, element);
    case Reduce::kMax:
    case Reduce::kMin:
      break;
    case Reduce::kAny:
    case Reduce::kAll:
      FX_ASSERT(false, "a scan of bools");
  }
  const bool max = nest_.scans[static_cast<std::size_t>(v.index)].reduce == Reduce::kMax;
  // Not less (greater) than what was there; comparisons of NaN are false, so that it stays.
  Value* behind = max ? before : element;
  Value* ahead = max ? element : before;
  if (!floating) return ir_.CreateSelect(ops_.less(v.type, ahead, behind), before, element);
  Value* takes =
      ir_.CreateOr(ir_.CreateFCmpOGE(ahead, behind), ir_.CreateFCmpUNO(element, element));
  return ir_.CreateSelect(takes, element, before);
}

Value* KernelEmitter::scan(ValueId id) {
  const NestValue& v = nest_.values[static_cast<std::size_t>(id)];
  Carry& carry = carries_[static_cast<std::size_t>(id)];
  // From one unrolled vector to the next it need not go through memory, which takes longer than an
  // addition.
  Value* carried = carry.block == ir_.GetInsertBlock()
                       ? carry.value
                       : ir_.CreateLoad(ops_.vector_type(v.type), carry.memory);
  Value* elements = value(v.args[0]);
  const auto last = std::uint64_t{lanes_ - 1};
  Value* result = nullptr;
  if (!shape_.lanes_reduced) {
    // Each lane is a row of its own.
    result = scan_step(v, carried, elements);
    carried = result;
  } else if (nest_.scans[static_cast<std::size_t>(v.index)].in_order) {
    Value* so_far = ir_.CreateExtractElement(carried, std::uint64_t{0});
    result = elements;
    for (std::uint64_t lane = 0; lane <= last; ++lane) {
      so_far = scan_step(v, so_far, ir_.CreateExtractElement(elements, lane));
      result = ir_.CreateInsertElement(result, so_far, lane);
    }
    carried = ops_.splat(so_far);
  } else {
    // Of 1, 2, 4, ... lanes (Hillis, Steele 1986), then what came before them. Only the latter
    // waits for the vector before.
    Value* nothing = ops_.identity(nest_.scans[static_cast<std::size_t>(v.index)].reduce, v.type);
    Value* inside = elements;
    for (unsigned width = 1; width < lanes_; width *= 2) {
      ::llvm::SmallVector<int, 16> from(lanes_);
      for (unsigned lane = 0; lane < lanes_; ++lane)
        from[lane] = static_cast<int>(lane < width ? lane : lanes_ + lane - width);
      inside = scan_step(v, ir_.CreateShuffleVector(nothing, inside, from), inside);
    }
    result = scan_step(v, carried, inside);
    carried = scan_step(v, carried, ops_.splat(ir_.CreateExtractElement(inside, last)));
  }
  ir_.CreateStore(carried, carry.memory);
  carry.block = ir_.GetInsertBlock();
  carry.value = carried;
  return result;
}

}  // namespace fx::loops
