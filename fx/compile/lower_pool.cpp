#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Pooling with small windows: each element of a window is the input read at other indices.
namespace fx::loops {
namespace {

// Larger windows make more code than they save memory traffic.
constexpr std::int64_t kMaxWindow = 16;

// The windows of a pooling, by pooled dimension: the last ones of the input.
struct Windows {
  std::vector<std::int64_t> size;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> padding;
  std::vector<std::int64_t> dilation;
  std::int64_t count = 1;  // elements of one
  bool padded = false;
  Dims dims = {};  // of the result
};

std::vector<std::int64_t> numbers(const Call& call, const char* name, std::size_t count,
                                  std::vector<std::int64_t> otherwise) {
  if (!call.has(name)) return otherwise;
  std::vector<std::int64_t> out = call.ints(name);
  if (out.empty()) return otherwise;
  if (out.size() == 1) out.resize(count, out[0]);
  if (out.size() != count) call.unsupported("windows of other dimensions");
  return out;
}

void check_pooled(const Call& call, const Num& x, std::size_t count) {
  const auto rank = static_cast<std::size_t>(x.dim());
  if (!is_floating(x.type())) call.unsupported("pooling of integers");
  if (rank != count + 1 && rank != count + 2) call.unsupported("pooling of other dimensions");
  for (Dim dim : x.tensor().dims)
    if (call.program().shapes().example(dim) == 0) call.unsupported("pooling of nothing");
}

void count_elements(const Call& call, Windows& w, std::size_t d) {
  if (w.size[d] > kMaxWindow || (w.count *= w.size[d]) > kMaxWindow)
    call.unsupported("windows of more than " + std::to_string(kMaxWindow) + " elements");
}

Windows windows(const Call& call, const Num& x, std::size_t count) {
  check_pooled(call, x, count);
  const auto rank = static_cast<std::size_t>(x.dim());
  if (call.flag("ceil_mode", false)) call.unsupported("pooling with sizes that are rounded up");
  Shapes& shapes = call.program().shapes();
  Windows w;
  w.size = numbers(call, "kernel_size", count, {});
  if (w.size.empty()) call.unsupported("pooling without windows");
  w.stride = numbers(call, "stride", count, w.size);
  w.padding = numbers(call, "padding", count, std::vector<std::int64_t>(count, 0));
  w.dilation = numbers(call, "dilation", count, std::vector<std::int64_t>(count, 1));
  w.dims.assign(x.tensor().dims.begin(),
                x.tensor().dims.end() - static_cast<std::ptrdiff_t>(count));
  for (std::size_t d = 0; d < count; ++d) {
    if (w.size[d] < 1 || w.stride[d] < 1 || w.dilation[d] < 1 || w.padding[d] < 0 ||
        2 * w.padding[d] > w.size[d])
      call.unsupported("other windows");
    count_elements(call, w, d);
    w.padded |= w.padding[d] > 0;
    const Dim length = shapes.constant(w.dilation[d] * (w.size[d] - 1) + 1);
    const Dim padded =
        shapes.add(x.tensor().dims[rank - count + d], shapes.constant(2 * w.padding[d]));
    assume_at_most(shapes, length, padded);
    w.dims.push_back(shapes.size(shapes.add(
        shapes.floor_div(shapes.sub(padded, length), shapes.constant(w.stride[d])), kOne)));
  }
  return w;
}

// As many windows as are wanted, which must have the same size and lie side by side.
Windows adaptive_windows(const Call& call, const Num& x, std::size_t count) {
  check_pooled(call, x, count);
  Shapes& shapes = call.program().shapes();
  const std::vector<std::int64_t> sizes = numbers(call, "output_size", count, {});
  if (sizes.size() != count) call.unsupported("other windows");
  Windows w;
  w.dims = x.tensor().dims;
  for (std::size_t d = 0; d < count; ++d) {
    Dim& dim = w.dims[w.dims.size() - count + d];
    const std::int64_t size = shapes.example(dim);
    if (sizes[d] < 1 || size % sizes[d] != 0) call.unsupported("windows of different sizes");
    shapes.unify(dim, shapes.constant(size));
    w.size.push_back(size / sizes[d]);
    count_elements(call, w, d);
    dim = shapes.size(shapes.constant(sizes[d]));
  }
  w.stride = w.size;
  w.padding.assign(count, 0);
  w.dilation.assign(count, 1);
  return w;
}

// The elements of each window, row by row, with their indices in its dimensions; beyond the input
// there is `otherwise`.
using ElementBody = std::function<void(const Num&, const std::vector<std::int64_t>&)>;
void for_each_element(const Call& call, const Num& x, const Windows& w, const Num& otherwise,
                      const ElementBody& body) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const std::size_t count = w.size.size();
  const auto first = static_cast<std::size_t>(x.dim()) - count;
  for (std::int64_t element = 0; element < w.count; ++element) {
    std::vector<Affine> at = identity_index(x.dim());
    std::vector<std::uint8_t> guards(at.size(), kNoGuard);
    std::vector<std::int64_t> index(count);
    std::int64_t rest = element;
    for (std::size_t d = count; d-- > 0;) {
      index[d] = rest % w.size[d];
      const std::int64_t offset = index[d] * w.dilation[d] - w.padding[d];
      rest /= w.size[d];
      at[first + d] = {.offset = offset < 0 ? shapes.sub(kZero, shapes.constant(-offset))
                                            : shapes.constant(offset),
                       .terms = {{static_cast<int>(first + d), shapes.constant(w.stride[d])}}};
      if (w.padding[d] > 0) guards[first + d] = kGuardBoth;
    }
    body({program,
          program.pad(x.tensor(), w.dims, std::move(at), std::move(guards), otherwise.tensor())},
         index);
  }
}

// Where elements of windows are in the pooled dimensions of the input, counted as one.
class Places {
 public:
  Places(const Call& call, const Num& x, const Windows& w) : x_(x), w_(w) {
    const std::size_t first = w.dims.size() - w.size.size();
    for (std::size_t d = 0; d < w.size.size(); ++d)
      begins_.push_back(index_along(call.program(), w.dims, first + d) * w.stride[d] -
                        w.padding[d]);
  }

  Num of(const std::vector<std::int64_t>& index) const {
    return joined([&](std::size_t d) { return begins_[d] + index[d] * w_.dilation[d]; });
  }
  // Of the first element that lies in the input.
  Num first() const {
    return joined([&](std::size_t d) {
      const Num& begin = begins_[d];
      if (w_.padding[d] == 0) return begin;
      return select(begin < 0, begin.apply(Op::kFloorRem, w_.dilation[d]), begin);
    });
  }

 private:
  Num joined(const std::function<Num(std::size_t)>& index) const {
    Num place = index(0);
    for (std::size_t d = 1; d < begins_.size(); ++d) {
      const std::int64_t dims[] = {x_.dim() - static_cast<std::int64_t>(begins_.size() - d)};
      place = place * x_.extent(dims) + index(d);
    }
    return place;
  }

  const Num& x_;
  const Windows& w_;
  std::vector<Num> begins_;
};

// The last NaN if there is one; of equal numbers the first. With its place, or without.
Tensors max_pool(const Call& call, const Num& x, const Windows& w, bool with_places) {
  const c10::ScalarType wide = opmath(x.type());
  const Num lowest = Num::number(call.program(), wide, -std::numeric_limits<double>::infinity());
  Num most = lowest;
  std::optional<Places> places;
  std::optional<Num> place;
  if (with_places) place = places.emplace(call, x, w).first();
  for_each_element(call, x.cast(wide), w, lowest,
                   [&](const Num& element, const std::vector<std::int64_t>& index) {
                     const Num takes = (element > most) | is_nan(element);
                     most = select(takes, element, most);
                     if (place) place = select(takes, places->of(index), *place);
                   });
  Tensors out = result(most, x.type());
  if (place) out.push_back(place->expand(w.dims).tensor());
  return out;
}

Tensors max_pool(const Call& call, std::size_t count, bool with_places) {
  const Num x = call.tensor("self");
  const Windows w = windows(call, x, count);
  // The operator is three times as fast as picking every second element.
  if (count == 1 && !with_places && w.stride[0] > 1) call.unsupported("max_pool1d with a stride");
  return max_pool(call, x, w, with_places);
}

Tensors adaptive_max_pool(const Call& call, std::size_t count) {
  const Num x = call.tensor("self");
  return max_pool(call, x, adaptive_windows(call, x, count), true);
}

// Eager divides by one size after the other.
Tensors adaptive_avg_pool(const Call& call, std::size_t count) {
  const Num x = call.tensor("self");
  check_pooled(call, x, count);
  const Num wide = x.cast(opmath(x.type()));
  const std::vector<std::int64_t> sizes = numbers(call, "output_size", count, {});
  if (std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size == 1; })) {
    std::vector<std::int64_t> dims;
    for (std::size_t d = 0; d < count; ++d)
      dims.push_back(x.dim() - static_cast<std::int64_t>(count - d));
    return result(mean_of(wide, dims), x.type());
  }
  const Windows w = adaptive_windows(call, x, count);
  Num sum = Num::number(call.program(), wide.type(), 0);
  for_each_element(call, wide, w, sum,
                   [&](const Num& element, const auto&) { sum = sum + element; });
  for (std::int64_t size : w.size) sum = sum / size;
  return result(sum, x.type());
}

Tensors avg_pool(const Call& call, std::size_t count) {
  const Num x = call.tensor("self");
  const Windows w = windows(call, x, count);
  if (w.padded && !call.flag("count_include_pad", true))
    call.unsupported("pooling that leaves out the padding");
  const std::int64_t divisor =
      call.has("divisor_override") ? call.integer("divisor_override") : w.count;
  if (divisor == 0) call.unsupported("other windows");
  const Num zero = Num::number(call.program(), opmath(x.type()), 0);
  Num sum = zero;
  for_each_element(call, x.cast(zero.type()), w, zero,
                   [&](const Num& element, const auto&) { sum = sum + element; });
  // Eager adds the mean to an element that is 0.
  return result(zero + (sum / divisor).rounded(x.type()), x.type());
}

}  // namespace

Tensors lower_max_pool1d(const Call& call) { return max_pool(call, 1, false); }
Tensors lower_max_pool2d(const Call& call) { return max_pool(call, 2, false); }
Tensors lower_max_pool1d_with_indices(const Call& call) { return max_pool(call, 1, true); }
Tensors lower_max_pool2d_with_indices(const Call& call) { return max_pool(call, 2, true); }
Tensors lower_adaptive_max_pool1d(const Call& call) { return adaptive_max_pool(call, 1); }
Tensors lower_adaptive_max_pool2d(const Call& call) { return adaptive_max_pool(call, 2); }
Tensors lower_adaptive_avg_pool1d(const Call& call) { return adaptive_avg_pool(call, 1); }
Tensors lower_adaptive_avg_pool2d(const Call& call) { return adaptive_avg_pool(call, 2); }
Tensors lower_avg_pool1d(const Call& call) { return avg_pool(call, 1); }
Tensors lower_avg_pool2d(const Call& call) { return avg_pool(call, 2); }

}  // namespace fx::loops
