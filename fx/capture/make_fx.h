#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/capture/call_stack.h"
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
    kLayout,    ///< an input whose memory is written or returned was contiguous
    kSize,      ///< what is known of a symbolic size, or why it stayed as it was
  };
  Kind kind;
  std::string text;      ///< for people: "aten::item of %sum_1 gave 3.5"
  CallStack where = {};  ///< the place in the program; where.source() is its line
};
using Assumptions = std::vector<Assumption>;

/// Name of a kind: "input", "value", ...
std::string_view assumption_kind_name(Assumption::Kind kind);

/// A size that calls of a captured graph may change (torch.export.Dim). Equal names are one size.
struct Dim {
  std::string name;
  /// The range that is wanted, by default from 1 on. The graph takes the part of it around the
  /// example in which runs show the same: size 1 and large sizes often take another path.
  std::optional<std::int64_t> min = {};
  std::optional<std::int64_t> max = {};

  Dim(const char* symbol) : name(symbol) {}             // NOLINT: {{0, "batch"}} reads as it should
  Dim(std::string symbol) : name(std::move(symbol)) {}  // NOLINT
  Dim(std::string symbol, std::optional<std::int64_t> least, std::optional<std::int64_t> most = {})
      : name(std::move(symbol)), min(least), max(most) {}
};
/// By input name and dimension: {{"x", {{0, "batch"}}}}.
using DynamicSizes = std::map<std::string, std::map<std::int64_t, Dim>>;

struct MakeFxOptions {
  std::vector<std::string> input_names = {};  ///< default: x, y, z, w, arg4, ...
  std::string class_name = {};
  /// Refuse the capture instead of recording a kValue or kKept assumption, or a kSize assumption
  /// that a size of `dynamic` stayed as it was.
  bool strict = false;
  /// Record what the program calls, above autograd. False records what autograd runs, below it:
  /// composite operators are those they are made of, and what gradients taken inside run is
  /// recorded like the rest. Such a graph has no gradients to offer of its own (torch.fx's make_fx
  /// with pre_dispatch=False).
  bool pre_dispatch = true;
  /// Sizes that calls may change. The program runs several times, on examples that are repeated or
  /// cut to other sizes; numbers among the arguments of operators that vary become expressions of
  /// the sizes, which a further run verifies. The runs leave no trace in parameters, buffers,
  /// inputs and random generators. Why a size cannot change, a kSize assumption says.
  DynamicSizes dynamic = {};
  /// The graph checks each number and bool that the program read (item, equal), at the place, and
  /// throws where it is another one than in the capture: the program might have gone another way.
  /// Where a size depends on values (nonzero, masks), the program runs again with other numbers of
  /// items, on copies: a graph that is the same then hands the size on, another checks it.
  bool guard_values = true;
  /// Records for each node where the program made it, as meta "stack_trace". Costs about a
  /// microsecond a node, and once the reading of the program's line tables.
  bool source_lines = false;
};

/// Whether a value has no users but the checks that captures add (MakeFxOptions::guard_values).
bool only_guards_read(const Node& value);

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

}  // namespace detail

namespace detail {

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
/// (fx::Assumptions). The graph replays exactly on inputs of the same dtypes, and of the same
/// shapes but for the sizes in `options.dynamic`.
/// @throws TraceError kBadArgument, kConcreteValue (strict), and what the program itself throws.
template <typename Program>
std::shared_ptr<GraphModule> make_fx(Program&& program, std::vector<at::Tensor> inputs,
                                     const MakeFxOptions& options = {}) {
  return detail::with_program(program, [&](const torch::nn::Module& root, const auto& run) {
    return record_program(root, std::move(inputs), options, run);
  });
}

}  // namespace fx
