#include "fx/graph/call_recorder.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_access.h"
#include "fx/run/executable.h"

namespace fx {
namespace {

// GraphModules at any depth, but not what is below them: they take care of it themselves.
void recompile_nested(const torch::nn::Module& module) {
  for (const auto& child : detail::children(module)) {
    if (!child.value()) continue;
    if (auto* nested = dynamic_cast<GraphModule*>(child.value().get())) {
      if (nested->needs_recompile())
        nested->recompile();
      else
        recompile_nested(*nested);
    } else {
      recompile_nested(*child.value());
    }
  }
}

}  // namespace

void GraphModule::recompile() {
  if (lazy_recompile_)
    build_waits_ = true;
  else
    force_recompile();
}

void GraphModule::force_recompile() {
  executable_ = std::make_shared<const Executable>(*this);
  compiled_version_ = graph_->version();
  recompile_nested(*this);
  build_waits_.store(false, std::memory_order_release);  // after what callers read once they see it
}

void GraphModule::set_lazy_recompile(bool lazy) {
  lazy_recompile_ = lazy;
  if (!lazy && build_waits_) force_recompile();
}

void GraphModule::build_waiting() {
  const std::lock_guard lock(build_mutex_);
  if (build_waits_) force_recompile();
}

bool GraphModule::needs_recompile() const noexcept {
  return build_waits_ || !executable_ || compiled_version_ != graph_->version();
}

Value GraphModule::forward(Values inputs, KwValues kwargs) {
  if (detail::CallRecorder* recorder = detail::call_recorder())
    if (auto recorded = recorder->record_call_of(*this, inputs, kwargs)) return *recorded;
  if (build_waits_.load(std::memory_order_acquire)) build_waiting();
  return executable_->run(*this, constants_, std::move(inputs), std::move(kwargs));
}

}  // namespace fx
