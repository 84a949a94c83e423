#include <algorithm>
#include <functional>
#include <limits>

#include "fx/compile/lower_index.h"
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

Windows windows(const Call& call, const Num& x, std::size_t count) {
  const auto rank = static_cast<std::size_t>(x.dim());
  if (!is_floating(x.type())) call.unsupported("pooling of integers");
  if (rank != count + 1 && rank != count + 2) call.unsupported("pooling of other dimensions");
  if (call.flag("ceil_mode", false)) call.unsupported("pooling with sizes that are rounded up");
  Shapes& shapes = call.program().shapes();
  for (Dim dim : x.tensor().dims)
    if (shapes.example(dim) == 0) call.unsupported("pooling of nothing");
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
    if (w.size[d] > kMaxWindow || (w.count *= w.size[d]) > kMaxWindow)
      call.unsupported("windows of more than " + std::to_string(kMaxWindow) + " elements");
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

// The elements of each window, row by row; beyond the input there is `otherwise`.
void for_each_element(const Call& call, const Num& x, const Windows& w, const Num& otherwise,
                      const std::function<void(const Num&)>& body) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const std::size_t count = w.size.size();
  const auto first = static_cast<std::size_t>(x.dim()) - count;
  for (std::int64_t element = 0; element < w.count; ++element) {
    std::vector<Affine> at = identity_index(x.dim());
    std::vector<std::uint8_t> guards(at.size(), kNoGuard);
    std::int64_t rest = element;
    for (std::size_t d = count; d-- > 0;) {
      const std::int64_t offset = rest % w.size[d] * w.dilation[d] - w.padding[d];
      rest /= w.size[d];
      at[first + d] = {.offset = offset < 0 ? shapes.sub(kZero, shapes.constant(-offset))
                                            : shapes.constant(offset),
                       .terms = {{static_cast<int>(first + d), shapes.constant(w.stride[d])}}};
      if (w.padding[d] > 0) guards[first + d] = kGuardBoth;
    }
    body({program,
          program.pad(x.tensor(), w.dims, std::move(at), std::move(guards), otherwise.tensor())});
  }
}

// NaN if there is one; of zeros the first.
Tensors max_pool(const Call& call, std::size_t count) {
  const Num x = call.tensor("self");
  const Windows w = windows(call, x, count);
  const c10::ScalarType wide = opmath(x.type());
  const Num lowest = Num::number(call.program(), wide, -std::numeric_limits<double>::infinity());
  Num most = lowest;
  for_each_element(call, x.cast(wide), w, lowest, [&](const Num& element) {
    most = select((element > most) | is_nan(element), element, most);
  });
  return result(most, x.type());
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
                   [&](const Num& element) { sum = sum + element; });
  // Eager adds the mean to an element that is 0.
  return result(zero + (sum / divisor).rounded(x.type()), x.type());
}

}  // namespace

Tensors lower_max_pool1d(const Call& call) { return max_pool(call, 1); }
Tensors lower_max_pool2d(const Call& call) { return max_pool(call, 2); }
Tensors lower_avg_pool1d(const Call& call) { return avg_pool(call, 1); }
Tensors lower_avg_pool2d(const Call& call) { return avg_pool(call, 2); }

}  // namespace fx::loops
