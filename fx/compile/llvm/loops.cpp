#include "fx/compile/llvm/loops.h"

namespace fx::loops {

using ::llvm::BasicBlock;
using ::llvm::Value;

std::vector<Value*> carried_loop(::llvm::IRBuilder<>& ir, Value* begin, Value* end, Value* step,
                                 const char* name, const std::vector<Value*>& carried,
                                 const CarriedBody& body) {
  BasicBlock* before = ir.GetInsertBlock();
  const auto block = [&] { return BasicBlock::Create(ir.getContext(), name, before->getParent()); };
  BasicBlock* head = block();
  BasicBlock* inside = block();
  BasicBlock* after = block();
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  ::llvm::PHINode* index = ir.CreatePHI(ir.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  std::vector<Value*> phis;
  for (Value* value : carried) {
    ::llvm::PHINode* phi = ir.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    phis.push_back(phi);
  }
  ir.CreateCondBr(ir.CreateICmpSLT(index, end), inside, after);
  ir.SetInsertPoint(inside);
  const std::vector<Value*> next = body(index, phis);
  Value* next_index = ir.CreateAdd(index, step, "", /*HasNUW=*/false, /*HasNSW=*/false);
  BasicBlock* latch = ir.GetInsertBlock();
  ir.CreateBr(head);
  index->addIncoming(next_index, latch);
  for (std::size_t i = 0; i < phis.size(); ++i)
    ::llvm::cast<::llvm::PHINode>(phis[i])->addIncoming(next[i], latch);
  ir.SetInsertPoint(after);
  return phis;
}

void counted_loop(::llvm::IRBuilder<>& ir, Value* begin, Value* end, Value* step, const char* name,
                  const std::function<void(Value*)>& body) {
  carried_loop(ir, begin, end, step, name, {},
               [&](Value* index, const std::vector<Value*>&) -> std::vector<Value*> {
                 body(index);
                 return {};
               });
}

void when(::llvm::IRBuilder<>& ir, Value* condition, const char* name,
          const std::function<void()>& body) {
  ::llvm::Function* function = ir.GetInsertBlock()->getParent();
  BasicBlock* inside = BasicBlock::Create(ir.getContext(), name, function);
  BasicBlock* after = BasicBlock::Create(ir.getContext(), name, function);
  ir.CreateCondBr(condition, inside, after);
  ir.SetInsertPoint(inside);
  body();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

}  // namespace fx::loops
