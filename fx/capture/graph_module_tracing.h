#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "fx/capture/trace_arg.h"
#include "fx/graph/call_recorder.h"
#include "fx/graph/graph.h"
#include "fx/graph/graph_module.h"

namespace fx {

class Tracer;

namespace detail {

/// What a program gave as a value; proxies as tensors without values.
/// @throws TraceError kBadResult for slices, modules and objects.
Value value_of(const TraceArg& arg);

/// `value` as something to record: tensors, also nested ones, as what the trace knows of them.
/// @throws TraceError kBadArgument for what no graph can hold.
TraceArg traced(const Value& value);

/// Tracing through GraphModules: their nodes are recorded again, one by one, as Python's generated
/// code would do it, so that wrapped functions stay calls, submodules are leaves or not as the
/// tracer says, and constants keep their names.
class GraphModuleTracing final : public CallRecorder {
 public:
  explicit GraphModuleTracing(Tracer& tracer) : tracer_(tracer) {}

  std::optional<Value> record_call_of(GraphModule& module, Values& inputs,
                                      KwValues& kwargs) override;

  /// Records the nodes of `module` on flat inputs and gives what its output returns.
  TraceArg trace_through(const GraphModule& module, Values inputs, KwValues kwargs);
  /// The same with `input` giving what stands for each placeholder.
  TraceArg trace_nodes(const GraphModule& module,
                       const std::function<TraceArg(const Node&)>& input);

 private:
  Tracer& tracer_;
};

}  // namespace detail
}  // namespace fx
