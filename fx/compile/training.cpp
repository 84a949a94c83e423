#include "fx/compile/training.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "fx/analysis/alias.h"
#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/program_isolation.h"
#include "fx/graph/input_guard.h"
#include "fx/graph/tensor_copies.h"
#include "fx/graph/tensor_meta.h"
#include "fx/interpret/value_map.h"
#include "fx/ops/value_tensors.h"

namespace fx {
namespace {

using Tensors = std::vector<at::Tensor>;
using Run = std::function<Value(Values)>;

Run runner(const std::shared_ptr<GraphModule>& module,
           const std::optional<CompileOptions>& options) {
  if (!options) return [module](Values inputs) { return module->forward(std::move(inputs)); };
  return [compiled = compile(module, *options)](Values inputs) {
    return compiled.forward(std::move(inputs));
  };
}

struct NoAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

// What autocast is set to for the devices of these tensors.
std::string autocast_text(const Tensors& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    const at::DeviceType device = tensor.device().type();
    if (at::autocast::is_autocast_available(device) && at::autocast::is_autocast_enabled(device))
      text += std::string("autocast ") + at::toString(at::autocast::get_autocast_dtype(device));
  }
  return text;
}

// An input or tangent as the capture saw it.
struct Layout {
  std::vector<std::int64_t> sizes, strides;
  bool is_shared = false;  // the graph writes to its memory or returns it
};

Layout layout_of(const Node& placeholder) {
  const TensorMeta* meta = tensor_meta(placeholder);
  if (!meta) return {};
  return {meta->shape, meta->stride};
}

// Strides of dimensions with one element at most say nothing.
bool has_strides(const at::Tensor& tensor, const Layout& layout) {
  if (layout.strides.empty() || tensor.numel() == 0) return true;
  for (std::size_t i = 0; i < layout.strides.size(); ++i)
    if (layout.sizes[i] > 1 && tensor.stride(static_cast<std::int64_t>(i)) != layout.strides[i])
      return false;
  return true;
}

at::Tensor with_strides(const at::Tensor& tensor, const Layout& layout) {
  if (has_strides(tensor, layout)) return tensor;
  at::Tensor made = at::empty_strided(layout.sizes, layout.strides, tensor.options());
  made.copy_(tensor);
  return made;
}

Tensors tensors_in(const Value& value) {
  Tensors out;
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    if (tensor.defined()) out.push_back(tensor);
  });
  return out;
}

[[noreturn]] void not_as_captured(const std::string& what, const std::string& name) {
  throw RunError(ErrorCode::kAssertionFailed,
                 what + " " + str_repr(name) +
                     " requires grad now and did not when the program was captured, so that it "
                     "would get no gradient: capture again");
}

}  // namespace

struct TrainingFunction::State {
  TrainingGraphs graphs;
  Run forward, backward;
  std::vector<std::string> input_names;
  std::vector<Layout> inputs, tangents;
  std::vector<bool> has_gradient;  // by input
  // Parameters that get gradients; those that the forward reads and that get none; and attributes
  // that the backward reads, which nobody may write to in between.
  Tensors parameters;
  std::vector<std::pair<std::string, at::Tensor>> frozen;
  Tensors read_by_backward;

  void check(Values& values) const;
  Value run_forward(Values inputs, Values& saved) const;
};

// The call as a node of autograd.
class TrainingFunction::Step : public torch::autograd::Function<TrainingFunction::Step> {
 public:
  using Context = torch::autograd::AutogradContext;

  // What goes in and comes out beside the tensors that autograd sees.
  struct Call {
    std::shared_ptr<const State> state;
    Values inputs;
    Value result = {};
    std::vector<std::size_t> output_of = {};  // by tangent: number of the output
  };

  // `variables`: the inputs with gradients, and the parameters. Gives each differentiable tensor of
  // the result once.
  static Tensors forward(Context* context, Call* call, at::TensorList variables) {
    const State& state = *call->state;
    Values saved;
    call->result = state.run_forward(call->inputs, saved);
    Tensors kept = state.read_by_backward;
    for (const Value& value : saved) kept.push_back(value.toTensor());
    context->save_for_backward(std::move(kept));

    const Tensors all = tensors_in(call->result);
    Tensors outputs;
    c10::List<std::int64_t> output_of;
    for (const std::size_t number : state.graphs.signature.tangent_of) {
      const auto same = [&](const at::Tensor& other) { return other.is_same(all[number]); };
      const auto found = std::find_if(outputs.begin(), outputs.end(), same);
      const auto index = static_cast<std::size_t>(found - outputs.begin());
      if (found == outputs.end()) outputs.push_back(all[number]);
      output_of.push_back(static_cast<std::int64_t>(index));
      call->output_of.push_back(index);
    }
    context->saved_data["state"] =
        Value::make_capsule(c10::make_intrusive<StateHolder>(call->state));
    context->saved_data["output_of"] = std::move(output_of);
    return outputs;
  }

  static Tensors backward(Context* context, Tensors output_gradients) {
    if (at::GradMode::is_enabled())
      throw RunError(ErrorCode::kNotRunnable,
                     "a compiled backward has no gradient of its own (create_graph): capture a "
                     "program that takes the first gradient itself, by torch::autograd::grad");
    const State& state =
        *c10::static_intrusive_pointer_cast<StateHolder>(context->saved_data["state"].toCapsule())
             ->state;
    const c10::List<std::int64_t> output_of = context->saved_data["output_of"].toIntList();
    const Tensors kept = context->get_saved_variables();
    Values inputs(kept.begin() + static_cast<std::ptrdiff_t>(state.read_by_backward.size()),
                  kept.end());
    std::vector<bool> taken(output_gradients.size());
    for (std::size_t i = 0; i < state.tangents.size(); ++i) {
      // Of a tensor that is in the result several times, the first has the whole gradient.
      const auto output = static_cast<std::size_t>(output_of[i]);
      const at::Tensor& gradient = output_gradients[output];
      const at::Tensor tangent = taken[output] ? at::zeros_like(gradient) : gradient;
      taken[output] = true;
      inputs.emplace_back(with_strides(tangent, state.tangents[i]));
    }
    const NoAutocast casts_stand_in_the_graph;
    Tensors gradients;
    for (const Value& gradient : elements(state.backward(std::move(inputs))))
      gradients.push_back(gradient.isTensor() ? gradient.toTensor() : at::Tensor());
    // One for each argument of forward: the call has none.
    gradients.insert(gradients.begin(), at::Tensor());
    return gradients;
  }

 private:
  struct StateHolder : torch::CustomClassHolder {
    explicit StateHolder(std::shared_ptr<const State> s) : state(std::move(s)) {}
    std::shared_ptr<const State> state;
  };
};

TrainingFunction::TrainingFunction(TrainingGraphs graphs,
                                   const std::optional<CompileOptions>& compile) {
  if (compile && compile->freeze)
    throw CompileError(ErrorCode::kCompileOption,
                       "freeze takes parameters for constants, and training changes them");
  auto state = std::make_shared<State>();
  state->forward = runner(graphs.forward, compile);
  state->backward = runner(graphs.backward, compile);
  const Graph& forward = graphs.forward->graph();
  const JointSignature& signature = graphs.signature;
  const AliasAnalysis aliases(forward);
  for (const Node* input : forward.placeholders()) {
    Layout layout = layout_of(*input);
    layout.is_shared = aliases.is_written(*input) || aliases.reaches_output(*input);
    state->inputs.push_back(std::move(layout));
    state->input_names.push_back(input->target().str());
    const auto end =
        signature.gradients.begin() + static_cast<std::ptrdiff_t>(signature.num_input_gradients);
    state->has_gradient.push_back(
        std::find(signature.gradients.begin(), end, input->target().str()) != end);
  }
  const std::vector<Node*> placeholders = graphs.backward->graph().placeholders();
  for (std::size_t i = placeholders.size() - signature.tangents.size(); i < placeholders.size();
       ++i)
    state->tangents.push_back(layout_of(*placeholders[i]));
  state->parameters = graphs.parameters;
  for (const Node& node : forward.nodes()) {
    if (node.op() != Opcode::kGetAttr) continue;
    const at::Tensor tensor = graphs.forward->find_tensor(node.target().str());
    const bool is_trained = std::any_of(state->parameters.begin(), state->parameters.end(),
                                        [&](const at::Tensor& p) { return p.is_same(tensor); });
    if (tensor.defined() && !is_trained) state->frozen.emplace_back(node.target().str(), tensor);
  }
  for (const Node& node : graphs.backward->graph().nodes())
    if (node.op() == Opcode::kGetAttr)
      if (at::Tensor tensor = graphs.backward->find_tensor(node.target().str()); tensor.defined())
        state->read_by_backward.push_back(std::move(tensor));
  state->graphs = std::move(graphs);
  state_ = std::move(state);
}

void TrainingFunction::State::check(Values& values) const {
  check_inputs(graphs.forward->input_guards(), input_names, values, {});
  if (values.size() != inputs.size())
    throw RunError(
        values.size() < inputs.size() ? ErrorCode::kMissingInput : ErrorCode::kExtraInput,
        "found " + std::to_string(values.size()) + " inputs, wanted " +
            std::to_string(inputs.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const at::Tensor tensor = values[i].toTensor();
    if (tensor.requires_grad() && !has_gradient[i] && at::GradMode::is_enabled())
      not_as_captured("input", input_names[i]);
    if (has_strides(tensor, inputs[i])) continue;
    if (inputs[i].is_shared)
      throw RunError(ErrorCode::kShapeMismatch,
                     "input " + str_repr(input_names[i]) +
                         " is written to or returned and has other strides than when it was "
                         "captured: pass a copy of those strides, or capture for these");
    values[i] = with_strides(tensor, inputs[i]);
  }
  if (!at::GradMode::is_enabled()) return;
  for (const auto& [path, tensor] : frozen)
    if (tensor.requires_grad()) not_as_captured("attribute", path);
}

Value TrainingFunction::State::run_forward(Values values, Values& saved) const {
  const at::NoGradGuard no_grad;
  const NoAutocast casts_stand_in_the_graph;
  const Values both = elements(forward(std::move(values)));
  saved = elements(both[1]);
  return both[0];
}

Value TrainingFunction::forward(Values inputs) const {
  state_->check(inputs);
  Tensors variables;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (state_->has_gradient[i]) variables.push_back(inputs[i].toTensor());
  variables.insert(variables.end(), state_->parameters.begin(), state_->parameters.end());
  const bool differentiates =
      at::GradMode::is_enabled() &&
      std::any_of(variables.begin(), variables.end(),
                  [](const at::Tensor& variable) { return variable.requires_grad(); });
  Values saved;
  if (!differentiates) return state_->run_forward(std::move(inputs), saved);
  Step::Call call{state_, std::move(inputs)};
  const Tensors outputs = Step::apply(&call, at::TensorList(variables));
  // The tensors that autograd gave take the place of those that the graph gave.
  std::size_t number = 0, tangent = 0;
  const auto& tangent_of = state_->graphs.signature.tangent_of;
  return map_tensors(call.result, [&](const at::Tensor& tensor) -> Value {
    if (!tensor.defined()) return tensor;
    const bool has_tangent = tangent < tangent_of.size() && tangent_of[tangent] == number;
    ++number;
    return has_tangent ? outputs[call.output_of[tangent++]] : tensor;
  });
}

const TrainingGraphs& TrainingFunction::graphs() const noexcept { return state_->graphs; }

struct AotFunction::State {
  Capture capture;
  const torch::nn::Module& root;
  AotOptions options;
  std::mutex mutex;
  std::map<std::string, TrainingFunction> functions;

  // What a graph holds for.
  std::string key(const Tensors& inputs) const {
    std::string key = autocast_text(inputs);
    const auto add = [&](const at::Tensor& tensor) {
      key += describe(tensor) + (tensor.requires_grad() ? "g" : "");
      if (tensor.layout() == at::kStrided)
        for (const std::int64_t stride : tensor.strides()) key += ":" + std::to_string(stride);
    };
    for (const at::Tensor& input : inputs) add(input);
    root.apply([&](const torch::nn::Module& module) { key += module.is_training() ? 't' : 'e'; });
    for (const at::Tensor& parameter : root.parameters())
      key += parameter.requires_grad() ? 'g' : 'f';
    return key;
  }

  TrainingFunction find(const Tensors& inputs) {
    const std::lock_guard lock(mutex);
    std::string wanted = key(inputs);
    if (const auto found = functions.find(wanted); found != functions.end()) return found->second;
    const ProgramIsolation isolation(root);
    TensorCopies copies;
    Tensors examples;
    for (const at::Tensor& input : inputs) {
      examples.push_back(copies(input).detach());
      examples.back().set_requires_grad(input.requires_grad());
    }
    const auto joint = capture(std::move(examples), options.joint);
    TrainingFunction made(options.partition(*joint), options.compile);
    functions.emplace(std::move(wanted), made);
    return made;
  }
};

AotFunction::AotFunction(Capture capture, const torch::nn::Module& root, AotOptions options)
    : state_(std::make_shared<State>(std::move(capture), root, std::move(options))) {}

TrainingFunction AotFunction::function_for(const Tensors& inputs) const {
  return state_->find(inputs);
}

Value AotFunction::forward(Values inputs) const {
  Tensors tensors;
  for (const Value& input : inputs) {
    if (!input.isTensor() || !input.toTensor().defined())
      throw RunError(ErrorCode::kWrongType, "an input is " + describe(input) + ", wanted tensors");
    tensors.push_back(input.toTensor());
  }
  return state_->find(tensors).forward(std::move(inputs));
}

std::size_t AotFunction::num_captures() const {
  const std::lock_guard lock(state_->mutex);
  return state_->functions.size();
}

}  // namespace fx
