#include "fx/ops/device_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "fx/base/error.h"
#include "fx/ops/higher_order.h"

namespace fx {
namespace {

constexpr std::string_view kMixedDevices[] = {
#define FX_MIXED_DEVICES(name) name,
#include "fx/ops/mixed_devices.def"
#undef FX_MIXED_DEVICES
};
static_assert(std::is_sorted(std::begin(kMixedDevices), std::end(kMixedDevices)));

bool takes_several_devices(std::string_view base_name) {
  return std::binary_search(std::begin(kMixedDevices), std::end(kMixedDevices), base_name);
}

// The first two different devices among tensors.
struct DevicePair {
  std::optional<c10::Device> first;
  std::optional<c10::Device> other;

  void add(const Value& value) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined()) return;
      const c10::Device device = tensor.device();
      if (first == device) return;
      if (!first && !device.is_cpu()) {
        first = device;
      } else if (!device.is_cpu() || tensor.dim() != 0) {
        (first ? other : first) = device;
      }
    } else if (value.isList()) {
      if (value.isIntList() || value.isDoubleList() || value.isBoolList()) return;
      for (const Value& item : value.toListRef()) add(item);
    } else if (value.isTuple()) {
      for (const Value& item : value.toTupleRef().elements()) add(item);
    }
  }
};

std::string device_list(const Value& value) {
  if (value.isTensor())
    return value.toTensor().defined() ? value.toTensor().device().str() : std::string();
  std::string out;
  if (is_sequence(value)) {
    for (const Value& item : elements(value)) {
      const std::string inner = device_list(item);
      if (!inner.empty()) out += (out.empty() ? "" : ", ") + inner;
    }
  }
  return out;
}

DevicePair devices_of(const Values& args, const KwValues& kwargs) {
  DevicePair found;
  for (const Value& value : args) found.add(value);
  for (const KwValue& kwarg : kwargs) found.add(kwarg.value);
  return found;
}

[[noreturn]] void throw_mismatch(const DevicePair& found, const Values& args,
                                 const KwValues& kwargs) {
  std::string text =
      "Expected all tensors to be on the same device, but found at least two devices, " +
      found.first->str() + " and " + found.other->str() + "! (";
  auto add = [&](const std::string& name, const Value& value) {
    const std::string devices = device_list(value);
    if (!devices.empty()) text += (text.ends_with('(') ? "" : ", ") + name + " on " + devices;
  };
  for (std::size_t i = 0; i < args.size(); ++i) add("argument " + std::to_string(i + 1), args[i]);
  for (const KwValue& kwarg : kwargs) add(kwarg.key.str(), kwarg.value);
  throw RunError(ErrorCode::kDeviceMismatch, text + ")");
}

}  // namespace

bool wants_one_device(const Function& function) {
  if (function.kind() == FunctionKind::kWrapped || find_higher_order(function)) return false;
  if (function.kind() == FunctionKind::kOperator && !function.name().starts_with("aten::"))
    return false;
  return !takes_several_devices(function.base_name());
}

bool wants_one_device_method(std::string_view name) { return !takes_several_devices(name); }

bool share_device(const torch::jit::Stack& stack) {
  DevicePair found;
  for (const Value& value : stack) found.add(value);
  return !found.other;
}

void check_devices(const Function& function, const Values& args, const KwValues& kwargs) {
  const DevicePair found = devices_of(args, kwargs);
  if (found.other && wants_one_device(function)) throw_mismatch(found, args, kwargs);
}

void check_devices_of_method(std::string_view name, const Values& args, const KwValues& kwargs) {
  const DevicePair found = devices_of(args, kwargs);
  if (found.other && !takes_several_devices(name)) throw_mismatch(found, args, kwargs);
}

}  // namespace fx
