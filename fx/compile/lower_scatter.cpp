#include <algorithm>
#include <optional>

#include "fx/compile/lower_index.h"
#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"

/// Values that are stored at, or added to, places that a tensor holds.
namespace fx::loops {
namespace {

// The tensor that is written into.
Num written(const Call& call) {
  const Num x = call.tensor("self");
  if (x.dim() == 0) call.unsupported("a tensor without dimensions");
  for (Dim dim : x.tensor().dims)
    if (call.program().shapes().example(dim) == 0) call.unsupported("a scatter into nothing");
  return x;
}

Tensors scattered(const Call& call, const Num& x, const Num& values, std::vector<Affine> at,
                  std::vector<int> gathered, const std::vector<Num>& index,
                  std::optional<Reduce> reduce) {
  if (reduce && is_bool(x.type())) call.unsupported("a sum of bools as bool");
  // In which precision eager adds them up depends on the sizes.
  if (reduce && *reduce != Reduce::kMax && *reduce != Reduce::kMin &&
      c10::isReducedFloatingType(x.type()))
    call.unsupported("a sum of halves at places");
  if (values.type() != x.type()) call.unsupported("values of another dtype");
  Tensors indices;
  for (const Num& i : index) indices.push_back(i.tensor());
  for (Dim dim : values.tensor().dims)
    if (call.program().shapes().example(dim) == 0) call.unsupported("a scatter of nothing");
  const Num numbers = reduce ? values.cast(opmath(x.type())) : values;
  return {call.program().scatter(x.tensor(), numbers.tensor(), std::move(at), std::move(gathered),
                                 indices, reduce)};
}

// With an index for each element.
Tensors scatter(const Call& call, std::optional<Reduce> reduce) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const Num x = written(call);
  const Num index = indices_of(call, call.tensor("index"));
  if (index.dim() != x.dim()) call.unsupported("an index of other dimensions");
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  const Dims& dims = index.tensor().dims;
  std::vector<Affine> at = identity_index(x.dim());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<std::int64_t>(d) == dim)
      at[d] = {};
    else
      assume_at_most(shapes, dims[d], x.tensor().dims[d]);
    // What does not broadcast may not be taken for a loop.
    if (dims[d] == kOne && static_cast<std::int64_t>(d) != dim) at[d] = {};
  }
  Num values = index;
  if (call.has("src")) {
    const Num source = call.tensor("src");
    if (source.dim() != x.dim()) call.unsupported("values of other dimensions");
    std::vector<Affine> all = identity_index(x.dim());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      assume_at_most(shapes, dims[d], source.tensor().dims[d]);
      if (dims[d] == kOne) all[d] = {};
    }
    values = {program, program.view(source.tensor(), dims, std::move(all))};
  } else {
    values = call.checked_number("value", x.type()).cast(x.type()).expand(dims);
  }
  return scattered(call, x, values, std::move(at), {static_cast<int>(dim)},
                   {index_in(x, dim, index, false)}, reduce);
}

std::optional<Reduce> reduction(const Call& call) {
  if (!call.has("reduce")) return std::nullopt;
  const std::string name = call.text("reduce");
  if (name == "add" || name == "sum") return Reduce::kSum;
  if (name == "multiply" || name == "prod") return Reduce::kProd;
  if (name == "amax") return Reduce::kMax;
  if (name == "amin") return Reduce::kMin;
  call.unsupported("a scatter of means");
}

// With an index for each slice.
Tensors scatter_slices(const Call& call, std::optional<Reduce> reduce) {
  const Num x = written(call);
  const Num index = indices_of(call, call.tensor("index"));
  if (index.dim() != 1) call.unsupported("an index of other than one dimension");
  if (!reduce && call.tensor("index").type() != c10::ScalarType::Long)
    call.unsupported("indices that are no int64");
  const std::int64_t dim = wrap_dim(call.integer("dim"), x.dim());
  const Num source = call.tensor("source");
  if (source.dim() != x.dim()) call.unsupported("values of other dimensions");
  if (call.has("alpha") && call.scalar("alpha").toDouble() != 1)
    call.unsupported("a factor of the values");
  Shapes& shapes = call.program().shapes();
  std::vector<Affine> at = identity_index(x.dim());
  Num places = index_in(x, dim, index, false);
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (d == dim)
      shapes.unify(source.tensor().dims[k], index.tensor().dims[0]);
    else
      shapes.unify(source.tensor().dims[k], x.tensor().dims[k]);
    if (d == dim || x.tensor().dims[k] == kOne) at[k] = {};
    if (d > dim) places = {call.program(), call.program().unsqueeze(places.tensor(), places.dim())};
  }
  return scattered(call, x, source, std::move(at), {static_cast<int>(dim)}, {places}, reduce);
}

}  // namespace

Tensors lower_scatter(const Call& call) { return scatter(call, reduction(call)); }
Tensors lower_scatter_add(const Call& call) { return scatter(call, Reduce::kSum); }
Tensors lower_scatter_reduce(const Call& call) {
  if (!call.flag("include_self", true))
    call.unsupported("a scatter that leaves out what was there");
  return scatter(call, reduction(call));
}
Tensors lower_index_add(const Call& call) { return scatter_slices(call, Reduce::kSum); }
Tensors lower_index_copy(const Call& call) { return scatter_slices(call, std::nullopt); }

Tensors lower_index_put(const Call& call) {
  TensorProgram& program = call.program();
  Shapes& shapes = program.shapes();
  const Num x = written(call);
  const IndexList list = index_list(call, x);
  const auto count = static_cast<std::int64_t>(list.indices.size());
  Dims chosen;
  for (const Num& i : list.indices) chosen = shapes.broadcast(chosen, i.tensor().dims);
  const auto added = static_cast<std::int64_t>(chosen.size());
  const Dims& sizes = x.tensor().dims;
  Dims dims(sizes.begin(), sizes.begin() + list.first);
  dims.insert(dims.end(), chosen.begin(), chosen.end());
  dims.insert(dims.end(), sizes.begin() + list.first + count, sizes.end());
  std::vector<Affine> at(static_cast<std::size_t>(x.dim()));
  std::vector<int> gathered;
  std::vector<Num> places;
  for (std::int64_t d = 0; d < x.dim(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (d >= list.first && d < list.first + count) {
      Tensor place =
          index_in(x, d, list.indices[static_cast<std::size_t>(d - list.first)], true).tensor();
      place = program.expand(place, chosen);
      for (std::int64_t e = list.first + count; e < x.dim(); ++e)
        place = program.unsqueeze(place, place.dim());
      gathered.push_back(static_cast<int>(d));
      places.emplace_back(program, std::move(place));
    } else if (sizes[k] != kOne) {
      at[k] = Affine::of_axis(static_cast<int>(d < list.first ? d : d - count + added));
    }
  }
  const Num values = call.tensor("values").expand(dims);
  return scattered(call, x, values, std::move(at), std::move(gathered), places,
                   call.flag("accumulate", false) ? std::optional(Reduce::kSum) : std::nullopt);
}

}  // namespace fx::loops
