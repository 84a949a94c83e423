#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/capture/signature.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"

namespace fx {

/// Something that a dispatcher capture took for granted: on inputs that break it, the graph may not
/// do what the program would have done.
struct Assumption {
  enum class Kind : std::uint8_t {
    kInput,     ///< dtype, shape and device of an input
    kValue,     ///< a value the program read: item(), equal(), sizes of nonzero()
    kTraining,  ///< the train or eval flag
    kGradMode,  ///< whether gradients were recorded
    kConstant,  ///< a tensor from outside, or filled outside of the dispatcher
    kKept,      ///< a value that the program keeps beyond its end
  };
  Kind kind;
  std::string text;  ///< for people: "aten::item of %sum_1 gave 3.5"
};
using Assumptions = std::vector<Assumption>;

/// Name of a kind: "input", "value", ...
std::string_view assumption_kind_name(Assumption::Kind kind);

struct MakeFxOptions {
  std::vector<std::string> input_names = {};  ///< default: x, y, z, w, arg4, ...
  std::string class_name = {};
  /// Refuse the capture instead of recording a kValue or kKept assumption.
  bool strict = false;
  /// Record what the program calls, above autograd. False records what autograd runs, below it:
  /// composite operators are those they are made of, and what gradients taken inside run is
  /// recorded like the rest. Such a graph has no gradients to offer of its own (torch.fx's make_fx
  /// with pre_dispatch=False).
  bool pre_dispatch = true;
};

/// Records what `run` does on real tensors: every operator, before autograd and decomposition,
/// through a mode key on top of the dispatcher (or one below autograd: pre_dispatch). The
/// non-template core of make_fx.
/// @param run receives tensors with the contents of `inputs` and gives the program's result.
std::shared_ptr<GraphModule> record_program(
    const torch::nn::Module& root, std::vector<at::Tensor> inputs, const MakeFxOptions& options,
    const std::function<TraceArg(std::vector<at::Tensor>&)>& run);

namespace detail {

template <typename Fn, std::size_t N = 0>
TraceArg call_with_tensors(Fn& fn, std::vector<at::Tensor>& inputs) {
  if constexpr (N > kMaxArity) {
    throw TraceError(ErrorCode::kBadArgument,
                     "the program does not take " + std::to_string(inputs.size()) + " tensors");
  } else {
    if (N != inputs.size()) return call_with_tensors<Fn, N + 1>(fn, inputs);
    if constexpr (InvocableWith<Fn&, at::Tensor, std::make_index_sequence<N>>::kValue) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return invoke_traced(fn, inputs[I]...);
      }(std::make_index_sequence<N>());
    } else {
      throw TraceError(ErrorCode::kBadArgument,
                       "the program does not take " + std::to_string(inputs.size()) + " tensors");
    }
  }
}

/// Calls `record(root, run)` with the module that the program is, or an empty one, and with the
/// program as record_program wants it.
template <typename Program, typename Record>
auto with_program(Program&& program, Record&& record) {
  using P = std::remove_cvref_t<Program>;
  if constexpr (ModuleClass<P>) {
    auto& module = const_cast<P&>(program);
    auto forward = [&module](auto&&... args) -> decltype(module.forward(
                                                 std::forward<decltype(args)>(args)...)) {
      return module.forward(std::forward<decltype(args)>(args)...);
    };
    return record(module, [&](std::vector<at::Tensor>& tensors) {
      return call_with_tensors(forward, tensors);
    });
  } else if constexpr (ModulePointer<P>) {
    return with_program(*program, std::forward<Record>(record));
  } else {
    static const torch::nn::Module kNoModule;
    return record(kNoModule, [&](std::vector<at::Tensor>& tensors) {
      return call_with_tensors(program, tensors);
    });
  }
}

}  // namespace detail

/// Captures unmodified C++ code by running it once on example inputs (torch.fx's make_fx, tracing
/// mode "real", before dispatch to autograd): a callable on tensors, or a torch::nn::Module by
/// reference, pointer or holder.
///
/// Parameters and buffers of a module become get_attr nodes under their qualified names; other
/// tensors from outside become constants, which the graph shares and does not copy. Mutation is
/// recorded as it happened. What the graph takes for granted is listed in `meta()["assumptions"]`
/// (fx::Assumptions). The graph replays exactly on inputs of the same shapes and dtypes.
/// @throws TraceError kBadArgument, kConcreteValue (strict), and what the program itself throws.
template <typename Program>
std::shared_ptr<GraphModule> make_fx(Program&& program, std::vector<at::Tensor> inputs,
                                     const MakeFxOptions& options = {}) {
  return detail::with_program(program, [&](const torch::nn::Module& root, const auto& run) {
    return record_program(root, std::move(inputs), options, run);
  });
}

}  // namespace fx
