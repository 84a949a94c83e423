// Four ways to follow or change what a node gets when a graph runs: run it as it is, watch each
// node, give some nodes other inputs, and edit the graph.

#include <fx/fx.h>
#include <torch/torch.h>

#include <iostream>

#include "fx/interpret/value_map.h"

namespace {

namespace nn = fx::nn;

// [net]
struct Net : torch::nn::Module {
  at::Tensor param = register_parameter("param", torch::randn({10, 20}));
  nn::Linear linear = register_module("linear", nn::Linear(20, 5));
  auto forward(auto x, auto y) { return linear(y * (x + param)); }
};
// [end]

/// The net, its graph and inputs, from seed 0.
struct Setup {
  std::shared_ptr<Net> net = (torch::manual_seed(0), std::make_shared<Net>());
  std::shared_ptr<fx::GraphModule> gm = fx::symbolic_trace(net);
  at::Tensor x = torch::randn({10, 20});
  at::Tensor y = torch::randn({10, 1});
  at::Tensor eager = net->forward(x, y);
};

std::string python_bool(bool value) { return fx::to_string(fx::Value(value)); }

void plain_run() {
  std::cout << "== plain run\n";
  auto [net, gm, x, y, eager] = Setup();
  gm->graph().print_tabular();
  // [plain]
  at::Tensor result = fx::Interpreter(*gm).run({x, y}).toTensor();
  // [end]
  std::cout << "eager: " << eager.sizes() << "\n"
            << "interpreted: " << result.sizes() << "\n"
            << "first row: " << fx::to_string(result[0].detach()) << "\n"
            << "equal: " << python_bool(torch::allclose(eager, result)) << "\n";
}

void wrong_shape() {
  std::cout << "== wrong shape\n";
  auto [net, gm, x, y, eager] = Setup();
  // [wrong_shape]
  try {
    fx::Interpreter(*gm).run({torch::randn({5, 20}), torch::randn({5, 1})});
  } catch (const fx::RunError& error) {
    std::cout << error.what() << "\n";
  }
  // [end]
}

// [debug]
/// Prints what each node is, what it gets and what it gives.
struct DebugInterpreter : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    std::cout << "node " << node.name() << ": " << fx::opcode_name(node.op()) << " "
              << node.target().str() << "\n";
    auto [args, kwargs] = fetch_args_kwargs_from_env(node);
    for (const fx::Value& arg : args) std::cout << "  arg: " << fx::describe(arg) << "\n";
    for (const auto& [key, value] : kwargs)
      std::cout << "  " << key.str() << ": " << fx::describe(value) << "\n";
    fx::Value result = fx::Interpreter::run_node(node);
    std::cout << "  result: " << fx::describe(result) << "\n";
    return result;
  }
};
// [end]

void debug_run() {
  std::cout << "== debug run\n";
  auto [net, gm, x, y, eager] = Setup();
  at::Tensor result = DebugInterpreter(*gm).run({x, y}).toTensor();
  std::cout << "equal: " << python_bool(torch::allclose(eager, result)) << "\n";
}

// [zeros]
/// Gives every call of one function zeros instead of its tensors.
struct ZeroInputs : fx::Interpreter {
  ZeroInputs(fx::GraphModule& gm, std::string function)
      : fx::Interpreter(gm), function(std::move(function)) {}
  fx::Value call_function(const fx::Target& target, fx::Values args, fx::KwValues kwargs) override {
    if (target == function) {
      std::cout << "zeros for " << target.str() << "\n";
      fx::map_tensors(args, kwargs, [](const at::Tensor& t) { return torch::zeros_like(t); });
    }
    return fx::Interpreter::call_function(target, args, kwargs);
  }
  std::string function;
};
// [end]

void zero_inputs() {
  std::cout << "== zero inputs\n";
  auto [net, gm, x, y, eager] = Setup();
  // `x + param` in traced code is operator.add; the ATen operator is another target and never met.
  at::Tensor untouched = ZeroInputs(*gm, "aten::add.Tensor").run({x, y}).toTensor();
  std::cout << "aten::add.Tensor, result as before: " << python_bool(torch::equal(untouched, eager))
            << "\n";
  at::Tensor result = ZeroInputs(*gm, "operator.add").run({x, y}).toTensor();
  std::cout << "output: " << result.sizes() << "\n"
            << "close to zero: " << python_bool(torch::allclose(result, torch::zeros_like(result)))
            << "\n"
            << "first row: " << fx::to_string(result[0].detach()) << "\n"
            << "every row is the bias: "
            << python_bool(torch::equal(result, net->linear->bias.expand_as(result))) << "\n";
}

// [one_node]
/// Feeds ones to the module "linear", whatever the graph says.
struct OnesToLinear : fx::Interpreter {
  using fx::Interpreter::Interpreter;
  fx::Value run_node(fx::Node& node) override {
    if (node.op() != fx::Opcode::kCallModule || !(node.target() == "linear"))
      return fx::Interpreter::run_node(node);
    std::cout << "own inputs for " << node.name() << "\n";
    return call_module("linear", {torch::ones({5, 10})}, {});
  }
};
// [end]

struct OneLinear : torch::nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(10, 10));
  auto forward(auto x) { return linear(x); }
};

void own_inputs() {
  std::cout << "== own inputs for one node\n";
  torch::manual_seed(0);
  auto net = std::make_shared<OneLinear>();
  auto gm = fx::symbolic_trace(net);
  at::Tensor result = OnesToLinear(*gm).run({torch::randn({5, 10})}).toTensor();
  std::cout << result.sizes() << "\n"
            << fx::to_string(result[0].detach()) << "\n"
            << "is linear(ones): "
            << python_bool(torch::allclose(result, net->linear(torch::ones({5, 10})))) << "\n";
}

void edited_graph() {
  std::cout << "== edited graph\n";
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1.0) * 2.0; });
  const at::Tensor five = torch::tensor(5.0);
  gm->graph().print_tabular();
  std::cout << "called before the edit: " << fx::to_string((*gm)(five)) << "\n";
  // [edit]
  for (fx::Node& node : gm->graph().nodes())
    if (node.calls("operator.add")) {
      node.set_args({node.arg(0), 100.0});
      std::cout << "node " << node.name() << " now has " << fx::repr(node.args()) << "\n";
    }
  // The interpreter reads the graph as it stands; calls use it after recompile().
  const fx::Value interpreted = fx::Interpreter(*gm).run({five});
  gm->recompile();
  const fx::Value called = (*gm)(five);
  // [end]
  gm->graph().print_tabular();
  std::cout << "interpreted: " << interpreted.toTensor().item<double>() << "\n"
            << "called: " << called.toTensor().item<double>() << "\n";
}

}  // namespace

int main() {
  std::cout << std::fixed;
  std::cout.precision(1);
  plain_run();
  wrong_shape();
  debug_run();
  zero_inputs();
  own_inputs();
  edited_graph();
}
