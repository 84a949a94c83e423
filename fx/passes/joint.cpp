#include "fx/passes/joint.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/recorder.h"
#include "fx/graph/input_guard.h"
#include "fx/graph/tensor_copies.h"
#include "fx/graph/tensor_meta.h"
#include "fx/ops/op_info.h"
#include "fx/passes/cse.h"
#include "fx/passes/functionalize.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& text) {
  throw TraceError(code, "joint: " + text);
}

using Tensors = std::vector<at::Tensor>;

void append_tensors(const TraceArg& value, Tensors& out) {
  if (value.kind() == TraceArg::Kind::kTensor && value.tensor().defined())
    out.push_back(value.tensor());
  for (const TraceArg& item : value.items()) append_tensors(item, out);
}

// A tensor whose state the program shares with others: an input or an attribute.
struct Shared {
  std::string what;
  at::Tensor tensor;
  std::uint32_t version;
};

// What the program is run on, and what comes out beside the graph.
class JointRun {
 public:
  JointRun(const torch::nn::Module& root, const Tensors& inputs,
           const std::function<TraceArg(Tensors&)>& program)
      : program_(program) {
    for (const auto& item : root.named_parameters()) add_shared(item.key(), item.value());
    for (const auto& item : root.named_buffers()) add_shared(item.key(), item.value());
    for (const auto& item : root.named_parameters())
      if (item.value().requires_grad()) {
        wanted_.push_back(item.value());
        names_.push_back(item.key());
      }
    for (const at::Tensor& input : inputs) {
      if (!input.defined()) refuse(ErrorCode::kBadArgument, "an example input is undefined");
      inputs_.push_back(input.detach());
      if (input.requires_grad()) inputs_.back().set_requires_grad(true);
    }
  }

  /// Leaves of autograd over the memory of the examples.
  const Tensors& inputs() const { return inputs_; }
  const Tensors& tangents() const { return tangents_; }
  JointSignature& signature() { return signature_; }

  TraceArg run(Tensors& inputs, const std::vector<std::string>& input_names) {
    signature_.inputs = input_names;
    for (std::size_t i = 0; i < inputs.size(); ++i) add_shared(input_names[i], inputs[i]);
    const TraceArg result = program_(inputs);
    check_shared();
    const Tensors outputs = differentiable_outputs(result);
    std::vector<TraceArg> gradients;
    for (const at::Tensor& gradient : gradients_of(outputs, inputs))
      gradients.push_back(gradient.defined() ? TraceArg(gradient) : TraceArg());
    for (const Shared& each : shared_)
      if (each.tensor._version() != each.version)
        refuse(ErrorCode::kBadArgument,
               "the backward of the program writes to " + str_repr(each.what) +
                   ", and a call of the forward alone is to leave it: write to it in the forward");
    return TraceArg::tuple({result, TraceArg::tuple(std::move(gradients))});
  }

 private:
  void add_shared(const std::string& what, const at::Tensor& tensor) {
    if (tensor.defined()) shared_.push_back({what, tensor, 0});
  }

  // What the forward left of inputs and attributes.
  void check_shared() {
    for (Shared& each : shared_) {
      each.version = each.tensor._version();
      if (each.tensor.grad_fn())
        refuse(ErrorCode::kBadArgument,
               "the program writes a value that requires grad to " + str_repr(each.what) +
                   ", whose gradient would be lost behind it: write value.detach()");
    }
  }

  Tensors differentiable_outputs(const TraceArg& result) {
    Tensors all, outputs;
    append_tensors(result, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].requires_grad()) continue;
      outputs.push_back(all[i]);
      signature_.tangent_of.push_back(i);
      signature_.tangents.push_back("tangents_" + std::to_string(outputs.size()));
    }
    if (outputs.empty())
      refuse(ErrorCode::kBadResult,
             "nothing in the result requires grad: let an input or parameter require it, and "
             "return what depends on it");
    const RecordingPause pause;
    for (const at::Tensor& output : outputs) tangents_.push_back(at::ones_like(output.detach()));
    return outputs;
  }

  Tensors gradients_of(const Tensors& outputs, const Tensors& inputs) {
    for (std::size_t i = 0; i < tangents_.size(); ++i)
      Recorder::active().add_input(signature_.tangents[i], tangents_[i]);
    Tensors wanted;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].requires_grad()) {
        wanted.push_back(inputs[i]);
        signature_.gradients.push_back(signature_.inputs[i]);
      }
    signature_.num_input_gradients = wanted.size();
    wanted.insert(wanted.end(), wanted_.begin(), wanted_.end());
    signature_.gradients.insert(signature_.gradients.end(), names_.begin(), names_.end());
    if (wanted.empty()) return {};
    // A backward runs outside of autocast; the casts of the forward have their own formulas.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    return torch::autograd::grad(outputs, wanted, tangents_, /*retain_graph=*/false,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  }

  const std::function<TraceArg(Tensors&)>& program_;
  Tensors inputs_, tangents_;
  Tensors wanted_;                  // parameters that get a gradient
  std::vector<std::string> names_;  // their paths
  std::vector<Shared> shared_;
  JointSignature signature_;
};

void check_constants(const GraphModule& module) {
  for (const auto& [path, tensor] : module.constants())
    if (tensor.requires_grad())
      refuse(ErrorCode::kBadArgument,
             "the program uses a " + describe(tensor) +
                 " that requires grad and is neither input nor parameter, so that nobody would get "
                 "its gradient: make it an input, or give the module that has it in "
                 "JointOptions::module");
}

// Whether the sizes of a result depend on values. Those of x[index] do for masks alone.
bool has_sizes_of_values(const Node& node) {
  if (node.op() != Opcode::kCallFunction) return false;
  const OpInfo& info = OpInfo::of(*node.target().function());
  if (info.overloads.empty() || !info.overloads[0].handle.hasTag(at::Tag::dynamic_output_shape))
    return false;
  if (!node.calls("aten::index") || node.num_args() < 2) return true;
  bool has_mask = false;
  node.arg(1).for_each_node([&](const Node& index) {
    const TensorMeta* meta = tensor_meta(index);
    has_mask |= !meta || meta->dtype == at::kBool || meta->dtype == at::kByte;
  });
  return has_mask;
}

// Numbers that the program read are checked by the graph; sizes are those of the example.
void check_sizes(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (has_sizes_of_values(node))
      refuse(ErrorCode::kConcreteValue,
             "the sizes of " + node.format_node() +
                 " depend on values, and the formulas of gradients have fixed those of the "
                 "example: use masks (torch::where) instead");
}

// In training the formula of batch norm's gradient is given the running statistics and does not
// read them; without them the backward does not hang on contents that the forward has replaced.
void drop_unread_statistics(Graph& graph) {
  constexpr std::int64_t kRunningMean = 3, kRunningVar = 4, kTrain = 7;
  for (Node* node : graph.find_calls("aten::native_batch_norm_backward")) {
    if (node->num_args() <= kTrain || !(node->arg(kTrain) == Argument(true))) continue;
    node->update_arg(kRunningMean, {});
    node->update_arg(kRunningVar, {});
  }
}

}  // namespace

const JointSignature& joint_signature(const GraphModule& module) {
  const auto* signature = module.meta().get<JointSignature>("joint");
  if (!signature)
    throw PassError(ErrorCode::kBadPartition,
                    "this is no joint graph of forward and backward: make one by fx::joint");
  return *signature;
}

std::shared_ptr<GraphModule> record_joint(const torch::nn::Module& root, Tensors inputs,
                                          const JointOptions& options,
                                          const std::function<TraceArg(Tensors&)>& run) {
  TraceOptions naming;
  naming.input_names = options.input_names;
  const auto names = detail::default_input_names(inputs.size(), naming);
  MakeFxOptions make_options;
  make_options.input_names = names;
  make_options.class_name = options.class_name;
  make_options.pre_dispatch = false;
  JointRun joint(root, inputs, run);
  std::shared_ptr<GraphModule> module;
  {
    const at::AutoGradMode gradients(true);
    module = record_program(root, joint.inputs(), make_options,
                            [&](Tensors& tensors) { return joint.run(tensors, names); });
  }
  check_constants(*module);
  std::vector<InputGuard> guards = module->input_guards();
  for (std::size_t i = 0; i < joint.tangents().size(); ++i)
    guards.push_back(exact_guard(joint.signature().tangents[i], joint.tangents()[i]));
  module->set_input_guards(guards);

  const at::NoGradGuard no_grad;
  Values examples;
  Tensors example_tensors;
  for (const at::Tensor& input : joint.inputs()) example_tensors.push_back(input.detach());
  for (const at::Tensor& tangent : joint.tangents()) example_tensors.push_back(tangent);
  for (const at::Tensor& tensor : example_tensors) examples.emplace_back(tensor);
  drop_unread_statistics(module->graph());
  module->graph().eliminate_dead_code();
  if (!options.decompositions.empty()) {
    const auto assumptions = *module->meta().get<Assumptions>("assumptions");
    TensorCopies copy;
    Tensors copies;
    for (const at::Tensor& tensor : example_tensors) copies.push_back(copy(tensor));
    module = decompose(*module, options.decompositions, copies);
    module->meta().set("assumptions", assumptions);
  }
  functionalize(*module, examples);
  module->set_input_guards(std::move(guards));
  cse(*module);
  module->graph().eliminate_dead_code();
  module->meta().set("joint", std::move(joint.signature()));
  module->recompile();
  ShapeProp(*module).propagate(examples);
  check_sizes(module->graph());
  return module;
}

}  // namespace fx
