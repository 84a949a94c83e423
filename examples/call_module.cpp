// Modules inside of modules: what is called, how to watch and change the calls, and how to build a
// graph without one of them.

#include <fx/fx.h>
#include <torch/torch.h>

#include <iostream>
#include <map>
#include <string>

namespace {

namespace nn = fx::nn;

void check_equal(const at::Tensor& expected, const fx::Value& found) {
  if (!torch::allclose(expected, found.toTensor())) throw std::runtime_error("results differ");
  std::cout << "equals the eager result\n";
}

void print_tensor(const at::Tensor& result) {
  std::cout << result.sizes() << "\n" << fx::to_string(result.detach()) << "\n";
}

struct OneLinear : torch::nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(10, 5));
  auto forward(auto x) { return linear(x); }
};

void one_linear() {
  std::cout << "== one linear\n";
  torch::manual_seed(0);
  auto gm = fx::symbolic_trace(std::make_shared<OneLinear>());
  print_tensor(fx::Interpreter(*gm).run({torch::randn({1, 10})}).toTensor());
}

// [modules]
struct SubModuleImpl : torch::nn::Module {
  SubModuleImpl(int in, int out) { linear = register_module("linear", nn::Linear(in, out)); }
  at::Tensor forward(at::Tensor x) { return linear(x); }
  nn::Linear linear{nullptr};
};
FX_MODULE(SubModule);

struct Model : torch::nn::Module {
  SubModule a = register_module("sub_module_a", SubModule(10, 20));
  SubModule b = register_module("sub_module_b", SubModule(20, 5));
  auto forward(auto x) { return b(relu(a(x))); }
};
// [end]

// [leaf_tracer]
/// Keeps SubModule whole instead of tracing through it.
struct SubModulesAreLeaves : fx::Tracer {
  bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const override {
    return dynamic_cast<const SubModuleImpl*>(&module) || fx::Tracer::is_leaf_module(module, path);
  }
};
// [end]

void nested_modules() {
  std::cout << "== nested modules\n";
  torch::manual_seed(0);
  auto net = std::make_shared<Model>();
  at::Tensor x = torch::randn({1, 10});
  at::Tensor eager = net->forward(x);
  print_tensor(eager);

  auto through = fx::symbolic_trace(net);
  through->graph().print_tabular();
  check_equal(eager, fx::Interpreter(*through).run({x}));

  SubModulesAreLeaves tracer;
  auto whole = fx::symbolic_trace(tracer, net);
  whole->graph().print_tabular();
  check_equal(eager, fx::Interpreter(*whole).run({x}));
}

struct ModelWithHead : torch::nn::Module {
  SubModule a = register_module("sub_module_a", SubModule(10, 20));
  SubModule b = register_module("sub_module_b", SubModule(20, 5));
  nn::Linear another_linear = register_module("another_linear", nn::Linear(5, 2));
  auto forward(auto x) { return another_linear(b(relu(a(x)))); }
};

// [call_module]
/// Logs every call of a module, looks closer at one and counts another.
struct CallLog : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value call_module(std::string_view target, fx::Values args, fx::KwValues kwargs) override {
    std::cout << "call of " << target << "\n";
    if (target == "sub_module_a")
      std::cout << "  its input: " << args.at(0).toTensor().sizes() << "\n";
    if (target == "another_linear") ++counts[std::string(target)];
    return fx::Interpreter::call_module(target, std::move(args), std::move(kwargs));
  }
  std::map<std::string, int> counts;
};
// [end]

void logged_calls() {
  std::cout << "== logged calls\n";
  torch::manual_seed(0);
  auto net = std::make_shared<ModelWithHead>();
  at::Tensor x = torch::randn({1, 10});
  at::Tensor eager = net->forward(x);
  SubModulesAreLeaves leaves;
  for (auto& gm : {fx::symbolic_trace(net), fx::symbolic_trace(leaves, net)}) {
    CallLog log(*gm);
    fx::Value result = log.run({x});
    print_tensor(result.toTensor());
    for (const auto& [target, count] : log.counts) std::cout << target << ": " << count << "\n";
    check_equal(eager, result);
  }
}

struct Mlp : torch::nn::Module {
  nn::Linear linear1 = register_module("linear1", nn::Linear(10, 5));
  nn::Linear linear2 = register_module("linear2", nn::Linear(5, 2));
  auto forward(auto x) { return linear2(relu(linear1(x))); }
};

void direct_call() {
  std::cout << "== direct call\n";
  torch::manual_seed(0);
  // [direct]
  auto net = std::make_shared<Mlp>();
  auto gm = fx::symbolic_trace(net);
  gm->graph().print_tabular();
  at::Tensor x = torch::randn({1, 10});
  fx::Value result = (*gm)(x);
  // [end]
  print_tensor(result.toTensor());
  check_equal(net->forward(x), result);
}

struct ConvNet : torch::nn::Module {
  nn::Conv2d conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)));
  nn::BatchNorm2d bn = register_module("bn", nn::BatchNorm2d(16));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  nn::MaxPool2d pool = register_module("pool", nn::MaxPool2d(2));
  auto forward(auto x) { return pool(relu(bn(conv(x)))); }
};

void without_a_module() {
  std::cout << "== without a module\n";
  torch::manual_seed(0);
  auto net = std::make_shared<ConvNet>();
  auto gm = fx::symbolic_trace(net);
  gm->graph().print_tabular();
  at::Tensor x = torch::randn({1, 3, 32, 32});

  // [skip]
  // A copy of the graph in which whoever read the batch norm reads its input.
  auto graph = std::make_shared<fx::Graph>();
  fx::ValueMap copies;
  for (const fx::Node& node : gm->graph().nodes()) {
    if (node.op() == fx::Opcode::kCallModule && node.target() == "bn") {
      std::cout << "leaving out " << node.target().str() << "\n";
      copies[&node] = copies.at(&node.arg(0).node());
    } else {
      copies[&node] = graph->node_copy(node, [&](fx::Node& input) { return copies.at(&input); });
    }
  }
  graph->lint();
  fx::GraphModule skipped(*net, graph);
  // [end]
  graph->print_tabular();
  at::Tensor result = skipped(x).toTensor();
  at::Tensor by_hand = net->pool(net->relu(net->conv(x)));
  std::cout << result.sizes() << "\n"
            << "sum: " << result.sum().item<double>() << "\n"
            << "is conv, relu, pool: " << fx::to_string(fx::Value(torch::equal(result, by_hand)))
            << "\n";
  check_equal(by_hand, result);
  // Skipping a layer is no fusion: the result is another one.
  at::Tensor original = (*gm)(x).toTensor();
  std::cout << "sum of the original: " << original.sum().item<double>() << "\n"
            << "close to the original: "
            << fx::to_string(fx::Value(torch::allclose(result, original))) << "\n";
}

}  // namespace

int main() {
  // [register]
  // Lets graphs call the class; as a leaf only where a tracer says so.
  fx::register_module_type<SubModuleImpl>("SubModule", "x", /*is_leaf=*/false);
  // [end]
  one_linear();
  nested_modules();
  logged_calls();
  direct_call();
  without_a_module();
}
