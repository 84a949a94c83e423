#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/capture/make_fx.h"
#include "fx/ops/value.h"

namespace fx {

struct CapturedOptions {
  /// What a call does for which no graph holds: makes another one, or throws. The first call
  /// captures in any case.
  enum class OnBreak : std::uint8_t { kCapture, kThrow };
  /// What it does once there are `limit` graphs: throws, or runs the program itself.
  enum class AtLimit : std::uint8_t { kThrow, kRunProgram };

  MakeFxOptions capture = {};  ///< of each graph
  OnBreak on_break = OnBreak::kCapture;
  std::size_t limit = 8;  ///< graphs; torch.compile's recompile_limit
  AtLimit at_limit = AtLimit::kThrow;
  /// Sizes that a call breaks become symbolic in the graph that is made for it, each pair of an old
  /// and a new size one symbol (torch.compile's automatic_dynamic_shapes).
  bool automatic_dynamic = false;
};

/// A C++ program as graphs, each with the conditions under which it does what the program does
/// (torch.compile's guards): dtypes, devices, sizes, strides and gradients of the inputs, gradient
/// mode, autocast, train and eval flags of all modules, their parameters and buffers, and values
/// that the program read. A call runs the graph whose conditions hold; where none does, the program
/// is captured anew on the inputs of the call, or the call throws and says which condition broke.
///
/// What a program looks at beside that is seen by no guard: other globals, members, the time.
/// Captures leave no trace in parameters, buffers, inputs and random generators: the graph runs on
/// the inputs afterwards. Threads: any number may call; captures wait for each other. A program
/// that writes to its module may run on one thread at a time, as without a capture.
class Captured {
 public:
  /// Runs a program, with the module whose attributes are the graphs'.
  using Run = std::function<TraceArg(std::vector<at::Tensor>&)>;
  using WithProgram =
      std::function<void(const std::function<void(const torch::nn::Module&, const Run&)>&)>;

  /// capture_with_guards makes it of any program.
  Captured(WithProgram program, CapturedOptions options);

  /// @throws RunError kAssertionFailed where no graph holds and none may be made; what make_fx and
  ///   the graph throw.
  Value call(std::vector<at::Tensor> inputs);
  template <typename... Tensors>
    requires(std::convertible_to<Tensors, at::Tensor> && ...)
  Value operator()(const Tensors&... inputs) {
    return call({inputs...});
  }

  /// The graphs so far, oldest first.
  std::vector<std::shared_ptr<GraphModule>> graphs() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A program that keeps itself true: see Captured. Callables are copied, holders and pointers to
/// modules kept; a module by reference must outlive the result. Costs nothing until the first call.
template <typename Program>
Captured capture_with_guards(Program&& program, CapturedOptions options = {}) {
  using P = std::remove_cvref_t<Program>;
  if constexpr (detail::ModuleClass<P>) {
    static_assert(std::is_lvalue_reference_v<Program>,
                  "a module by value would be gone: pass a "
                  "shared_ptr or a holder");
    return Captured([&program](const auto& use) { detail::with_program(program, use); },
                    std::move(options));
  } else {
    auto kept = std::make_shared<P>(std::forward<Program>(program));
    return Captured([kept](const auto& use) { detail::with_program(*kept, use); },
                    std::move(options));
  }
}

}  // namespace fx
