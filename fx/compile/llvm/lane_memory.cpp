#include "fx/compile/llvm/lane_memory.h"

namespace fx::loops {
namespace {

using ::llvm::Value;

::llvm::Align align_of(c10::ScalarType type) {
  return ::llvm::Align(static_cast<std::uint64_t>(c10::elementSize(type)));
}

}  // namespace

void LaneMemory::make_safe_memory() {
  auto* type = ::llvm::ArrayType::get(ir_.getInt64Ty(), 1);
  auto* memory = ir_.CreateAlloca(type);
  ir_.CreateStore(::llvm::Constant::getNullValue(type), memory);
  safe_ = memory;
}

Value* LaneMemory::lane_ids() const {
  ::llvm::SmallVector<::llvm::Constant*, 16> ids;
  for (unsigned lane = 0; lane < ops_.lanes(); ++lane) ids.push_back(ir_.getInt64(lane));
  return ::llvm::ConstantVector::get(ids);
}

Value* LaneMemory::mask_below(Value* i, Value* n) {
  Value* left = ir_.CreateSub(n, i);
  Value* all = ir_.getInt64(ops_.lanes());
  left = ir_.CreateSelect(ir_.CreateICmpSLT(left, all), left, all);
  ::llvm::SmallVector<::llvm::Constant*, 16> ids;
  for (unsigned lane = 0; lane < ops_.lanes(); ++lane) ids.push_back(ir_.getInt32(lane));
  return ir_.CreateICmpULT(::llvm::ConstantVector::get(ids),
                           ops_.splat(ir_.CreateTrunc(left, ir_.getInt32Ty())));
}

// Not "inbounds": guarded addresses may be outside of everything.
Value* LaneMemory::offset(Value* pointer, Value* bytes) {
  return pointer->getType()->isIntegerTy() ? ir_.CreateAdd(pointer, bytes)
                                           : ir_.CreateGEP(ir_.getInt8Ty(), pointer, bytes);
}

LaneMemory::Address LaneMemory::with_uniform(const Address& address, Selection& selection) {
  Address at = address;
  if (!selection.gathered_uniform) return at;
  for (const auto& [index, step] : selection.gathered)
    at.pointer =
        offset(at.pointer, ir_.CreateMul(ir_.CreateExtractElement(index, std::uint64_t{0}), step));
  selection.gathered.clear();
  return at;
}

Value* LaneMemory::load(const Address& address, const Selection& selection) {
  Selection rest = selection;
  const Address at = with_uniform(address, rest);
  Value* active = rest.mask;
  if (rest.guard) active = active ? ir_.CreateAnd(active, rest.guard) : rest.guard;
  ::llvm::Type* scalar = ops_.memory_type(at.type);
  auto* vector = ::llvm::FixedVectorType::get(scalar, ops_.lanes());
  const ::llvm::Align align = align_of(at.type);
  Value* loaded = nullptr;
  if (!rest.gathered.empty() || at.stride == LaneStride::kAny) {
    loaded = load_scattered(at, rest, active);
  } else if (at.stride == LaneStride::kZero) {
    Value* pointer = at.pointer;
    if (rest.guard) pointer = ir_.CreateSelect(ir_.CreateOrReduce(active), pointer, safe_);
    loaded = ops_.splat(ir_.CreateAlignedLoad(scalar, pointer, align));
  } else if (active) {
    loaded = ir_.CreateMaskedLoad(vector, at.pointer, align, active,
                                  ::llvm::Constant::getNullValue(vector));
  } else {
    loaded = ir_.CreateAlignedLoad(vector, at.pointer, align);
  }
  // Values of type bool are bytes in memory.
  return at.type == c10::ScalarType::Bool
             ? ir_.CreateICmpNE(loaded, ::llvm::Constant::getNullValue(loaded->getType()))
             : loaded;
}

Value* LaneMemory::load_scattered(const Address& address, const Selection& selection,
                                  Value* active) {
  ::llvm::Type* scalar = ops_.memory_type(address.type);
  Value* result = ::llvm::PoisonValue::get(::llvm::FixedVectorType::get(scalar, ops_.lanes()));
  const bool may_be_outside = selection.guard || !selection.gathered.empty();
  if (wide_ && c10::elementSize(address.type) >= 4) {
    // One instruction; lanes that are off read what can always be read.
    const auto size = static_cast<std::int64_t>(c10::elementSize(address.type));
    Value* bytes = ::llvm::Constant::getNullValue(ops_.vector_type(c10::ScalarType::Long));
    if (address.stride == LaneStride::kAny)
      bytes = ir_.CreateMul(lane_ids(), ops_.splat(address.lane_stride));
    else if (address.stride == LaneStride::kUnit)
      bytes = ir_.CreateMul(lane_ids(), ops_.splat(ir_.getInt64(size)));
    for (const auto& [index, step] : selection.gathered)
      bytes = ir_.CreateAdd(bytes, ir_.CreateMul(index, ops_.splat(step)));
    Value* pointers = ir_.CreateGEP(ir_.getInt8Ty(), ops_.splat(address.pointer), bytes);
    if (active) pointers = ir_.CreateSelect(active, pointers, ops_.splat(safe_));
    auto* vector = ::llvm::FixedVectorType::get(scalar, ops_.lanes());
    return ir_.CreateMaskedGather(
        vector, pointers, align_of(address.type),
        ::llvm::Constant::getAllOnesValue(ops_.vector_type(c10::ScalarType::Bool)));
  }
  for (unsigned lane = 0; lane < ops_.lanes(); ++lane) {
    const auto number = std::uint64_t{lane};
    Value* bytes = ir_.getInt64(0);
    if (address.stride == LaneStride::kAny)
      bytes = ir_.CreateMul(address.lane_stride, ir_.getInt64(lane));
    else if (address.stride == LaneStride::kUnit)
      bytes = ir_.getInt64(lane * c10::elementSize(address.type));
    for (const auto& [index, step] : selection.gathered)
      bytes = ir_.CreateAdd(bytes, ir_.CreateMul(ir_.CreateExtractElement(index, number), step));
    Value* is_active = active ? ir_.CreateExtractElement(active, number) : nullptr;
    // Lanes beyond the last read the first one, which is there.
    if (is_active && !may_be_outside && lane > 0)
      bytes = ir_.CreateSelect(is_active, bytes, ir_.getInt64(0));
    Value* pointer = offset(address.pointer, bytes);
    if (is_active && may_be_outside) pointer = ir_.CreateSelect(is_active, pointer, safe_);
    result = ir_.CreateInsertElement(
        result, ir_.CreateAlignedLoad(scalar, pointer, align_of(address.type)), number);
  }
  return result;
}

void LaneMemory::store(const Address& to, Value* value, const Selection& selection) {
  Selection rest = selection;
  const Address address = with_uniform(to, rest);
  Value* mask = rest.mask;
  const ::llvm::Align align = align_of(address.type);
  if (address.type == c10::ScalarType::Bool)
    value = ir_.CreateZExt(value, ::llvm::FixedVectorType::get(ir_.getInt8Ty(), ops_.lanes()));
  if (address.stride == LaneStride::kZero && rest.gathered.empty()) {
    ir_.CreateAlignedStore(ir_.CreateExtractElement(value, std::uint64_t{0}), address.pointer,
                           align);
  } else if (address.stride == LaneStride::kUnit && rest.gathered.empty()) {
    if (mask)
      ir_.CreateMaskedStore(value, address.pointer, align, mask);
    else
      ir_.CreateAlignedStore(value, address.pointer, align);
  } else {
    Value* offsets = ::llvm::Constant::getNullValue(ops_.vector_type(c10::ScalarType::Long));
    if (address.stride == LaneStride::kAny)
      offsets = ir_.CreateMul(ops_.splat(address.lane_stride), lane_ids());
    else if (address.stride == LaneStride::kUnit)
      offsets = ir_.CreateMul(
          ops_.splat(ir_.getInt64(static_cast<std::int64_t>(c10::elementSize(address.type)))),
          lane_ids());
    for (const auto& [index, step] : rest.gathered)
      offsets = ir_.CreateAdd(offsets, ir_.CreateMul(index, ops_.splat(step)));
    Value* pointers = ir_.CreateGEP(ir_.getInt8Ty(), ops_.splat(address.pointer), offsets);
    if (!mask) mask = ::llvm::Constant::getAllOnesValue(ops_.vector_type(c10::ScalarType::Bool));
    ir_.CreateMaskedScatter(value, pointers, align, mask);
  }
}

}  // namespace fx::loops
