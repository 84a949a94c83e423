// Items and attributes of values: object[index], object[index] = value, getattr.
#include <ATen/ATen.h>
#include <ATen/TensorIndexing.h>

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/ops/builtin_values.h"
#include "fx/ops/builtins.h"

namespace fx {

[[noreturn]] void wrong_operands(std::string_view name, const Values& args) {
  std::string text = "unsupported operands for " + std::string(name) + ": ";
  for (std::size_t i = 0; i < args.size(); ++i) text += (i ? " and " : "") + describe(args[i]);
  throw RunError(ErrorCode::kWrongType, text);
}

namespace {

at::indexing::TensorIndex tensor_index(const Value& index) {
  using at::indexing::TensorIndex;
  auto bound = [](const Value& v) {
    return v.isNone() ? std::optional<c10::SymInt>() : std::optional<c10::SymInt>(as_int(v));
  };
  if (index.isNone()) return TensorIndex(at::indexing::None);
  if (is_ellipsis(index)) return TensorIndex(at::indexing::Ellipsis);
  if (index.isBool()) return TensorIndex(index.toBool());
  if (index.isInt()) return TensorIndex(index.toInt());
  if (index.isTensor()) return TensorIndex(index.toTensor());
  if (const Slice* slice = as_slice(index))
    return TensorIndex(
        at::indexing::Slice(bound(slice->start), bound(slice->stop), bound(slice->step)));
  if (index.isList()) {
    Values items = elements(index);
    std::vector<std::int64_t> ints;
    for (const Value& item : items) {
      if (!item.isInt()) wrong_operands("operator.getitem", {index});
      ints.push_back(item.toInt());
    }
    return TensorIndex(at::tensor(ints, at::kLong));
  }
  wrong_operands("operator.getitem", {index});
}

std::vector<at::indexing::TensorIndex> tensor_indices(const Value& index) {
  std::vector<at::indexing::TensorIndex> out;
  if (index.isTuple())
    for (const Value& item : index.toTupleRef().elements()) out.push_back(tensor_index(item));
  else
    out.push_back(tensor_index(index));
  return out;
}

Value get_list_item(const Value& object, const Value& index) {
  Values items = elements(object);
  const auto size = static_cast<std::int64_t>(items.size());
  if (is_int(index)) {
    const std::int64_t i = as_int(index);
    if (i < -size || i >= size)
      throw RunError(ErrorCode::kWrongType,
                     "index " + std::to_string(i) + " is out of range for a " + describe(object));
    return items[static_cast<std::size_t>(i < 0 ? i + size : i)];
  }
  const Slice* slice = as_slice(index);
  if (!slice) wrong_operands("operator.getitem", {object, index});
  // A step beyond the list is as good as one just beyond it, and cannot overflow.
  const std::int64_t step =
      std::clamp(slice->step.isNone() ? 1 : as_int(slice->step), -size - 1, size + 1);
  if (step == 0) throw RunError(ErrorCode::kWrongType, "slice step cannot be zero");
  auto clamp = [&](const Value& v, std::int64_t missing) {
    if (v.isNone()) return missing;
    std::int64_t i = as_int(v);
    if (i < 0) i += size;
    return std::clamp<std::int64_t>(i, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  const std::int64_t start = clamp(slice->start, step > 0 ? 0 : size - 1);
  const std::int64_t stop = clamp(slice->stop, step > 0 ? size : -1);
  Values picked;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
    picked.push_back(items[static_cast<std::size_t>(i)]);
  if (object.isTuple()) return c10::ivalue::Tuple::create(std::move(picked));
  c10::List<Value> list(c10::AnyType::get());
  for (Value& item : picked) list.push_back(std::move(item));
  return list;
}

}  // namespace

Value get_item(const Value& object, const Value& index) {
  if (object.isTensor()) return object.toTensor().index(tensor_indices(index));
  if (is_sequence(object)) return get_list_item(object, index);
  if (object.isGenericDict()) {
    auto dict = object.toGenericDict();
    auto found = dict.find(index);
    if (found == dict.end())
      throw RunError(ErrorCode::kWrongType, "the dict has no key " + to_string(index));
    return found->value();
  }
  wrong_operands("operator.getitem", {object, index});
}

Value get_attribute(const Value& object, std::string_view name) {
  if (object.isTensor()) {
    const at::Tensor& t = object.toTensor();
    if (name == "shape") return Value(t.sizes().vec());
    if (name == "dtype") return static_cast<std::int64_t>(t.scalar_type());
    if (name == "device") return t.device();
    if (name == "layout") return static_cast<std::int64_t>(t.layout());
    if (name == "ndim") return t.dim();
    if (name == "T") return t.numpy_T();
    if (name == "mT") return t.mT();
    if (name == "H") return t.matrix_H();
    if (name == "mH") return t.mH();
    if (name == "real") return at::real(t);
    if (name == "imag") return at::imag(t);
    if (name == "data") return t.detach();
    if (name == "grad") return t.grad().defined() ? Value(t.grad()) : Value();
    if (name == "requires_grad") return t.requires_grad();
    if (name == "is_leaf") return t.is_leaf();
    if (name == "is_cuda") return t.is_cuda();
    if (name == "itemsize") return static_cast<std::int64_t>(t.itemsize());
    if (name == "nbytes") return static_cast<std::int64_t>(t.nbytes());
  }
  throw RunError(ErrorCode::kWrongType,
                 "a " + describe(object) + " has no attribute " + str_repr(name));
}

void set_item(const Value& object, const Value& index, const Value& value) {
  if (!object.isTensor()) wrong_operands("operator.setitem", {object, index, value});
  at::Tensor self = object.toTensor();
  if (value.isTensor())
    self.index_put_(tensor_indices(index), value.toTensor());
  else
    self.index_put_(tensor_indices(index), value.toScalar());
}

}  // namespace fx
