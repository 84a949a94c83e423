#include "fx/ops/schemas.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "fx/ops/op_info.h"
#include "fx/ops/quantized_decomposed.h"

namespace fx {

std::vector<const c10::FunctionSchema*> schemas_of(const Function& function) {
  std::vector<const c10::FunctionSchema*> schemas;
  for (const Overload& overload : OpInfo::of(function).overloads)
    schemas.push_back(&overload.handle.schema());
  return schemas;
}

std::vector<std::string> registered_operators(std::string_view name_space) {
  register_quantized_decomposed();
  std::vector<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name_space.empty() && name.getNamespace() != name_space) continue;
    names.push_back(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace fx
