#pragma once

#include <llvm/IR/IRBuilder.h>

#include <functional>
#include <string>
#include <vector>

#include "fx/compile/llvm/emit.h"
#include "fx/compile/llvm/lane_memory.h"
#include "fx/compile/llvm/loops.h"
#include "fx/compile/llvm/vector_ops.h"

namespace fx::loops {

/// How many vectors a loop works on at a time, so that latencies overlap: the shorter it is, the
/// more. Of long ones the processor sees several rounds at once by itself, and code takes its time.
unsigned unrolling(std::size_t length);

/// Writes the function of one nest: what all forms of loops share in emit.cpp, loops with
/// reductions in emit_reduce.cpp.
class KernelEmitter {
 public:
  KernelEmitter(::llvm::Module& module, const Nest& nest, const KernelShape& shape,
                const KernelTarget& target, const std::string& name);

  void run();

 private:
  using Value = ::llvm::Value;

  struct Strides {
    Value* lane;
    Value* outer;
    Value* reduce;
  };
  /// Does the elements at an index with the accumulators.
  using Body = std::function<void(Value* index, std::vector<Value*>& accumulators)>;
  /// Where the row of a scratch slot has the elements that are being done.
  using Scratch = std::function<Value*(int)>;

  // Arguments.
  Value* field(Value* base, std::size_t byte_offset, ::llvm::Type* type);
  void load_arguments();
  void find_uniform();

  // Steps.
  Value* offset(Value* pointer, Value* bytes) { return memory_.offset(pointer, bytes); }
  LaneMemory::Address address(std::size_t operand);
  LaneMemory::Address scratch_address(int slot, const Scratch& scratch);
  Value* value(ValueId id) const;
  LaneStride lane_stride(int operand) const {
    return shape_.lane_strides[static_cast<std::size_t>(operand)];
  }
  Value* strides_of_lane(std::size_t operand);
  void trap(Value* condition, Value* mask);
  void select(LaneMemory::Selection& selection, std::size_t operand, const ValueId* indices);
  Value* load(const NestValue& v, Value* mask);
  void compute(ValueId id, Value* mask);
  void begin_scans(std::size_t loop);
  Value* scan_step(const NestValue& v, Value* before, Value* element);
  Value* scan(ValueId id);
  void steps(const std::vector<NestStep>& list, Value* mask, std::vector<Value*>* accumulators,
             const Scratch& scratch);
  bool hoisted(int id) const;
  /// Of a loop, about in instructions.
  std::size_t length_of(const std::vector<NestStep>& list) const;

  // Loops.
  void emit_pointwise();
  void emit_row();
  void emit_columns();

  // With reductions.
  /// Does loop `s` by `loop`, which gives what it reduces to. Of a call that does one loop alone,
  /// those before are read by `load`; behind its own it does `store`, and the rest of the row is
  /// left out: it goes on at `row_end`. Without phases (no `row_end`) just the loop.
  struct Phase {
    std::function<std::vector<Value*>()> loop;
    std::function<std::vector<Value*>()> load;
    std::function<void(const std::vector<Value*>&)> store;
  };
  std::vector<Value*> in_phase(std::size_t s, ::llvm::BasicBlock* row_end, const Phase& phase);
  ::llvm::BasicBlock* begin_phases();
  void end_phases(::llvm::BasicBlock* row_end);
  LaneMemory::Address total_address(Value* memory, std::size_t reduction, Value* column);
  struct Column;
  bool is_element(std::size_t operand) const;
  std::vector<const NestReduction*> reductions_of(std::size_t loop) const;
  std::vector<Value*> identities(const std::vector<const NestReduction*>& reductions) const;
  std::vector<Value*> combined(const std::vector<const NestReduction*>& reductions,
                               const std::vector<Value*>& a, const std::vector<Value*>& b);
  std::vector<Value*> blocked_loop(const std::vector<const NestReduction*>& reductions,
                                   Value* begin, Value* end, std::int64_t step,
                                   const std::vector<Value*>& carried,
                                   const std::vector<Value*>& start, const CarriedBody& body);
  std::vector<Value*> unrolled_loop(const std::vector<const NestReduction*>& reductions,
                                    Value* main_end, unsigned step, unsigned unroll,
                                    const std::vector<Value*>& start, const Body& body);
  Value* multiple_of(Value* n, std::int64_t chunk);
  std::vector<Value*> emit_row_loop(std::size_t s);
  std::vector<Value*> reduce_line(std::size_t s,
                                  const std::vector<const NestReduction*>& reductions);
  void emit_column_block(Value* first, unsigned width, Value* few, Value* mask);

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
  Value* trap_ = nullptr;              // memory: kTrapped once something trapped
  std::vector<Value*> pointers_;       // by operand
  std::vector<Strides> strides_;       // by operand
  std::vector<Value*> scratch_;        // by scratch row
  std::vector<Value*> row_pointers_;   // by operand: where the row begins
  std::vector<Value*> line_pointers_;  // by operand: where the axis of the lanes begins
  Value* line_index_ = nullptr;        // elements of the row before it; null: none
  std::vector<Value*> base_;           // by operand: where lane 0 is now
  std::vector<Value*> values_;         // by value: the last computed
  /// What a scan gave last, in lanes: memory, and the value itself while its block goes on.
  struct Carry {
    Value* memory = nullptr;
    ::llvm::BasicBlock* block = nullptr;
    Value* value = nullptr;
  };
  std::vector<Carry> carries_;   // by value
  std::vector<Value*> reduced_;  // by reduction
  Value* all_lanes_ = nullptr;
  bool has_phases_;
  Value* phase_ = nullptr;
  Value* totals_ = nullptr;
  Value* partials_ = nullptr;
  bool prefetches_ = false;                      // what the next row reads, while this one is read
  std::vector<bool> uniform_;                    // by value
  const std::vector<Value*>* shared_ = nullptr;  // by value: those that are uniform are there
};

}  // namespace fx::loops
