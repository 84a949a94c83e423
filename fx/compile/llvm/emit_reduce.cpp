#include <algorithm>

#include "fx/compile/llvm/kernel_emitter.h"
#include "fx/compile/llvm/loops.h"

/// Loops with reductions: lanes along the reduced axis, or along a kept one.
namespace fx::loops {

using ::llvm::Value;

namespace {

// Additions in a row before a partial sum goes to a second accumulator, which bounds the error of
// long sums: n / (accumulators * kBlock) + kBlock roundings instead of n / accumulators.
constexpr std::int64_t kBlock = 256;

}  // namespace

// A column of vectors: as many rows as lanes.
struct KernelEmitter::Column {
  std::vector<Value*> values = {};   // by value
  std::vector<Value*> reduced = {};  // by reduction
  std::vector<Carry> carries = {};   // by value
};

// Element operands of a row: those that some loop, not the code between, touches. A row operand
// stays where the row begins.
bool KernelEmitter::is_element(std::size_t operand) const {
  for (std::size_t axis = nest_.num_kept; axis < nest_.axes.size(); ++axis)
    if (!nest_.operands[operand].steps_of_axis[axis].empty()) return true;
  return false;
}

std::vector<const NestReduction*> KernelEmitter::reductions_of(std::size_t loop) const {
  std::vector<const NestReduction*> out;
  for (const NestStep& step : nest_.loops[loop])
    if (step.kind == NestStep::Kind::kReduce)
      out.push_back(&nest_.reductions[static_cast<std::size_t>(step.index)]);
  return out;
}

std::vector<Value*> KernelEmitter::identities(
    const std::vector<const NestReduction*>& reductions) const {
  std::vector<Value*> out;
  for (const NestReduction* r : reductions) out.push_back(ops_.identity(r->reduce, r->type));
  return out;
}

// `a` and `b` hold values of the reductions, perhaps several times over.
std::vector<Value*> KernelEmitter::combined(const std::vector<const NestReduction*>& reductions,
                                            const std::vector<Value*>& a,
                                            const std::vector<Value*>& b) {
  std::vector<Value*> out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const NestReduction* r = reductions[i % reductions.size()];
    out.push_back(ops_.combine(r->reduce, r->type, a[i], b[i]));
  }
  return out;
}

// The largest multiple that is at most n.
Value* KernelEmitter::multiple_of(Value* n, std::int64_t chunk) {
  return chunk == 1 ? n : ir_.CreateSub(n, ir_.CreateSRem(n, ir_.getInt64(chunk)));
}

// Reduces over [0, main_end), a multiple, with `unroll` sets of accumulators beside each other that
// begin as `start`, `step` elements at a time: one set.
std::vector<Value*> KernelEmitter::unrolled_loop(
    const std::vector<const NestReduction*>& reductions, Value* main_end, unsigned step,
    unsigned unroll, const std::vector<Value*>& start, const Body& body) {
  const std::size_t count = start.size();
  std::vector<Value*> all;
  for (unsigned u = 0; u < unroll; ++u) all.insert(all.end(), start.begin(), start.end());
  all = blocked_loop(reductions, ir_.getInt64(0), main_end, std::int64_t{step} * unroll, all, all,
                     [&](Value* i, const std::vector<Value*>& carried) {
                       std::vector<Value*> next;
                       for (unsigned u = 0; u < unroll; ++u) {
                         std::vector<Value*> mine(
                             carried.begin() + static_cast<std::ptrdiff_t>(u * count),
                             carried.begin() + static_cast<std::ptrdiff_t>((u + 1) * count));
                         body(ir_.CreateAdd(i, ir_.getInt64(std::int64_t{u} * step)), mine);
                         next.insert(next.end(), mine.begin(), mine.end());
                       }
                       return next;
                     });
  for (unsigned width = unroll; width > 1; width /= 2) {
    const auto half = static_cast<std::ptrdiff_t>(width / 2 * count);
    all = combined(reductions, {all.begin(), all.begin() + half}, {all.begin() + half, all.end()});
  }
  return all;
}

// Reduces over [begin, end) in steps of `step` into what is `carried`, `start` being what nothing
// gives: `body` adds to the accumulators.
std::vector<Value*> KernelEmitter::blocked_loop(const std::vector<const NestReduction*>& reductions,
                                                Value* begin, Value* end, std::int64_t step,
                                                const std::vector<Value*>& carried,
                                                const std::vector<Value*>& start,
                                                const CarriedBody& body) {
  Value* chunk = ir_.getInt64(step);
  if (reductions.empty()) return carried_loop(ir_, begin, end, chunk, "main", {}, body);
  Value* block = ir_.getInt64(step * kBlock);
  return carried_loop(
      ir_, begin, end, block, "block", carried,
      [&](Value* first, const std::vector<Value*>& totals) {
        Value* block_end = ir_.CreateAdd(first, block);
        block_end = ir_.CreateSelect(ir_.CreateICmpSLT(block_end, end), block_end, end);
        return combined(reductions, totals,
                        carried_loop(ir_, first, block_end, chunk, "main", start, body));
      });
}

::llvm::BasicBlock* KernelEmitter::begin_phases() {
  return has_phases_ ? ::llvm::BasicBlock::Create(module_.getContext(), "phase_end", function_)
                     : nullptr;
}

void KernelEmitter::end_phases(::llvm::BasicBlock* row_end) {
  if (!row_end) return;
  ir_.CreateBr(row_end);
  ir_.SetInsertPoint(row_end);
}

std::vector<Value*> KernelEmitter::in_phase(std::size_t s, ::llvm::BasicBlock* row_end,
                                            const Phase& phase) {
  if (!row_end) return phase.loop();
  const auto block = [&](const char* name) {
    return ::llvm::BasicBlock::Create(module_.getContext(), name, function_);
  };
  ::llvm::BasicBlock* loop = block("phase");
  ::llvm::BasicBlock* alone = block("phase_alone");
  ::llvm::BasicBlock* earlier = block("phase_earlier");
  ::llvm::BasicBlock* after = block("phase_after");
  // A later loop than this one: calls for earlier loops do not come here.
  Value* later = ir_.CreateICmpSGT(phase_, ir_.getInt64(static_cast<std::int64_t>(s)));
  ir_.CreateCondBr(later, earlier, loop);
  ir_.SetInsertPoint(loop);
  const std::vector<Value*> made = phase.loop();
  ::llvm::BasicBlock* made_in = ir_.GetInsertBlock();
  ir_.CreateCondBr(ir_.CreateICmpSLT(phase_, ir_.getInt64(0)), after, alone);
  ir_.SetInsertPoint(alone);
  phase.store(made);
  ir_.CreateBr(row_end);
  ir_.SetInsertPoint(earlier);
  const std::vector<Value*> known = phase.load();
  ::llvm::BasicBlock* known_in = ir_.GetInsertBlock();
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
  std::vector<Value*> out;
  for (std::size_t i = 0; i < made.size(); ++i) {
    ::llvm::PHINode* phi = ir_.CreatePHI(made[i]->getType(), 2);
    phi->addIncoming(made[i], made_in);
    phi->addIncoming(known[i], known_in);
    out.push_back(phi);
  }
  return out;
}

// Where the results of a reduction are, from a column on; null: of the row.
LaneMemory::Address KernelEmitter::total_address(Value* memory, std::size_t reduction,
                                                 Value* column) {
  const c10::ScalarType type = nest_.reductions[reduction].type;
  Value* row = ir_.getInt64(static_cast<std::int64_t>(reduction * sizeof(std::int64_t)));
  if (!column) return {type, offset(memory, row), LaneStride::kZero};
  Value* bytes =
      ir_.CreateMul(column, ir_.getInt64(static_cast<std::int64_t>(c10::elementSize(type))));
  return {type, offset(offset(memory, ir_.CreateMul(row, n_lane_)), bytes), LaneStride::kUnit};
}

// --- lanes along the reduced axis

void KernelEmitter::emit_row() {
  reduced_.assign(nest_.reductions.size(), nullptr);
  ::llvm::BasicBlock* row_end = begin_phases();
  for (std::size_t s = 0; s <= nest_.loops.size(); ++s) {
    steps(nest_.rows[s], nullptr, nullptr, nullptr);
    if (s == nest_.loops.size()) break;
    const std::vector<const NestReduction*> reductions = reductions_of(s);
    const auto number = [&](std::size_t i) {
      return static_cast<std::size_t>(reductions[i] - nest_.reductions.data());
    };
    const std::vector<Value*> reduced = in_phase(
        s, row_end,
        {.loop =
             [&] {
               prefetches_ = s == 0 && shape_.rows_apart;
               std::vector<Value*> made = emit_row_loop(s);
               prefetches_ = false;
               base_ = row_pointers_;
               return made;
             },
         .load =
             [&] {
               std::vector<Value*> known;
               for (std::size_t i = 0; i < reductions.size(); ++i)
                 known.push_back(memory_.load(total_address(totals_, number(i), nullptr), {}));
               return known;
             },
         .store =
             [&](const std::vector<Value*>& made) {
               for (std::size_t i = 0; i < reductions.size(); ++i)
                 memory_.store(total_address(partials_, number(i), nullptr), made[i], {});
             }});
    for (std::size_t i = 0; i < reductions.size(); ++i) reduced_[number(i)] = reduced[i];
  }
  end_phases(row_end);
}

// Loop `s`, over the outer reduced axis too if there is one: what it reduces to.
std::vector<Value*> KernelEmitter::emit_row_loop(std::size_t s) {
  const std::vector<const NestReduction*> reductions = reductions_of(s);
  begin_scans(s);
  line_pointers_ = row_pointers_;
  std::vector<Value*> all;
  if (shape_.outer_reduced) {
    all = carried_loop(
        ir_, ir_.getInt64(0), n_reduce_, ir_.getInt64(1), "line", identities(reductions),
        [&](Value* line, const std::vector<Value*>& carried) {
          for (std::size_t k = 0; k < line_pointers_.size(); ++k)
            line_pointers_[k] = offset(row_pointers_[k], ir_.CreateMul(line, strides_[k].reduce));
          line_index_ = ir_.CreateMul(line, n_lane_);
          return combined(reductions, carried, reduce_line(s, reductions));
        });
    line_index_ = nullptr;
  } else {
    all = reduce_line(s, reductions);
  }
  for (std::size_t i = 0; i < reductions.size(); ++i)
    all[i] = ops_.across(reductions[i]->reduce, reductions[i]->type, all[i]);
  return all;
}

// Loop `s` along the axis of the lanes: the accumulators of its reductions.
std::vector<Value*> KernelEmitter::reduce_line(
    std::size_t s, const std::vector<const NestReduction*>& reductions) {
  // Scans in order are long already.
  const bool in_order = std::any_of(nest_.scans.begin(), nest_.scans.end(),
                                    [](const NestScan& k) { return k.in_order; });
  const unsigned unroll = in_order ? 1 : unrolling(length_of(nest_.loops[s]));
  const auto body = [&](Value* i, Value* mask, std::vector<Value*>& accumulators) {
    for (std::size_t k = 0; k < base_.size(); ++k)
      if (is_element(k)) base_[k] = offset(line_pointers_[k], ir_.CreateMul(i, strides_of_lane(k)));
    Value* index = line_index_ ? ir_.CreateAdd(i, line_index_) : i;
    steps(nest_.loops[s], mask, &accumulators, [&](int slot) {
      const auto k = static_cast<std::size_t>(slot);
      const auto size = static_cast<std::int64_t>(c10::elementSize(nest_.scratch[k]));
      return offset(scratch_[k], ir_.CreateMul(index, ir_.getInt64(size)));
    });
  };
  Value* main_end = multiple_of(n_lane_, std::int64_t{lanes_} * unroll);
  const std::vector<Value*> all = unrolled_loop(
      reductions, main_end, lanes_, unroll, identities(reductions),
      [&](Value* i, std::vector<Value*>& accumulators) { body(i, nullptr, accumulators); });
  return carried_loop(ir_, main_end, n_lane_, ir_.getInt64(lanes_), "rest", all,
                      [&](Value* i, const std::vector<Value*>& carried) {
                        std::vector<Value*> mine = carried;
                        body(i, memory_.mask_below(i, n_lane_), mine);
                        return mine;
                      });
}

// --- lanes along a kept axis: as many rows as lanes at a time, and several vectors of them, so
// that each visit of a row in memory reads more than a cache line

unsigned columns_of(const Nest& nest) {
  std::size_t most = 0;
  for (const std::vector<NestStep>& loop : nest.loops) most = std::max(most, loop.size());
  return most <= 8 ? 8 : most <= 24 ? 4 : most <= 60 ? 2 : 1;
}

// In which order a column is added up depends on whether a block of columns fits into the whole
// axis, not on where it stands among so many.
void KernelEmitter::emit_columns() {
  const unsigned width = columns_of(nest_);
  Value* main_end = ir_.getInt64(0);
  Value* few = ir_.getTrue();
  if (width > 1) {
    const std::int64_t block = std::int64_t{lanes_} * width;
    few = ir_.CreateICmpSLT(all_lanes_, ir_.getInt64(block));
    main_end = multiple_of(n_lane_, block);
    counted_loop(ir_, ir_.getInt64(0), main_end, ir_.getInt64(block), "columns",
                 [&](Value* first) { emit_column_block(first, width, nullptr, nullptr); });
  }
  counted_loop(ir_, main_end, n_lane_, ir_.getInt64(lanes_), "column", [&](Value* first) {
    emit_column_block(first, 1, few, memory_.mask_below(first, n_lane_));
  });
}

// `few` (null: no) columns need several accumulators each, so that additions do not wait for each
// other.
void KernelEmitter::emit_column_block(Value* first, unsigned width, Value* few, Value* mask) {
  std::vector<Column> columns(width);
  for (Column& column : columns) {
    column.values.resize(nest_.values.size());
    column.reduced.resize(nest_.reductions.size());
    column.carries.resize(nest_.values.size());
  }
  std::vector<Value*> block = row_pointers_;
  for (std::size_t k = 0; k < block.size(); ++k)
    block[k] = offset(row_pointers_[k], ir_.CreateMul(first, strides_of_lane(k)));
  const auto in_column = [&](unsigned c, const std::vector<Value*>& pointers, const auto& body) {
    Column& column = columns[c];
    std::swap(values_, column.values);
    std::swap(reduced_, column.reduced);
    std::swap(carries_, column.carries);
    // What is the same for all lanes was computed for the first of them.
    shared_ = c > 0 ? &columns[0].values : nullptr;
    Value* lane = ir_.getInt64(std::int64_t{c} * lanes_);
    for (std::size_t k = 0; k < pointers.size(); ++k)
      base_[k] = offset(pointers[k], ir_.CreateMul(strides_of_lane(k), lane));
    body();
    shared_ = nullptr;
    std::swap(values_, column.values);
    std::swap(reduced_, column.reduced);
    std::swap(carries_, column.carries);
  };
  ::llvm::BasicBlock* row_end = begin_phases();
  for (std::size_t s = 0; s <= nest_.loops.size(); ++s) {
    for (unsigned c = 0; c < width; ++c)
      in_column(c, block, [&] { steps(nest_.rows[s], mask, nullptr, nullptr); });
    if (s == nest_.loops.size()) break;
    const std::vector<const NestReduction*> reductions = reductions_of(s);
    const std::size_t count = reductions.size();
    const auto number = [&](std::size_t i) {
      return static_cast<std::size_t>(reductions[i] - nest_.reductions.data());
    };
    const auto total = [&](Value* memory, unsigned c, std::size_t i) {
      return total_address(memory, number(i),
                           ir_.CreateAdd(first, ir_.getInt64(std::int64_t{c} * lanes_)));
    };
    const Body row = [&](Value* i, std::vector<Value*>& accumulators) {
      std::vector<Value*> pointers = block;
      for (std::size_t k = 0; k < block.size(); ++k)
        pointers[k] = offset(block[k], ir_.CreateMul(i, strides_[k].reduce));
      std::vector<Value*> next;
      for (unsigned c = 0; c < width; ++c) {
        std::vector<Value*> mine(
            accumulators.begin() + static_cast<std::ptrdiff_t>(c * count),
            accumulators.begin() + static_cast<std::ptrdiff_t>((c + 1) * count));
        const auto scratch = [&](int slot) {
          const auto k = static_cast<std::size_t>(slot);
          const auto size = static_cast<std::int64_t>(c10::elementSize(nest_.scratch[k])) * lanes_;
          Value* at = offset(scratch_[k], ir_.CreateMul(i, ir_.getInt64(size * width)));
          return offset(at, ir_.getInt64(size * c));
        };
        in_column(c, pointers, [&] { steps(nest_.loops[s], mask, &mine, scratch); });
        next.insert(next.end(), mine.begin(), mine.end());
      }
      accumulators = next;
    };
    const auto loop = [&] {
      for (unsigned c = 0; c < width; ++c) in_column(c, block, [&] { begin_scans(s); });
      std::vector<Value*> start;
      for (unsigned c = 0; c < width; ++c)
        for (Value* identity : identities(reductions)) start.push_back(identity);
      const unsigned unroll = few ? unrolling(length_of(nest_.loops[s])) : 1;
      Value* main_end = ir_.getInt64(0);
      std::vector<Value*> all = start;
      if (unroll > 1) {
        main_end = ir_.CreateSelect(few, multiple_of(n_reduce_, unroll), main_end);
        all = unrolled_loop(reductions, main_end, 1, unroll, start, row);
      }
      return blocked_loop(reductions, main_end, n_reduce_, 1, all, start,
                          [&](Value* i, const std::vector<Value*>& carried) {
                            std::vector<Value*> mine = carried;
                            row(i, mine);
                            return mine;
                          });
    };
    const std::vector<Value*> reduced = in_phase(
        s, row_end,
        {.loop = loop,
         .load =
             [&] {
               std::vector<Value*> known;
               for (unsigned c = 0; c < width; ++c)
                 for (std::size_t i = 0; i < count; ++i)
                   known.push_back(memory_.load(total(totals_, c, i), {.mask = mask}));
               return known;
             },
         .store =
             [&](const std::vector<Value*>& made) {
               for (unsigned c = 0; c < width; ++c)
                 for (std::size_t i = 0; i < count; ++i)
                   memory_.store(total(partials_, c, i), made[c * count + i], {.mask = mask});
             }});
    for (unsigned c = 0; c < width; ++c)
      for (std::size_t i = 0; i < count; ++i)
        columns[c].reduced[number(i)] = reduced[c * count + i];
  }
  end_phases(row_end);
}

}  // namespace fx::loops
