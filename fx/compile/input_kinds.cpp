#include "fx/compile/input_kinds.h"

#include <algorithm>

#include "fx/ops/value_tensors.h"

namespace fx::loops {

InputKinds::InputKinds(const GraphModule& module, const Values& inputs) {
  for (const Value& input : inputs)
    for_each_tensor(input, [&](const at::Tensor& tensor) { inputs_.push_back(kind_of(tensor)); });
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) attributes_.emplace_back(tensor, kind_of(tensor));
  };
  for (const at::Tensor& parameter : module.parameters()) add(parameter);
  for (const at::Tensor& buffer : module.buffers()) add(buffer);
  for (const auto& [path, tensor] : module.constants()) add(tensor);
}

InputKinds::Kind InputKinds::kind_of(const at::Tensor& tensor) {
  Kind kind{tensor.defined() ? tensor.scalar_type() : c10::ScalarType::Undefined, -1, 0};
  if (!tensor.defined()) return kind;
  kind.dim = tensor.dim();
  for (std::int64_t i = 0; i < std::min<std::int64_t>(kind.dim, 64); ++i)
    kind.ones |= static_cast<std::uint64_t>(tensor.size(i) == 1) << i;
  return kind;
}

bool InputKinds::hold_for(const Values& inputs) const {
  std::size_t count = 0;
  bool same = true;
  for (const Value& input : inputs)
    for_each_tensor(input, [&](const at::Tensor& tensor) {
      same = same && count < inputs_.size() && inputs_[count] == kind_of(tensor);
      ++count;
    });
  return same && count == inputs_.size() &&
         std::ranges::all_of(attributes_, [](const auto& attribute) {
           return kind_of(attribute.first) == attribute.second;
         });
}

}  // namespace fx::loops
