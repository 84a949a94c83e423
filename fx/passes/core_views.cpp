// Shapes: views by fewer kinds of views, parts, and gradients of parts.
#include <numeric>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Tensor;
using Ints = std::vector<std::int64_t>;

std::int64_t wrapped(std::int64_t dim, std::int64_t count) { return dim < 0 ? dim + count : dim; }

Ints identity(const Tensor& x) {
  Ints order(static_cast<std::size_t>(x.dim()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Tensor swapped(const Tensor& x, std::int64_t a, std::int64_t b) {
  Ints order = identity(x);
  if (x.dim() > 0)
    std::swap(order[static_cast<std::size_t>(wrapped(a, x.dim()))],
              order[static_cast<std::size_t>(wrapped(b, x.dim()))]);
  return x.permute(order);
}

std::vector<Tensor> parts(const Tensor& x, const Ints& sizes, std::int64_t dim) {
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    out.push_back(x.slice(dim, begin, begin + size));
    begin += size;
  }
  return out;
}

Ints equal_sizes(const Tensor& x, std::int64_t size, std::int64_t dim) {
  const std::int64_t total = x.size(dim);
  if (total == 0 || size == 0) return {total};
  Ints sizes;
  for (std::int64_t begin = 0; begin < total; begin += size)
    sizes.push_back(std::min(size, total - begin));
  return sizes;
}

void add_shapes(Entries& entries) {
  entries.add("aten::t", +[](const Tensor& x) { return swapped(x, 0, x.dim() < 2 ? 0 : 1); });
  entries.add(
      "aten::transpose.int",
      +[](const Tensor& x, std::int64_t a, std::int64_t b) { return swapped(x, a, b); });
  entries.add(
      "aten::squeeze", +[](const Tensor& x) {
        Ints dims;
        for (std::int64_t i = 0; i < x.dim(); ++i)
          if (x.size(i) == 1) dims.push_back(i);
        return x.squeeze(dims);
      });
  entries.add(
      "aten::squeeze.dim", +[](const Tensor& x, std::int64_t dim) { return x.squeeze(Ints{dim}); });
  entries.add("aten::detach", +[](const Tensor& x) { return at::alias(x); });
  entries.add(
      "aten::_unsafe_view", +[](const Tensor& x, const Ints& size) { return x.view(size); });
  entries.add(
      "aten::_reshape_alias",
      +[](const Tensor& x, const Ints& size, const Ints&) { return x.view(size); });
  entries.add(
      "aten::unbind.int", +[](const Tensor& x, std::int64_t dim) {
        std::vector<Tensor> out;
        for (std::int64_t i = 0; i < x.size(dim); ++i) out.push_back(x.select(dim, i));
        return out;
      });
  entries.add(
      "aten::split.Tensor", +[](const Tensor& x, std::int64_t size, std::int64_t dim) {
        return parts(x, equal_sizes(x, size, dim), dim);
      });
  entries.add(
      "aten::unsafe_split.Tensor", +[](const Tensor& x, std::int64_t size, std::int64_t dim) {
        return parts(x, equal_sizes(x, size, dim), dim);
      });
  entries.add(
      "aten::unsafe_split_with_sizes",
      +[](const Tensor& x, const Ints& sizes, std::int64_t dim) { return parts(x, sizes, dim); });
  entries.add(
      "aten::stack", +[](const std::vector<Tensor>& tensors, std::int64_t dim) {
        std::vector<Tensor> taller;
        const std::int64_t at_dim = wrapped(dim, tensors.at(0).dim() + 1);
        for (const Tensor& each : tensors) taller.push_back(each.unsqueeze(at_dim));
        return at::cat(taller, at_dim);
      });
}

// Views with memory of their own.
void add_copies(Entries& entries) {
  entries.add("aten::alias_copy", +[](const Tensor& x) { return x.clone(); });
  entries.add(
      "aten::expand_copy", +[](const Tensor& x, const Ints& size, bool) {
        return x.expand(size).clone(at::MemoryFormat::Contiguous);
      });
  entries.add(
      "aten::diagonal_copy", +[](const Tensor& x, std::int64_t offset, std::int64_t a,
                                 std::int64_t b) { return x.diagonal(offset, a, b).clone(); });
  entries.add("aten::squeeze_copy", +[](const Tensor& x) { return x.squeeze().clone(); });
  entries.add(
      "aten::squeeze_copy.dim",
      +[](const Tensor& x, std::int64_t dim) { return x.squeeze(dim).clone(); });
  entries.add(
      "aten::squeeze_copy.dims",
      +[](const Tensor& x, const Ints& dims) { return x.squeeze(dims).clone(); });
  entries.add(
      "aten::unsqueeze_copy",
      +[](const Tensor& x, std::int64_t dim) { return x.unsqueeze(dim).clone(); });
  entries.add("aten::t_copy", +[](const Tensor& x) { return x.t().clone(); });
  entries.add(
      "aten::transpose_copy.int",
      +[](const Tensor& x, std::int64_t a, std::int64_t b) { return swapped(x, a, b).clone(); });
  entries.add(
      "aten::unfold_copy", +[](const Tensor& x, std::int64_t dim, std::int64_t size,
                               std::int64_t step) { return x.unfold(dim, size, step).clone(); });
  entries.add(
      "aten::split_with_sizes_copy", +[](const Tensor& x, const Ints& sizes, std::int64_t dim) {
        std::vector<Tensor> out = parts(x, sizes, dim);
        for (Tensor& each : out) each = each.clone();
        return out;
      });
}

void add_rearrangements(Entries& entries) {
  entries.add(
      "aten::roll", +[](const Tensor& x, const Ints& shifts, const Ints& dims) {
        if (dims.empty()) {
          const std::int64_t count = x.numel();
          if (count == 0) return x.clone();
          const std::int64_t cut = (count - shifts.at(0) % count) % count;
          const Tensor flat = x.reshape({-1});
          return at::cat({flat.slice(0, cut), flat.slice(0, 0, cut)}, 0).view(x.sizes());
        }
        Tensor out = x;
        for (std::size_t i = 0; i < dims.size(); ++i) {
          const std::int64_t count = x.size(dims[i]);
          if (count == 0) return x.clone();
          const std::int64_t cut = ((count - shifts.at(i)) % count + count) % count;
          out = at::cat({out.slice(dims[i], cut), out.slice(dims[i], 0, cut)}, dims[i]);
        }
        return out;
      });
  entries.add(
      "aten::rot90", +[](const Tensor& x, std::int64_t times, const Ints& dims) {
        switch ((times % 4 + 4) % 4) {
          case 1:
            return x.flip({dims.at(1)}).transpose(dims.at(0), dims.at(1));
          case 2:
            return x.flip(dims);
          case 3:
            return x.flip({dims.at(0)}).transpose(dims.at(0), dims.at(1));
          default:
            return x.clone();
        }
      });
  entries.add(
      "aten::pixel_shuffle", +[](const Tensor& x, std::int64_t factor) {
        Ints outer = x.sizes().slice(0, static_cast<std::size_t>(x.dim() - 3)).vec(), apart = outer;
        const auto batch = static_cast<std::int64_t>(outer.size());
        const std::int64_t channels = x.size(-3) / (factor * factor), h = x.size(-2),
                           w = x.size(-1);
        apart.insert(apart.end(), {channels, factor, factor, h, w});
        outer.insert(outer.end(), {channels, h * factor, w * factor});
        Ints order(static_cast<std::size_t>(batch));
        std::iota(order.begin(), order.end(), 0);
        for (const std::int64_t d : {0, 3, 1, 4, 2}) order.push_back(batch + d);
        return x.reshape(apart).permute(order).reshape(outer);
      });
  entries.add(
      "aten::pixel_unshuffle", +[](const Tensor& x, std::int64_t factor) {
        Ints outer = x.sizes().slice(0, static_cast<std::size_t>(x.dim() - 3)).vec(), apart = outer;
        const auto batch = static_cast<std::int64_t>(outer.size());
        const std::int64_t channels = x.size(-3), h = x.size(-2) / factor, w = x.size(-1) / factor;
        apart.insert(apart.end(), {channels, h, factor, w, factor});
        outer.insert(outer.end(), {channels * factor * factor, h, w});
        Ints order(static_cast<std::size_t>(batch));
        std::iota(order.begin(), order.end(), 0);
        for (const std::int64_t d : {0, 2, 4, 1, 3}) order.push_back(batch + d);
        return x.reshape(apart).permute(order).reshape(outer);
      });
  entries.add(
      "aten::channel_shuffle", +[](const Tensor& x, std::int64_t groups) {
        Ints apart = x.sizes().vec();
        apart[1] /= groups;
        apart.insert(apart.begin() + 1, groups);
        return x.reshape(apart).transpose(1, 2).reshape(x.sizes());
      });
}

// Zeros with `part` in a place.
void add_gradients_of_parts(Entries& entries) {
  entries.add(
      "aten::slice_backward", +[](const Tensor& g, const Ints& sizes, std::int64_t dim,
                                  std::int64_t start, std::int64_t end, std::int64_t step) {
        return at::slice_scatter(at::zeros(sizes, g.options()), g, dim, start, end, step);
      });
  entries.add(
      "aten::select_backward",
      +[](const Tensor& g, const Ints& sizes, std::int64_t dim, std::int64_t index) {
        return at::select_scatter(at::zeros(sizes, g.options()), g, dim, index);
      });
  entries.add(
      "aten::diagonal_backward",
      +[](const Tensor& g, const Ints& sizes, std::int64_t offset, std::int64_t a, std::int64_t b) {
        return at::diagonal_scatter(at::zeros(sizes, g.options()), g, offset, a, b);
      });
  entries.add(
      "aten::select_scatter",
      +[](const Tensor& x, const Tensor& part, std::int64_t dim, std::int64_t index) {
        const std::int64_t at_index = wrapped(index, x.size(dim));
        return at::slice_scatter(x, part.unsqueeze(wrapped(dim, x.dim())), dim, at_index,
                                 at_index + 1, 1);
      });
  entries.add(
      "aten::diag_embed",
      +[](const Tensor& x, std::int64_t offset, std::int64_t a, std::int64_t b) {
        const std::int64_t rank = x.dim() + 1, side = x.size(-1) + std::abs(offset);
        const std::int64_t row = wrapped(a, rank), column = wrapped(b, rank);
        Ints sizes = x.sizes().slice(0, static_cast<std::size_t>(x.dim() - 1)).vec();
        sizes.insert(sizes.begin() + std::min(row, column), side);
        sizes.insert(sizes.begin() + std::max(row, column), side);
        return at::diagonal_scatter(at::zeros(sizes, x.options()), x, offset, row, column);
      });
}

}  // namespace

void add_views(Entries& entries) {
  add_shapes(entries);
  add_copies(entries);
  add_rearrangements(entries);
  add_gradients_of_parts(entries);
}

}  // namespace fx::core
