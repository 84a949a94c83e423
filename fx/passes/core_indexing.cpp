// Masks, indices and padding.
#include <cmath>

#include "fx/passes/core_decompositions.h"

namespace fx::core {
namespace {

using at::Scalar;
using at::Tensor;
using Ints = std::vector<std::int64_t>;
using Indices = c10::List<std::optional<Tensor>>;

// {:, :, index} for dim 2; one number is a list of one.
Indices at_dim(const Tensor& x, std::int64_t dim, const Tensor& index) {
  Indices out;
  for (std::int64_t i = 0; i < (dim < 0 ? dim + x.dim() : dim); ++i) out.push_back(std::nullopt);
  out.push_back(index.dim() == 0 ? index.reshape({1}) : index);
  return out;
}

// What is put at the index into a vector may be one number, too.
Tensor items(const Tensor& source, const Tensor& x) {
  return source.dim() == 0 && x.dim() == 1 ? source.reshape({1}) : source;
}

// Whether an element of the last two dimensions lies on or below a diagonal.
Tensor below_diagonal(const Tensor& x, std::int64_t diagonal) {
  const auto options = x.options().dtype(at::kLong);
  const Tensor rows = at::arange(x.size(-2), options).unsqueeze(-1);
  return at::arange(x.size(-1), options) - rows <= diagonal;
}

void add_masks(Entries& entries) {
  entries.add(
      "aten::masked_fill.Scalar", +[](const Tensor& x, const Tensor& mask, const Scalar& value) {
        return at::where(mask, at::scalar_tensor(value, x.options()), x);
      });
  entries.add(
      "aten::masked_fill.Tensor", +[](const Tensor& x, const Tensor& mask, const Tensor& value) {
        return at::where(mask, value.to(x.scalar_type()), x);
      });
  entries.add(
      "aten::tril", +[](const Tensor& x, std::int64_t diagonal) {
        return at::where(below_diagonal(x, diagonal), x, at::scalar_tensor(0, x.options()));
      });
  entries.add(
      "aten::triu", +[](const Tensor& x, std::int64_t diagonal) {
        return at::where(below_diagonal(x, diagonal - 1), at::scalar_tensor(0, x.options()), x);
      });
  entries.add(
      "aten::isin.Tensor_Scalar", +[](const Tensor& x, const Scalar& one, bool, bool invert) {
        return invert ? x != one : x == one;
      });
  entries.add(
      "aten::isin.Scalar_Tensor", +[](const Scalar& one, const Tensor& among, bool, bool invert) {
        const Tensor found = (among == one).any();
        return invert ? found.logical_not() : found;
      });
  entries.add(
      "aten::isin.Tensor_Tensor", +[](const Tensor& x, const Tensor& among, bool, bool invert) {
        const Tensor found = (x.unsqueeze(-1) == among.reshape({-1})).any(-1);
        return invert ? found.logical_not() : found;
      });
}

void add_indices(Entries& entries) {
  entries.add(
      "aten::take",
      +[](const Tensor& x, const Tensor& index) { return x.reshape({-1}).index({index}); });
  entries.add(
      "aten::index_copy",
      +[](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
        if (x.dim() == 0) return source.reshape({}).clone();
        return at::index_put(x, at_dim(x, dim, index), items(source, x));
      });
  entries.add(
      "aten::index_add", +[](const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Tensor& source, const Scalar& alpha) {
        const Tensor part = alpha.equal(1) ? source : source * alpha;
        if (x.dim() == 0) return x + part.reshape({});
        return at::index_put(x, at_dim(x, dim, index), items(part, x), /*accumulate=*/true);
      });
  entries.add(
      "aten::index_fill.int_Scalar",
      +[](const Tensor& x, std::int64_t dim, const Tensor& index, const Scalar& value) {
        const Tensor filling = at::scalar_tensor(value, x.options());
        if (x.dim() == 0) return at::where(at::ones_like(x, at::kBool), filling, x);
        return at::index_put(x, at_dim(x, dim, index), filling);
      });
  entries.add(
      "aten::index_fill.int_Tensor",
      +[](const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& value) {
        const Tensor filling = value.to(x.scalar_type());
        if (x.dim() == 0) return at::where(at::ones_like(x, at::kBool), filling, x);
        return at::index_put(x, at_dim(x, dim, index), filling);
      });
  entries.add(
      "aten::_unsafe_index.Tensor",
      +[](const Tensor& x, const Indices& indices) { return at::index(x, indices); });
  entries.add(
      "aten::_unsafe_index_put",
      +[](const Tensor& x, const Indices& indices, const Tensor& values, bool accumulate) {
        return at::index_put(x, indices, values, accumulate);
      });
}

// Where each place of a padded dimension comes from.
Tensor source_of(const Tensor& x, std::int64_t dim, std::int64_t before, std::int64_t after,
                 bool reflected) {
  const std::int64_t last = x.size(dim) - 1;
  const Tensor place = at::arange(-before, last + 1 + after, x.options().dtype(at::kLong));
  return reflected ? last - (last - place.abs()).abs() : place.clamp(0, last);
}

Tensor padded(const Tensor& x, const Ints& padding, bool reflected) {
  Tensor out = x;
  for (std::size_t i = 0; i < padding.size() / 2; ++i) {
    const std::int64_t dim = x.dim() - 1 - static_cast<std::int64_t>(i);
    const Tensor index = source_of(x, dim, padding[2 * i], padding[2 * i + 1], reflected);
    out = at::index(out, at_dim(out, dim, index));
  }
  return out;
}

// The gradients of places that came from one element are added.
Tensor padded_backward(const Tensor& g, const Tensor& x, const Ints& padding, bool reflected) {
  Tensor out = g;
  for (std::size_t i = 0; i < padding.size() / 2; ++i) {
    const std::int64_t dim = x.dim() - 1 - static_cast<std::int64_t>(i);
    const Tensor index = source_of(x, dim, padding[2 * i], padding[2 * i + 1], reflected);
    Ints sizes = out.sizes().vec();
    sizes[static_cast<std::size_t>(dim)] = x.size(dim);
    out = at::index_put(at::zeros(sizes, g.options()), at_dim(out, dim, index), out, true);
  }
  return out;
}

void add_classes(Entries& entries) {
  // LibTorch's reads the least and the largest class first.
  entries.add(
      "aten::one_hot", +[](const Tensor& x, std::int64_t count) {
        const std::int64_t all = count < 0 ? x.max().item<std::int64_t>() + 1 : count;
        return (x.unsqueeze(-1) == at::arange(all, x.options())).to(at::kLong);
      });
}

void add_padding(Entries& entries) {
  for (const char* name :
       {"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"})
    entries.add(
        name, +[](const Tensor& x, const Ints& padding) { return padded(x, padding, true); });
  for (const char* name :
       {"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"})
    entries.add(
        name, +[](const Tensor& x, const Ints& padding) { return padded(x, padding, false); });
  for (const char* name : {"aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward",
                           "aten::reflection_pad3d_backward"})
    entries.add(
        name, +[](const Tensor& g, const Tensor& x, const Ints& padding) {
          return padded_backward(g, x, padding, true);
        });
}

using Scale = std::optional<double>;

// The nearest element for each place of a dimension that has another size, as eager finds it: by
// float32 numbers, from the middle of each place where `exact`.
Tensor nearest(const Tensor& x, std::int64_t dim, std::int64_t size, Scale scale, bool exact) {
  const std::int64_t given = x.size(dim);
  const float step = scale && *scale > 0 ? static_cast<float>(1.0 / *scale)
                                         : static_cast<float>(given) / static_cast<float>(size);
  const Tensor place = at::arange(size, x.options().dtype(at::kFloat));
  const Tensor from = ((exact ? place + 0.5 : place) * step).floor().to(at::kLong);
  return at::index(x, at_dim(x, dim, from.clamp_max(given - 1)));
}

template <bool kExact>
Tensor nearest1d(const Tensor& x, const Ints& size, Scale scale) {
  return nearest(x, 2, size.at(0), scale, kExact);
}
template <bool kExact>
Tensor nearest2d(const Tensor& x, const Ints& size, Scale down, Scale across) {
  return nearest(nearest(x, 2, size.at(0), down, kExact), 3, size.at(1), across, kExact);
}
template <bool kExact>
Tensor nearest3d(const Tensor& x, const Ints& size, Scale deep, Scale down, Scale across) {
  const Tensor planes = nearest(x, 2, size.at(0), deep, kExact);
  return nearest(nearest(planes, 3, size.at(1), down, kExact), 4, size.at(2), across, kExact);
}

void add_resampling(Entries& entries) {
  entries.add("aten::upsample_nearest1d", &nearest1d<false>);
  entries.add("aten::upsample_nearest2d", &nearest2d<false>);
  entries.add("aten::upsample_nearest3d", &nearest3d<false>);
  entries.add("aten::_upsample_nearest_exact1d", &nearest1d<true>);
  entries.add("aten::_upsample_nearest_exact2d", &nearest2d<true>);
  entries.add("aten::_upsample_nearest_exact3d", &nearest3d<true>);
  entries.add(
      "aten::upsample_linear1d",
      +[](const Tensor& x, const Ints& size, bool align_corners, Scale scale) {
        return at::upsample_bilinear2d(x.unsqueeze(2), {1, size.at(0)}, align_corners, 1.0, scale)
            .squeeze(2);
      });
}

}  // namespace

void add_indexing(Entries& entries) {
  add_resampling(entries);
  add_masks(entries);
  add_classes(entries);
  add_indices(entries);
  add_padding(entries);
}

}  // namespace fx::core
