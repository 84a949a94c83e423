#include "fx/interpret/value_map.h"

#include <ATen/ATen.h>

#include "fx/graph/argument_value.h"

namespace fx {

Value map_tensors(const Value& value, TensorMap map) {
  auto mapped = [&](Values items) {
    for (Value& item : items) item = map_tensors(item, map);
    return items;
  };
  if (value.isTensor()) return map(value.toTensor());
  if (value.isList()) return make_list(mapped(elements(value)));
  if (value.isTuple()) return c10::ivalue::Tuple::create(mapped(elements(value)));
  if (value.isGenericDict()) {
    const auto from = value.toGenericDict();
    c10::impl::GenericDict dict(from.keyType(), c10::AnyType::get());
    for (const auto& item : from) dict.insert(item.key(), map_tensors(item.value(), map));
    return dict;
  }
  if (const Slice* slice = as_slice(value))
    return make_slice(map_tensors(slice->start, map), map_tensors(slice->stop, map),
                      map_tensors(slice->step, map));
  return value;
}

void map_tensors(Values& args, KwValues& kwargs, TensorMap map) {
  for (Value& value : args) value = map_tensors(value, map);
  for (KwValue& kwarg : kwargs) kwarg.value = map_tensors(kwarg.value, map);
}

Value clone_tensors(const Value& value) {
  return map_tensors(value, [](const at::Tensor& tensor) -> Value {
    return tensor.defined() ? tensor.detach().clone().set_requires_grad(tensor.requires_grad())
                            : tensor;
  });
}

}  // namespace fx
