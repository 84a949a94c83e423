#include <algorithm>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_reduce.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Elements chosen by indices that a tensor holds, and the indices of chosen elements.
namespace fx::loops {

Num indices_of(const Call& call, const Num& index) {
  if (index.type() != c10::ScalarType::Long && index.type() != c10::ScalarType::Int)
    call.unsupported("indices that are no integers");
  return index.cast(c10::ScalarType::Long);
}

Num index_in(const Num& x, std::int64_t dim, Num index, bool wraps) {
  const std::int64_t dims[] = {dim};
  const Num size = x.extent(dims);
  if (wraps) index = select(index < 0, index + size, index);
  return index.apply(Op::kBounded, size);
}

IndexList index_list(const Call& call, const Num& x) {
  const LowerArg* list = call.find("indices");
  if (list == nullptr || static_cast<std::int64_t>(list->items.size()) > x.dim())
    call.unsupported("other indices");
  IndexList out;
  for (std::size_t d = 0; d < list->items.size(); ++d) {
    const LowerArg& item = list->items[d];
    if (!item.tensor && item.constant.isNone()) continue;
    if (!item.tensor || item.is_number) call.unsupported("a constant tensor");
    if (out.indices.empty()) out.first = static_cast<std::int64_t>(d);
    // Indices that do not stand together go to the front.
    if (static_cast<std::int64_t>(d) != out.first + static_cast<std::int64_t>(out.indices.size()))
      call.unsupported("indices that do not stand together");
    out.indices.push_back(indices_of(call, Num(call.program(), *item.tensor)));
  }
  if (out.indices.empty() || out.indices.size() > 2)
    call.unsupported("other than one or two indices");
  return out;
}

namespace {

// `x` with dimensions [first, first + count) replaced by the dimensions of the indices, which count
// from the end where they are negative if `wraps`.
Tensor replaced(const Call& call, const Num& x, std::int64_t first, std::vector<Num> index,
                bool wraps) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const auto count = static_cast<std::int64_t>(index.size());
  Dims chosen;
  for (const Num& i : index) chosen = shapes.broadcast(chosen, i.tensor().dims);
  const auto added = static_cast<std::int64_t>(chosen.size());
  Dims dims(x.tensor().dims.begin(), x.tensor().dims.begin() + first);
  dims.insert(dims.end(), chosen.begin(), chosen.end());
  dims.insert(dims.end(), x.tensor().dims.begin() + first + count, x.tensor().dims.end());
  std::vector<Affine> at;
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    if (d >= first && d < first + count)
      at.emplace_back();
    else
      at.push_back(Affine::of_axis(static_cast<int>(d < first ? d : d - count + added)));
  }
  std::vector<int> gathered;
  Tensors values;
  for (std::int64_t k = 0; k < count; ++k) {
    Tensor value = index_in(x, first + k, index[static_cast<std::size_t>(k)], wraps).tensor();
    // Behind the dimensions that follow in the result.
    value = program.expand(value, chosen);
    for (std::int64_t d = first + count; d < x.dim(); ++d)
      value = program.unsqueeze(value, value.dim());
    gathered.push_back(static_cast<int>(first + k));
    values.push_back(std::move(value));
  }
  return program.gather(x.tensor(), std::move(dims), std::move(at), std::move(gathered), values);
}

// Where the elements of the dimensions `dims`, counted as one, have their largest or smallest value
// first; NaN counts as beyond all.
Num first_extremum(const Call& call, const Num& x, const std::vector<std::int64_t>& dims,
                   const Num& extremum) {
  TensorProgram& program = call.program();
  Num place = call.number(c10::ScalarType::Long, 0);
  std::vector<std::int64_t> behind;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    const Num here = index_along(program, x.tensor().dims, static_cast<std::size_t>(*dim));
    place = behind.empty() ? here : here * x.extent(behind) + place;
    behind.push_back(*dim);
  }
  Num hit = x == extremum;
  if (is_floating(x.type())) hit = hit | is_nan(x);
  return select(hit, place, x.extent(dims)).expand(x.tensor().dims);
}

struct Extremum {
  Num value;
  Num index;
};

Extremum extremum(const Call& call, const std::vector<std::int64_t>& dims, bool max, bool keepdim) {
  const Num self = call.tensor("self");
  for (std::int64_t dim : dims)
    if (call.program().shapes().example(self.tensor().dims[static_cast<std::size_t>(dim)]) == 0)
      call.unsupported("the extremum of nothing");
  const Num x = self.cast(is_bool(self.type()) ? c10::ScalarType::Byte : opmath(self.type()));
  const Reduce reduce = max ? Reduce::kMax : Reduce::kMin;
  const Num whole = x.reduce(reduce, dims, true);
  const Num place = first_extremum(call, x, dims, whole);
  return {x.reduce(reduce, dims, keepdim).cast(self.type()),
          place.reduce(Reduce::kMin, dims, keepdim)};
}

Tensors arg_extremum(const Call& call, bool max) {
  const std::int64_t rank = call.tensor("self").dim();
  if (is_bool(call.tensor("self").type())) call.unsupported("the place of a bool");
  const std::vector<std::int64_t> dims =
      call.has("dim") ? wrap_dims({call.integer("dim")}, rank) : all_dims(rank);
  return {extremum(call, dims, max, call.flag("keepdim")).index.tensor()};
}

Tensors extremum_along(const Call& call, bool max) {
  const std::int64_t rank = call.tensor("self").dim();
  const Extremum found =
      extremum(call, wrap_dims({call.integer("dim")}, rank), max, call.flag("keepdim"));
  return {found.value.tensor(), found.index.tensor()};
}

}  // namespace

Tensors lower_embedding(const Call& call) {
  const Num weight = call.tensor("weight");
  if (weight.dim() != 2) call.unsupported("weights of other than two dimensions");
  return {replaced(call, weight, 0, {indices_of(call, call.tensor("indices"))}, false)};
}

Tensors lower_index_select(const Call& call) {
  const Num x = call.tensor("self");
  const Num index = indices_of(call, call.tensor("index"));
  if (x.dim() == 0 || index.dim() != 1) call.unsupported("an index of other than one dimension");
  return {replaced(call, x, wrap_dim(call.integer("dim"), x.dim()), {index}, false)};
}

Tensors lower_index(const Call& call) {
  const Num x = call.tensor("self");
  IndexList list = index_list(call, x);
  return {replaced(call, x, list.first, std::move(list.indices), true)};
}

Tensors lower_gather(const Call& call) {
  const Num x = call.tensor("self");
  const Num index = indices_of(call, call.tensor("index"));
  if (x.dim() == 0 || index.dim() != x.dim()) call.unsupported("an index of other dimensions");
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  Shapes& shapes = call.program().shapes();
  std::vector<Affine> at = identity_index(x.dim());
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (d == dim)
      at[k] = {};
    else
      assume_at_most(shapes, index.tensor().dims[k], x.tensor().dims[k]);
  }
  const Tensor value = index_in(x, dim, index, false).tensor();
  return {call.program().gather(x.tensor(), index.tensor().dims, std::move(at),
                                {static_cast<int>(dim)}, {&value, 1})};
}

Tensors lower_argmax(const Call& call) { return arg_extremum(call, true); }
Tensors lower_argmin(const Call& call) { return arg_extremum(call, false); }
Tensors lower_max_dim(const Call& call) { return extremum_along(call, true); }
Tensors lower_min_dim(const Call& call) { return extremum_along(call, false); }

}  // namespace fx::loops
