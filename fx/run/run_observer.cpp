#include "fx/run/run_observer.h"

#include <algorithm>
#include <utility>

#include "fx/ops/value_tensors.h"

namespace fx {
namespace {

RunObserver*& innermost() noexcept {
  thread_local RunObserver* observer = nullptr;
  return observer;
}

// The slots of an operand, each once.
void add_slots(const Operand& operand, std::vector<Slot>& slots) {
  for (const Operand& item : operand.items) add_slots(item, slots);
  if (operand.kind == Operand::Kind::kSlot &&
      std::find(slots.begin(), slots.end(), operand.slot) == slots.end())
    slots.push_back(operand.slot);
}

const void* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace

RunObserver* RunObserver::current() noexcept { return innermost(); }

RunObserver::Scope::Scope(RunObserver& observer) noexcept
    : outer_(std::exchange(innermost(), &observer)) {}

RunObserver::Scope::~Scope() { innermost() = outer_; }

StepTimer::StepTimer(RunObserver& observer, const Plan& plan, std::size_t step, const Values& slots)
    : observer_(observer), event_{.plan = plan, .step = step} {
  std::vector<Slot> read;
  for (const Operand& operand : plan.steps()[step].args) add_slots(operand, read);
  for (const auto& [key, operand] : plan.steps()[step].kwargs) add_slots(operand, read);
  for (Slot slot : read) {
    if (slot >= slots.size()) continue;
    for_each_tensor(slots[slot], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      event_.bytes_read += bytes_of(tensor);
      inputs_.push_back(storage_of(tensor));
    });
  }
  start_ = std::chrono::steady_clock::now();
}

void StepTimer::done(const Value& result) {
  event_.time = std::chrono::steady_clock::now() - start_;
  bool is_view = false;
  for_each_tensor(result, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const void* storage = storage_of(tensor);
    if (storage && std::find(inputs_.begin(), inputs_.end(), storage) != inputs_.end())
      is_view = true;
    else if (event_.plan.steps()[event_.step].kind != Step::Kind::kAttr)
      event_.bytes_written += bytes_of(tensor);
  });
  // A view moves nothing, whatever it is a view of.
  if (is_view && event_.bytes_written == 0) event_.bytes_read = 0;
  observer_.on_step(event_);
}

}  // namespace fx
