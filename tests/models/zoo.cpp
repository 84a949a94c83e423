#include "tests/models/zoo.h"

#include <algorithm>

#include "fx/analysis/alias.h"
#include "fx/capture/make_fx.h"
#include "fx/graph/module_call.h"
#include "fx/interpret/interpreter.h"
#include "fx/passes/decompose.h"
#include "fx/passes/functionalize.h"
#include "tests/models/tensors_differ.h"

namespace fx::zoo {
namespace {

void append_value(Tensors& out, const Value& value) {
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else if (value.isList() || value.isTuple() || value.isTensorList()) {
    for (const Value& item : elements(value)) append_value(out, item);
  }
}

Tensors flatten(const Value& value) {
  Tensors out;
  append_value(out, value);
  return out;
}

// Everything that one call leaves behind.
struct Run {
  Tensors outputs;
  Tensors inputs;
  Tensors state;
  Tensors gradients;
  std::vector<bool> aliases;  // of each output with each input
};

std::string differs(const Run& expected, const Run& found) {
  std::string text = difference("outputs", expected.outputs, found.outputs);
  if (text.empty()) text = difference("inputs", expected.inputs, found.inputs);
  if (text.empty()) text = difference("buffers", expected.state, found.state);
  if (text.empty()) text = difference("gradients", expected.gradients, found.gradients);
  if (text.empty() && expected.aliases != found.aliases)
    text = "another output shares memory with an input";
  return text;
}

class Checker {
 public:
  explicit Checker(const Case& each) : case_(each) {
    if (!case_.module) root_ = std::make_shared<torch::nn::Module>();
  }

  Outcome check() {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble})
      for (const bool train : {false, true}) {
        if (!case_.module && train) continue;
        if (case_.module) case_.module->to(dtype);
        root().train(train);
        where_ = std::string(at::toString(dtype)) + (train ? " in train mode" : " in eval mode");
        try {
          check_mode(dtype);
        } catch (const std::exception& error) {
          fail(error.what());
        }
      }
    if (case_.module) case_.module->to(at::kFloat);
    if (out_.captured) check_other_sizes();
    return out_;
  }

 private:
  using Program = std::function<Tensors(Tensors&)>;

  torch::nn::Module& root() { return case_.module ? *case_.module : *root_; }

  void fail(const std::string& text) {
    if (out_.fault.empty()) out_.fault = where_ + ": " + text;
  }

  Tensors make_inputs(at::ScalarType dtype, std::int64_t batch = 2) const {
    Tensors made;
    for (const Input& input : case_.inputs) made.push_back(input.make(dtype, batch));
    return made;
  }

  bool gets_gradient(std::size_t index, const at::Tensor& value) const {
    return case_.inputs[index].gradient && value.is_floating_point();
  }

  Tensors state() {
    Tensors out = root().parameters();
    for (const at::Tensor& buffer : root().buffers()) out.push_back(buffer);
    return out;
  }
  Tensors saved() {
    Tensors out;
    for (const at::Tensor& tensor : state()) out.push_back(tensor.detach().clone());
    return out;
  }
  void restore(const Tensors& values) {
    const at::NoGradGuard no_grad;
    const Tensors now = state();
    for (std::size_t i = 0; i < now.size(); ++i) now[i].copy_(values[i]);
  }

  // Null where the capture is refused as the case says.
  std::shared_ptr<GraphModule> capture(Tensors inputs, const std::string& refused,
                                       MakeFxOptions options = {}) {
    const Tensors before = saved();
    options.guard_values = !case_.reads_value;
    std::shared_ptr<GraphModule> module;
    try {
      module = record_program(root(), std::move(inputs), options,
                              [&](Tensors& in) { return TraceArg(case_.run(in)); });
      if (!refused.empty()) fail("the capture was not refused: " + refused);
      module->graph().lint({.strict = true});
    } catch (const Error& error) {
      if (refused.empty() || std::string(error.what()).find(refused) == std::string::npos) {
        fail(error.what());
      } else {
        out_.refusal = error.text();
      }
    }
    restore(before);
    return module;
  }

  Run run(const Tensors& values, bool gradients, const Program& program) {
    const Tensors before = saved();
    Tensors leaves, inputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      at::Tensor leaf = values[i].detach().clone();
      if (gradients && gets_gradient(i, leaf)) leaf.requires_grad_();
      leaves.push_back(leaf);
      inputs.push_back(gradients ? leaf.clone() : leaf);
    }
    const Tensors kept = inputs;
    torch::manual_seed(7);
    Run out;
    out.outputs = program(inputs);
    for (const at::Tensor& output : out.outputs)
      for (const at::Tensor& input : kept)
        out.aliases.push_back(output.defined() && output.has_storage() &&
                              output.storage().is_alias_of(input.storage()));
    if (gradients) out.gradients = gradients_of(out.outputs, leaves);
    out.inputs = kept;
    out.state = saved();
    restore(before);
    return out;
  }

  Tensors gradients_of(const Tensors& outputs, const Tensors& leaves) {
    at::Tensor loss;
    torch::manual_seed(8);
    for (const at::Tensor& output : outputs) {
      if (!output.defined() || !output.requires_grad()) continue;
      const at::Tensor weighted = (output * torch::randn_like(output.detach())).sum();
      loss = loss.defined() ? loss + weighted : weighted;
    }
    Tensors wanted;
    for (const at::Tensor& leaf : leaves)
      if (leaf.requires_grad()) wanted.push_back(leaf);
    for (const at::Tensor& parameter : root().parameters())
      if (parameter.requires_grad()) wanted.push_back(parameter);
    if (!loss.defined() || wanted.empty()) return {};
    return torch::autograd::grad({loss}, wanted, {}, /*retain_graph=*/std::nullopt,
                                 /*create_graph=*/false, /*allow_unused=*/true);
  }

  void compare(GraphModule& module, at::ScalarType dtype, bool gradients, std::int64_t batch = 2) {
    const Tensors inputs = make_inputs(dtype, batch);
    const Run eager = run(inputs, gradients, case_.run);
    const std::string with = gradients ? " with gradients" : "";
    const Run replayed = run(inputs, gradients, [&](Tensors& in) {
      return flatten(module.forward(Values(in.begin(), in.end())));
    });
    if (std::string text = differs(eager, replayed); !text.empty())
      fail("replay" + with + ": " + text + "\n" + module.graph().str());
    const Run interpreted = run(inputs, gradients, [&](Tensors& in) {
      return flatten(Interpreter(module).run(Values(in.begin(), in.end())));
    });
    if (std::string text = differs(eager, interpreted); !text.empty())
      fail("Interpreter" + with + ": " + text + "\n" + module.graph().str());
    std::size_t count = 0;
    for (const at::Tensor& gradient : eager.gradients) count += gradient.defined();
    out_.gradients = std::max(out_.gradients, count);
    out_.differentiable |= !eager.gradients.empty();
  }

  void check_mode(at::ScalarType dtype) {
    {
      const at::NoGradGuard no_grad;
      torch::manual_seed(1);
      auto module = capture(make_inputs(dtype), case_.refused);
      if (!module) return;
      out_.captured = true;
      for (int round = 0; round < 2; ++round) compare(*module, dtype, false);
      check_core(*module, dtype);
      check_functional(*module, dtype);
      if (case_.reads_value) expect_guarded(dtype);
    }
    Tensors inputs = make_inputs(dtype);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (gets_gradient(i, inputs[i])) inputs[i] = inputs[i].requires_grad_().clone();
    if (auto module = capture(inputs, case_.refused_with_gradients)) compare(*module, dtype, true);
  }

  // With the check, other inputs are refused.
  void expect_guarded(at::ScalarType dtype) {
    const Tensors before = saved();
    auto module = record_program(root(), make_inputs(dtype), {},
                                 [&](Tensors& in) { return TraceArg(case_.run(in)); });
    const Tensors inputs = make_inputs(dtype);
    try {
      module->forward(Values(inputs.begin(), inputs.end()));
      fail("another value than that of the capture was not noticed");
    } catch (const RunError& error) {
      if (std::string(error.what()).find("the program read a value") == std::string::npos)
        fail(error.what());
    }
    restore(before);
  }

  // The same graph of core operators. Their values are eager's up to rounding.
  void check_core(GraphModule& module, at::ScalarType dtype) {
    const Tensors before = saved();
    const auto core = run_decompositions(module, make_inputs(dtype));
    if (!zoo::difference("attributes", before, saved()).empty()) fail("run_decompositions wrote");
    core->graph().lint({.strict = true});
    for (const Node& node : core->graph().nodes())
      if (core_aten_decompositions().contains(node.target().str()))
        fail("run_decompositions left " + node.format_node());
    const Tensors inputs = make_inputs(dtype);
    const Run eager = run(inputs, false, case_.run);
    Run found;
    try {
      found = run(inputs, false, [&](Tensors& in) {
        return flatten(core->forward(Values(in.begin(), in.end())));
      });
    } catch (const RunError& error) {
      // A number that the program read has gone into arguments, and is checked.
      if (!case_.reads_value ||
          std::string(error.what()).find("the program read a value") == std::string::npos)
        throw;
      return restore(before);
    }
    const double tolerance = dtype == at::kDouble ? 1e-9 : 1e-4;
    const auto near = [&](const Tensors& a, const Tensors& b) {
      return std::ranges::equal(a, b, [&](const at::Tensor& one, const at::Tensor& other) {
        if (!one.defined() || !other.defined()) return one.defined() == other.defined();
        return one.sizes() == other.sizes() && one.dtype() == other.dtype() &&
               torch::allclose(one, other, tolerance, tolerance, /*equal_nan=*/true);
      });
    };
    if (!near(eager.outputs, found.outputs) || !near(eager.inputs, found.inputs) ||
        !near(eager.state, found.state))
      fail("run_decompositions: other values\n" + core->graph().str());
  }

  // The same graph made functional: it writes to inputs and buffers by a copy_ each, at the end.
  void check_functional(GraphModule& module, at::ScalarType dtype) {
    const bool writes = AliasAnalysis(module.graph()).has_writes();
    const Tensors before = saved();
    const Tensors example = make_inputs(dtype);
    const PassResult result = functionalize(module, Values(example.begin(), example.end()));
    if (result.changed != writes) fail("functionalize changed what it should not");
    if (!zoo::difference("attributes", before, saved()).empty()) fail("functionalize wrote");
    module.graph().lint({.strict = true});
    const AliasAnalysis aliases(module.graph());
    std::int64_t copies = 0;
    for (const Node& node : module.graph().nodes()) {
      if (aliases.writes(node).empty() || node.is_output()) continue;
      copies += node.calls("aten::copy_");
      if (!node.calls("aten::copy_")) fail("functionalize left " + node.format_node());
    }
    if (copies != result.rewrites) fail("functionalize left copies");
    const Tensors inputs = make_inputs(dtype);
    const Run eager = run(inputs, false, case_.run);
    const Run found = run(inputs, false, [&](Tensors& in) {
      return flatten(module.forward(Values(in.begin(), in.end())));
    });
    if (std::string text = differs(eager, found); !text.empty())
      fail("functionalized: " + text + "\n" + module.graph().str());
  }

  // One capture with a symbolic batch size, run on others, also through gradients.
  void check_other_sizes() {
    where_ = "other sizes";
    MakeFxOptions options;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      options.input_names.push_back("in" + std::to_string(i));
      const auto& sizes = case_.inputs[i].sizes;
      for (std::size_t dim = 0; dim < sizes.size(); ++dim)
        if (sizes[dim] == kBatch) options.dynamic[options.input_names.back()].emplace(dim, "batch");
    }
    if (options.dynamic.empty()) {
      out_.baked = "-";
      return;
    }
    root().eval();
    torch::manual_seed(1);
    for (const bool gradients : {false, true}) {
      if (gradients && (!out_.differentiable || !case_.refused_with_gradients.empty())) continue;
      const at::AutoGradMode mode(gradients);
      Tensors inputs = make_inputs(at::kFloat);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (gradients && gets_gradient(i, inputs[i]))
          inputs[i] = inputs[i].requires_grad_().clone();
      auto module = capture(inputs, case_.refused, options);
      if (!module) return;
      for (const Assumption& each : *module->meta().get<Assumptions>("assumptions"))
        if (each.kind == Assumption::Kind::kSize && each.text.starts_with("batch stayed"))
          out_.baked = each.text.substr(0, each.text.find(", at /"));  // without the line
      if (!out_.baked.empty()) return;
      for (const std::int64_t batch : {3, 1, 7})
        if (batch >= least_of(*module)) compare(*module, at::kFloat, gradients, batch);
    }
  }

  static std::int64_t least_of(const GraphModule& module) {
    std::int64_t least = 1;
    for (const InputGuard& guard : module.input_guards())
      for (const InputGuard::Dim& dim : guard.dims)
        if (!dim.symbol.empty()) least = std::max(least, dim.min.value_or(1));
    return least;
  }

  const Case& case_;
  std::shared_ptr<torch::nn::Module> root_;
  Outcome out_;
  std::string where_;
};

}  // namespace

at::Tensor Input::make(at::ScalarType dtype, std::int64_t batch) const {
  std::vector<std::int64_t> shape = sizes;
  for (std::int64_t& size : shape)
    if (size == kBatch) size = batch;
  switch (kind) {
    case Kind::kNormal:
      return torch::randn(shape, dtype);
    case Kind::kUniform:
      return torch::rand(shape, dtype).mul_(0.98).add_(0.01);
    case Kind::kIndex:
      return torch::randint(high, shape, at::kLong);
    case Kind::kSign:
      return torch::randint(2, shape, at::kLong).mul_(2).sub_(1).to(dtype);
    case Kind::kMask: {
      at::Tensor made = torch::randint(2, shape, at::kLong).to(at::kBool);
      made.select(-1, 0).fill_(false);
      return made;
    }
    case Kind::kFixed:
      return value.is_floating_point() ? value.to(dtype) : value.clone();
  }
  return {};
}

Input normal(std::vector<std::int64_t> sizes) { return {.sizes = std::move(sizes)}; }
Input uniform(std::vector<std::int64_t> sizes) {
  return {.kind = Input::Kind::kUniform, .sizes = std::move(sizes)};
}
Input indices(std::int64_t high, std::vector<std::int64_t> sizes) {
  return {.kind = Input::Kind::kIndex, .sizes = std::move(sizes), .high = high};
}
Input signs(std::vector<std::int64_t> sizes) {
  return still({.kind = Input::Kind::kSign, .sizes = std::move(sizes)});
}
Input mask(std::vector<std::int64_t> sizes) {
  return {.kind = Input::Kind::kMask, .sizes = std::move(sizes)};
}
Input still(Input input) {
  input.gradient = false;
  return input;
}
Input fixed(at::Tensor value) { return {.kind = Input::Kind::kFixed, .value = std::move(value)}; }

Case module_case(std::string name, std::string options, std::vector<Input> inputs,
                 std::shared_ptr<torch::nn::Module> module) {
  auto run = [raw = module.get()](Tensors& in) {
    return flatten(call_module(*raw, Values(in.begin(), in.end())));
  };
  return {std::move(name), std::move(options), std::move(inputs), run, std::move(module)};
}

Outcome check_case(const Case& each) { return Checker(each).check(); }

}  // namespace fx::zoo
