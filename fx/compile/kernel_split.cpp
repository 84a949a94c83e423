#include <algorithm>
#include <atomic>

#include "fx/base/error.h"
#include "fx/compile/buffer_pool.h"
#include "fx/compile/kernel_call.h"
#include "fx/compile/parallel.h"

/// Few long rows: each loop over a row is done in parts by all threads, and what the parts reduce
/// to is combined pairwise. How a row is cut depends on its size alone, so that results do not
/// depend on the number of threads.
namespace fx::loops {
namespace {

// Fewer rows than this are cut, each into this many parts at most.
constexpr std::int64_t kFewRows = 8;
constexpr std::int64_t kMostParts = 64;
// Elements that a part is a multiple of: whole vectors, and their scratch rows whole cache lines.
constexpr std::int64_t kPartUnit = 64;

template <typename T>
T combined(Reduce reduce, T a, T b) {
  switch (reduce) {
    case Reduce::kSum:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      else
        return a + b;
    case Reduce::kProd:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case Reduce::kMax:
      return a != a || b < a ? a : b;  // NaN if there is one
    case Reduce::kMin:
      return a != a || a < b ? a : b;
    case Reduce::kAny:
      return a != 0 || b != 0;
    case Reduce::kAll:
      return a != 0 && b != 0;
    case Reduce::kLogAddExp:
      break;
  }
  FX_ASSERT(false, "no reduction of parts");
}

// `into[i]` for n values, each with that of `from`.
template <typename T>
void combine_all(Reduce reduce, char* into, const char* from, std::int64_t n) {
  T* a = reinterpret_cast<T*>(into);
  const T* b = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < n; ++i) a[i] = combined(reduce, a[i], b[i]);
}

void combine(const NestReduction& reduction, char* into, const char* from, std::int64_t n) {
  switch (reduction.type) {
    case c10::ScalarType::Float:
      return combine_all<float>(reduction.reduce, into, from, n);
    case c10::ScalarType::Double:
      return combine_all<double>(reduction.reduce, into, from, n);
    case c10::ScalarType::Long:
      return combine_all<std::int64_t>(reduction.reduce, into, from, n);
    case c10::ScalarType::Int:
      return combine_all<std::int32_t>(reduction.reduce, into, from, n);
    case c10::ScalarType::Short:
      return combine_all<std::int16_t>(reduction.reduce, into, from, n);
    case c10::ScalarType::Char:
      return combine_all<std::int8_t>(reduction.reduce, into, from, n);
    case c10::ScalarType::Byte:
    case c10::ScalarType::Bool:
      return combine_all<std::uint8_t>(reduction.reduce, into, from, n);
    default:
      FX_ASSERT(false, "a reduction of this type");
  }
}

}  // namespace

// The axis along which a row is cut.
const Kernel::Call::Axis& Kernel::Call::cut_axis() const {
  return shape_.lanes_reduced && !shape_.outer_reduced ? lane_ : reduce_;
}

// Columns lie beside each other in the scratch rows only while one block of them is done. What a
// scan carries goes through the whole row.
bool has_phases(const Nest& nest, const KernelShape& shape) {
  return !nest.reductions.empty() && nest.scans.empty() &&
         (shape.lanes_reduced || nest.scratch.empty());
}

bool Kernel::Call::worth_splitting() const {
  std::int64_t rows = 1;
  for (const Axis& axis : kept_) rows *= axis.size;
  if (rows >= kFewRows || cut_axis().size < 2 * kPartUnit) return false;
  if (!shape_.lanes_reduced && lane_.size >= kFewRows * kPartUnit) return false;
  return lane_.size * reduce_.size * static_cast<std::int64_t>(kernel_.work_) >= 8 * kGrain;
}

std::int32_t Kernel::Call::run_split() {
  const std::size_t count = nest_.operands.size();
  const Axis& cut = cut_axis();
  const std::int64_t work =
      lane_.size * reduce_.size * static_cast<std::int64_t>(kernel_.work_) / kGrain;
  const std::int64_t wanted = std::clamp<std::int64_t>(work, 2, kMostParts);
  const std::int64_t length =
      ((cut.size + wanted - 1) / wanted + kPartUnit - 1) / kPartUnit * kPartUnit;
  const std::int64_t parts = (cut.size + length - 1) / length;

  // Eight bytes for each number, whatever its type; one for each column.
  const std::int64_t columns = shape_.lanes_reduced ? 1 : lane_.size;
  const auto numbers = static_cast<std::int64_t>(nest_.reductions.size()) * columns;
  std::vector<std::int64_t> totals(static_cast<std::size_t>(numbers));
  std::vector<std::int64_t> partials(static_cast<std::size_t>(numbers * parts));
  const auto partial = [&](std::int64_t part, std::size_t reduction) {
    return reinterpret_cast<char*>(partials.data() + part * numbers +
                                   static_cast<std::int64_t>(reduction) * columns);
  };

  std::vector<at::Tensor> memory;
  std::vector<char*> scratch;
  for (c10::ScalarType type : nest_.scratch) {
    const std::int64_t size[] = {lane_.size * reduce_.size + code_->lanes()};
    const std::int64_t stride[] = {1};
    memory.push_back(empty_from_pool(size, stride, type));
    scratch.push_back(static_cast<char*>(memory.back().data_ptr()));
  }

  std::int64_t rows = 1;
  for (const Axis& axis : kept_) rows *= axis.size;
  std::atomic<std::int32_t> trapped{0};
  for (std::int64_t row = 0; row < rows; ++row) {
    c10::SmallVector<char*, 8> first(count);
    find_row(row, first);
    // Part [begin, end) of the loop, or the values and stores of the row behind all loops.
    const auto call = [&](std::size_t phase, std::int64_t part) {
      const std::int64_t begin = part * length;
      const std::int64_t n = std::min(length, cut.size - begin);
      c10::SmallVector<OperandStrides, 8> strides(count);
      c10::SmallVector<char*, 8> pointers(count);
      for (std::size_t k = 0; k < count; ++k) {
        strides[k] = strides_of(k);
        pointers[k] = moved(first[k], begin * cut.strides[k]);
      }
      const std::int64_t line = &cut == &lane_ ? 1 : lane_.size;
      c10::SmallVector<char*, 4> rows_of_part(scratch.size());
      for (std::size_t k = 0; k < scratch.size(); ++k)
        rows_of_part[k] =
            scratch[k] +
            begin * line * static_cast<std::int64_t>(c10::elementSize(nest_.scratch[k]));
      const KernelArgs args{.pointers = pointers.data(),
                            .strides = strides.data(),
                            .gathered = gathered_.data(),
                            .scalars = scalars_.data(),
                            .extents = extents_.data(),
                            .scratch = rows_of_part.data(),
                            .n_lane = &cut == &lane_ ? n : lane_.size,
                            .n_outer = 1,
                            .n_reduce = &cut == &lane_ ? reduce_.size : n,
                            .all_lanes = lane_.size,
                            .phase = static_cast<std::int64_t>(phase),
                            .totals = reinterpret_cast<char*>(totals.data()),
                            .partials = partial(part, 0)};
      trapped |= code_->function()(&args);
    };
    for (std::size_t s = 0; s < nest_.loops.size(); ++s) {
      parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part) call(s, part);
      });
      for (std::size_t r = 0; r < nest_.reductions.size(); ++r) {
        if (nest_.reductions[r].stage != static_cast<int>(s)) continue;
        for (std::int64_t width = 1; width < parts; width *= 2)
          for (std::int64_t part = 0; part + width < parts; part += 2 * width)
            combine(nest_.reductions[r], partial(part, r), partial(part + width, r), columns);
        std::copy_n(partials.data() + static_cast<std::int64_t>(r) * columns, columns,
                    totals.data() + static_cast<std::int64_t>(r) * columns);
      }
    }
    call(nest_.loops.size(), 0);
  }
  return trapped.load();
}

}  // namespace fx::loops
