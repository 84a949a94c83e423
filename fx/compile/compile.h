#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/capture/make_fx.h"
#include "fx/graph/graph_module.h"

/// fx::compile: from a graph or a model to native code, in this process (torch.compile).
namespace fx {

struct CompileOptions {
  /// "eager", "interpret", "plan", "llvm", or a name given to register_backend.
  std::string backend = "llvm";
  /// "default", "reduce-overhead" or "max-autotune".
  std::string mode = "default";
  /// The parameters will not change: what depends on them alone is computed at once, and batch
  /// norms are folded into convolutions. Only for models in eval mode, without gradients.
  bool freeze = false;
  /// Steps of the llvm backend that are left out, to see what they do or to find a fault: passes by
  /// their names ("cse", "remove_noops", ...), "undo_inplace", "fusion".
  std::vector<std::string> disable = {};
  /// Only the first groups of operators become kernels; see find_wrong_kernel.
  std::size_t max_kernels = std::numeric_limits<std::size_t>::max();
};

/// The modes, with what they mean.
struct CompileMode {
  std::string_view name;
  std::string_view summary;
};
std::vector<CompileMode> compile_modes();

/// What a backend makes: called with the inputs of the graph's placeholders.
using CompiledFunction = std::function<Value(Values inputs, KwValues kwargs)>;
/// A backend: gets a graph of its own, to change as it likes, whose attributes are shared with the
/// model's, and the inputs of the first call. It must not write to them.
using Backend =
    std::function<CompiledFunction(const std::shared_ptr<GraphModule>& module,
                                   const Values& example_inputs, const CompileOptions& options)>;
/// Adds or replaces a backend. Thread safe. @throws CompileError kCompileOption for an empty name
/// or one of the built-in names.
void register_backend(std::string_view name, Backend backend);
/// All names, sorted: the built-in ones and those registered. "llvm" is there also where kernels
/// cannot be made; it then does what "plan" does.
std::vector<std::string> list_backends();

/// How the graph looked on its way (TORCH_LOGS of torch.compile).
struct CompileStage {
  std::string name;  ///< "captured", "passes", "fused", "loops", "llvm", "assembly", "plan"
  std::string text;
};

/// How long a step of a compilation took.
struct CompileStep {
  std::string name;  ///< "passes", "example run", "undo_inplace", "fusion", "kernels", "clean up"
  double milliseconds = 0;
};

class Compiled;

namespace detail {
/// Runs a C++ program on tensors.
using ProgramRun = std::function<TraceArg(std::vector<at::Tensor>&)>;
Compiled compile_program(std::shared_ptr<torch::nn::Module> model, ProgramRun run,
                         CompileOptions options);
}  // namespace detail

/// A compiled model: call it like the model. Compiles at the first call. Copies share all. Any
/// number of threads call one object at once, also the first time.
class Compiled {
 public:
  /// @throws as GraphModule::forward; CompileError of the backend at the first call.
  Value forward(Values inputs, KwValues kwargs = {}) const;
  template <typename... Inputs>
    requires(!(std::is_same_v<std::decay_t<Inputs>, Values> || ...))
  Value operator()(Inputs&&... inputs) const {
    return forward(Values{Value(std::forward<Inputs>(inputs))...});
  }
  Value operator()(Values inputs, KwValues kwargs = {}) const {
    return forward(std::move(inputs), std::move(kwargs));
  }

  /// How often it was compiled: 0 before the first call, 1 behind it, whatever the sizes.
  std::uint64_t num_compilations() const;
  /// Pieces of machine code that this model uses: kernels times the combinations of dtypes, ranks
  /// and memory orders that calls came with. Other sizes do not make more.
  std::uint64_t num_kernel_codes() const;
  /// The model that this was made from; null for a C++ function.
  const std::shared_ptr<torch::nn::Module>& model() const;
  std::vector<std::pair<std::string, at::Tensor>> state_dict() const;
  /// The graph as the backend runs it; null before the first call, and for own backends that keep
  /// it to themselves.
  std::shared_ptr<GraphModule> graph_module() const;

  /// For each call of the captured graph: the kernel it became a part of, or why it did not; then
  /// the kernels with their calls. After the first call.
  std::string explain() const;
  /// The same, and what each step of the plan takes with these inputs: the time of the fastest of
  /// some calls, the bytes it moves, and the share of this machine's memory bandwidth that this is,
  /// measured in the same run. Calls the model several times, with all that it does.
  std::string explain(const Values& inputs) const;
  /// The stages so far, in order. What is made per kernel stands there once for each.
  std::vector<CompileStage> stages() const;
  /// One stage's text. @throws CompileError kCompileOption listing those that there are.
  std::string stage(std::string_view name) const;
  /// Where the last compilation by the llvm backend spent its time. Beside this there are the
  /// capture of a C++ program, and the call itself.
  std::vector<CompileStep> steps() const;

 private:
  struct State;
  friend Compiled compile(std::shared_ptr<GraphModule> module, CompileOptions options);
  friend Compiled detail::compile_program(std::shared_ptr<torch::nn::Module> model,
                                          detail::ProgramRun run, CompileOptions options);
  std::shared_ptr<State> state_;
};

/// Compiles a graph. The module is not changed; its parameters and buffers are shared, so that
/// updates of them count. Later edits of its graph do not.
/// @throws CompileError kBackendMissing for an unknown backend, kCompileOption for an unknown mode
/// or
///   step to disable, listing those that there are.
Compiled compile(std::shared_ptr<GraphModule> module, CompileOptions options = {});
/// The same for a module that the caller keeps alive.
Compiled compile(GraphModule& module, CompileOptions options = {});

/// Compiles C++ code: a callable on tensors, or a torch::nn module (pointer or holder). It is
/// captured by make_fx at the first call, once for each combination of dtypes and sizes of the
/// inputs and of the training and gradient modes. Code whose capture read values of tensors (a
/// branch on item()) may do something else next time, so it is not compiled: it runs as it is, and
/// explain() says so.
template <typename Program>
  requires(!std::is_convertible_v<Program, std::shared_ptr<GraphModule>> &&
           !std::is_base_of_v<GraphModule, std::remove_cvref_t<Program>>)
Compiled compile(Program program, CompileOptions options = {}) {
  std::shared_ptr<torch::nn::Module> model;
  if constexpr (detail::ModulePointer<Program>) {
    if constexpr (requires { program.ptr(); })
      model = program.ptr();
    else
      model = program;
  }
  auto shared = std::make_shared<Program>(std::move(program));
  return detail::compile_program(
      std::move(model),
      [shared](std::vector<at::Tensor>& inputs) {
        if constexpr (detail::ModulePointer<Program>) {
          auto& module = **shared;
          auto forward = [&module](auto&&... args) -> decltype(module.forward(
                                                       std::forward<decltype(args)>(args)...)) {
            return module.forward(std::forward<decltype(args)>(args)...);
          };
          return detail::call_with_tensors(forward, inputs);
        } else {
          return detail::call_with_tensors(*shared, inputs);
        }
      },
      std::move(options));
}

}  // namespace fx
