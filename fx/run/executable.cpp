#include "fx/run/executable.h"

#include "fx/base/error.h"
#include "fx/graph/node_error.h"
#include "fx/ops/stop.h"
#include "fx/run/frame.h"
#include "fx/run/run_observer.h"
#include "fx/run/step_runner.h"

namespace fx {

Executable::Executable(const GraphModule& module)
    : graph_(module.graph_ptr()), plan_(module.graph()) {
  for (const Step& step : plan_.steps()) {
    step_path_.push_back(static_cast<std::uint32_t>(paths_.size()));
    if (step.kind == Step::Kind::kAttr || step.kind == Step::Kind::kModule)
      paths_.emplace_back(step.target.str());
  }
}

Value Executable::run(const GraphModule& module, const Constants& constants, Values inputs,
                      KwValues kwargs) const {
  flatten_inputs(module, plan_.signature(), inputs, kwargs);
  return unflatten_output(module,
                          run_flat(module, constants, std::move(inputs), std::move(kwargs)));
}

void Executable::bind(Values inputs, KwValues kwargs, Values& slots) const {
  const InputSignature& signature = plan_.signature();
  BoundInputs bound(signature, std::move(inputs), std::move(kwargs));
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const auto& parameter = signature.parameters[i];
    try {
      Value value =
          bound.take(parameter.target, parameter.has_default ? &parameter.default_value : nullptr);
      if (const Slot slot = plan_.input_slots()[i]; slot != kNoSlot) slots[slot] = std::move(value);
    } catch (...) {
      rethrow_for_node(*parameter.node, {});
    }
  }
}

Value Executable::run_flat(const GraphModule& module, const Constants& constants, Values inputs,
                           KwValues kwargs) const {
  FrameLease frame(plan_.num_slots());
  if (fits_placeholders(plan_.signature(), inputs, kwargs)) [[likely]]
    store_inputs(plan_, std::move(inputs), frame->slots);
  else
    bind(std::move(inputs), std::move(kwargs), frame->slots);

  StepRunner runner(module, constants, *frame);
  const StopScope* stop = StopScope::current();
  RunObserver* observer = RunObserver::current();
  const Step* step = nullptr;
  try {
    const std::vector<Step>& steps = plan_.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step = &steps[i];
      throw_if_stopped(stop);
      if (observer) [[unlikely]] {
        StepTimer timer(*observer, plan_, i, frame->slots);
        Value value = runner.evaluate(*step, path_of(i));
        timer.done(value);
        runner.finish(*step, std::move(value));
        continue;
      }
      runner.finish(*step, runner.evaluate(*step, path_of(i)));
    }
    step = nullptr;
    if (!plan_.output_error().empty())
      throw RunError(ErrorCode::kMissingValue, plan_.output_error());
  } catch (...) {
    rethrow_for_step(step, runner);
  }
  return runner.take(plan_.output());
}

void Executable::rethrow_for_step(const Step* step, const StepRunner& runner) const {
  const bool edited = graph_->version() != plan_.graph_version();
  rethrow_for_node(step ? *step->node : *plan_.output_node(),
                   step ? runner.inputs_of(*step) : NamedValues(),
                   edited ? "The graph was edited since it was compiled: the node may have run in "
                            "an older form."
                          : "");
}

}  // namespace fx
