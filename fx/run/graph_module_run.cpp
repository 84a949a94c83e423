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
  executable_ = std::make_shared<const Executable>(*this);
  compiled_version_ = graph_->version();
  recompile_nested(*this);
}

bool GraphModule::needs_recompile() const noexcept {
  return !executable_ || compiled_version_ != graph_->version();
}

Value GraphModule::forward(Values inputs, KwValues kwargs) {
  if (detail::CallRecorder* recorder = detail::call_recorder())
    if (auto recorded = recorder->record_call_of(*this, inputs, kwargs)) return *recorded;
  return executable_->run(*this, constants_, std::move(inputs), std::move(kwargs));
}

}  // namespace fx
