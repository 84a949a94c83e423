#pragma once

#include <optional>

#include "fx/ops/value.h"

namespace fx {

class GraphModule;

namespace detail {

/// Sees the calls of GraphModules on its thread before they run: a symbolic trace, which records
/// them. The stages that run graphs know nothing of tracing but this.
class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  /// The recorded result, or nothing when the call has to run because no input is traced. May move
  /// out of the inputs only when it gives a result.
  virtual std::optional<Value> record_call_of(GraphModule& module, Values& inputs,
                                              KwValues& kwargs) = 0;
};

/// The recorder of this thread; null if there is none.
CallRecorder*& call_recorder() noexcept;

}  // namespace detail
}  // namespace fx
