#include "tests/training/joint_check.h"

#include <algorithm>
#include <set>

#include "fx/graph/tensor_meta.h"
#include "fx/interpret/interpreter.h"
#include "fx/ops/value_tensors.h"
#include "tests/models/tensors_differ.h"

namespace fx::test {
namespace {

Tensors tensors_in(const Value& value) {
  Tensors out;
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    if (tensor.defined()) out.push_back(tensor);
  });
  return out;
}

Tensors optional_tensors(const Value& list) {
  Tensors out;
  for (const Value& item : elements(list))
    out.push_back(item.isTensor() ? item.toTensor() : at::Tensor());
  return out;
}

// Puts parameters and buffers back.
class StateGuard {
 public:
  explicit StateGuard(const Trained& program) {
    if (!program.module) return;
    for (const at::Tensor& tensor : program.module->parameters()) add(tensor);
    for (const at::Tensor& tensor : program.module->buffers()) add(tensor);
    if (const auto* module = dynamic_cast<const GraphModule*>(program.module.get()))
      for (const auto& [path, constant] : module->constants()) add(constant);
  }
  ~StateGuard() {
    const torch::NoGradGuard no_grad;
    for (const auto& [tensor, content] : saved_) tensor.copy_(content);
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;

 private:
  void add(const at::Tensor& tensor) { saved_.emplace_back(tensor, tensor.detach().clone()); }
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;
};

Tensors copies(const Tensors& inputs) {
  Tensors out;
  for (const at::Tensor& input : inputs) {
    out.push_back(input.detach().clone());
    out.back().set_requires_grad(input.requires_grad());
  }
  return out;
}

Tensors buffers_of(const Trained& program) {
  return program.module ? copies(program.module->buffers()) : Tensors();
}

Values values_of(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

Tensors tangents_of(const Tensors& outputs, std::int64_t seed) {
  torch::manual_seed(seed + 1);
  Tensors out;
  for (const at::Tensor& output : outputs)
    if (output.requires_grad()) out.push_back(torch::randn_like(output.detach()));
  return out;
}

Step eager_step(const Trained& program, const Tensors& inputs, std::int64_t seed) {
  const StateGuard state(program);
  Tensors leaves = copies(inputs);
  torch::manual_seed(seed);
  Tensors given = leaves;
  Step step;
  step.outputs = program.run(given);
  Tensors wanted, outputs;
  for (const at::Tensor& leaf : leaves)
    if (leaf.requires_grad()) wanted.push_back(leaf);
  if (program.module)
    for (const at::Tensor& parameter : program.module->parameters())
      if (parameter.requires_grad()) wanted.push_back(parameter);
  for (const at::Tensor& output : step.outputs)
    if (output.requires_grad()) outputs.push_back(output);
  step.gradients = torch::autograd::grad(outputs, wanted, tangents_of(step.outputs, seed), {},
                                         false, /*allow_unused=*/true);
  step.inputs = copies(leaves);
  step.buffers = buffers_of(program);
  return step;
}

Step joint_step(const Trained& program, GraphModule& joint, const Tensors& inputs,
                std::int64_t seed, bool interpret) {
  const StateGuard state(program);
  const torch::NoGradGuard no_grad;
  const Tensors given = copies(inputs);
  Tensors all = given;
  // Tangents as of eager's outputs, without a run for these.
  Tensors like;
  for (const Node* input : joint.graph().placeholders())
    if (std::ranges::find(joint_signature(joint).tangents, input->target().str()) !=
        joint_signature(joint).tangents.end()) {
      const TensorMeta& meta = *tensor_meta(*input);
      like.push_back(
          torch::empty_strided(meta.shape, meta.stride, meta.dtype).set_requires_grad(true));
    }
  const Tensors tangents = tangents_of(like, seed);
  all.insert(all.end(), tangents.begin(), tangents.end());
  torch::manual_seed(seed);
  const Values both =
      elements(interpret ? Interpreter(joint).run(values_of(all)) : joint.forward(values_of(all)));
  return {tensors_in(both[0]), copies(given), buffers_of(program), optional_tensors(both[1])};
}

Step split_step(const Trained& program, const TrainingGraphs& graphs, const Tensors& inputs,
                std::int64_t seed) {
  const StateGuard state(program);
  const torch::NoGradGuard no_grad;
  const Tensors given = copies(inputs);
  torch::manual_seed(seed);
  const Values both = elements(graphs.forward->forward(values_of(given)));
  Step step{tensors_in(both[0]), {}, {}, {}};
  Tensors like;
  for (const std::size_t number : graphs.signature.tangent_of)
    like.push_back(step.outputs.at(number).clone().set_requires_grad(true));
  Values backward = elements(both[1]);
  for (const at::Tensor& tangent : tangents_of(like, seed)) backward.emplace_back(tangent);
  step.gradients = optional_tensors(graphs.backward->forward(std::move(backward)));
  step.inputs = copies(given);
  step.buffers = buffers_of(program);
  return step;
}

std::string difference(const Step& expected, const Step& found, double tolerance) {
  using zoo::difference;
  std::string text = difference("outputs", expected.outputs, found.outputs, tolerance);
  if (text.empty()) text = difference("gradients", expected.gradients, found.gradients, tolerance);
  if (text.empty()) text = difference("inputs", expected.inputs, found.inputs, tolerance);
  if (text.empty()) text = difference("buffers", expected.buffers, found.buffers, tolerance);
  return text;
}

std::shared_ptr<GraphModule> joint_of(const Trained& program, const Tensors& inputs) {
  const StateGuard state(program);
  JointOptions options;
  options.module = program.module.get();
  static const torch::nn::Module kNone;
  return record_joint(program.module ? *program.module : kNone, copies(inputs), options,
                      [&](Tensors& tensors) { return TraceArg(program.run(tensors)); });
}

namespace {

// What holds for every partition, whatever it keeps.
std::string broken_rule(const GraphModule& joint, const TrainingGraphs& graphs) {
  graphs.forward->graph().lint({.strict = true});
  graphs.backward->graph().lint({.strict = true});
  const auto impure = [](const Graph& graph) {
    std::multiset<std::string> out;
    for (const Node& node : graph.nodes())
      if (!node.is_placeholder() && !node.is_output() && node.is_impure())
        out.insert(std::string(node.name()));
    return out;
  };
  std::multiset<std::string> both = impure(graphs.forward->graph());
  both.merge(impure(graphs.backward->graph()));
  if (both != impure(joint.graph())) return "what has effects does not run exactly once";
  for (const Node& node : graphs.backward->graph().nodes())
    if (node.calls("aten::copy_")) return "the backward writes";
  return {};
}

}  // namespace

std::string check_training(const Trained& program, const std::function<Tensors()>& inputs,
                           double tolerance) {
  const std::shared_ptr<GraphModule> joint = joint_of(program, inputs());
  joint->graph().lint({.strict = true});
  const TrainingGraphs whole = default_partition(*joint);
  const TrainingGraphs cut = min_cut_rematerialization_partition(*joint);
  const TrainingGraphs small = min_cut_rematerialization_partition(*joint, {.aggressive = true});
  if (cut.saved_bytes > whole.saved_bytes) return "the smallest cut keeps more: " + cut.str();
  if (small.saved_bytes > whole.saved_bytes) return "aggressive keeps more: " + small.str();
  if (whole.num_recomputed > 0) return "the default partition recomputes";
  for (const TrainingGraphs* graphs : {&whole, &cut, &small})
    if (std::string text = broken_rule(*joint, *graphs); !text.empty())
      return text + "\n" + joint->graph().str();
  for (const std::int64_t seed : {3, 4}) {
    torch::manual_seed(seed + 100);
    const Tensors given = inputs();
    const Step eager = eager_step(program, given, seed);
    const auto compare = [&](const char* what, const Step& found) {
      std::string text = difference(eager, found, tolerance);
      return text.empty() ? text : what + (": " + text) + "\n" + joint->graph().str();
    };
    for (const bool interpret : {true, false})
      if (std::string text =
              compare("joint graph", joint_step(program, *joint, given, seed, interpret));
          !text.empty())
        return text;
    std::string text = compare("default", split_step(program, whole, given, seed));
    if (text.empty()) text = compare("min-cut", split_step(program, cut, given, seed));
    if (text.empty()) text = compare("aggressive", split_step(program, small, given, seed));
    if (!text.empty())
      return text + cut.forward->graph().str() + "\n" + cut.backward->graph().str();
  }
  return {};
}

}  // namespace fx::test
