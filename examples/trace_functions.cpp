// Tracing functions and modules with proxies, building a graph by hand, stepping through one, and a
// tracer of one's own.

#include <fx/fx.h>
#include <torch/torch.h>

#include <iostream>

namespace {

namespace nn = fx::nn;

void two_inputs() {
  std::cout << "== a function of two inputs\n";
  torch::manual_seed(0);
  // [function]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return (x + y) * 2; });
  fx::Value result = (*gm)(torch::randn({2, 3}), torch::randn({2, 3}));
  std::cout << fx::describe(result) << "\n" << fx::to_string(result) << "\n" << gm->graph() << "\n";
  // [end]
}

// [module]
struct TwoLayers : torch::nn::Module {
  nn::Linear linear1 = register_module("linear1", nn::Linear(10, 20));
  nn::Linear linear2 = register_module("linear2", nn::Linear(20, 5));
  auto forward(auto x) { return linear2(relu(linear1(x))); }
};
// [end]

void a_module() {
  std::cout << "== a module\n";
  torch::manual_seed(0);
  auto gm = fx::symbolic_trace(std::make_shared<TwoLayers>());
  fx::Value result = (*gm)(torch::randn({1, 10}));
  std::cout << fx::describe(result) << "\n"
            << fx::to_string(result.toTensor().detach()) << "\n"
            << gm->graph() << "\n";
}

void operators() {
  std::cout << "== operators\n";
  torch::manual_seed(0);
  auto gm = fx::symbolic_trace([](auto a) { return (a + 1) * 3; }, {.input_names = {"a"}});
  fx::Value result = (*gm)(torch::randn({5}));
  std::cout << fx::describe(result) << "\n" << fx::to_string(result) << "\n" << gm->graph() << "\n";
}

void by_hand() {
  std::cout << "== a graph by hand\n";
  torch::manual_seed(0);
  // [by_hand]
  auto graph = std::make_shared<fx::Graph>();
  fx::Node& input = graph->placeholder("input");
  fx::Node& two = graph->create_node("call_function", "torch.tensor", {fx::Argument::list({2.0})});
  fx::Node& sum = graph->create_node("call_function", "operator.add", {input, two});
  graph->output(sum);
  graph->lint();
  fx::GraphModule gm(graph);
  std::cout << *graph << "\nnode " << input.name() << " reads input " << input.target().str()
            << "\n";
  // [end]
  at::Tensor x = torch::randn({3});
  std::cout << fx::to_string(gm(x)) << "\n"
            << "is x + 2: " << fx::to_string(fx::Value(torch::equal(gm(x).toTensor(), x + 2)))
            << "\n";
}

struct OneLayer : torch::nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(5, 3));
  auto forward(auto x) { return linear(x); }
};

void stepping() {
  std::cout << "== stepping\n";
  torch::manual_seed(0);
  auto gm = fx::symbolic_trace(std::make_shared<OneLayer>());
  at::Tensor x = torch::randn({1, 5});
  // [stepping]
  fx::Interpreter interpreter(*gm);
  fx::Value first = interpreter.run_node(gm->graph().nodes().front(), {x});  // one node alone
  fx::Value result = interpreter.run({x});
  std::cout << "first node gives the input: "
            << fx::to_string(fx::Value(torch::equal(first.toTensor(), x))) << "\n"
            << "result: " << fx::to_string(result.toTensor().detach()) << "\n"
            << "env:";
  for (const std::string& name : interpreter.env().names()) std::cout << " " << name;
  std::cout << "\n";
  interpreter.start({x});
  while (fx::Node* node = interpreter.step()) std::cout << "ran " << node->name() << "\n";
  // [end]
}

// [tracer]
/// Notes in the metadata of a node which module it was recorded in.
struct TaggingTracer : fx::Tracer {
  void trace_module(const torch::nn::Module& module, std::string_view path,
                    fx::Node& node) override {
    node.meta().set("module_name", std::string(path));
  }
};
// [end]

struct LinearRelu : torch::nn::Module {
  nn::Linear linear = register_module("linear", nn::Linear(2, 4));
  nn::ReLU relu = register_module("relu", nn::ReLU());
  auto forward(auto x) { return relu(linear(x)); }
};

void own_tracer() {
  std::cout << "== an own tracer\n";
  // [use_tracer]
  TaggingTracer tracer;
  auto gm = fx::symbolic_trace(tracer, std::make_shared<LinearRelu>());
  for (fx::Node& node : gm->graph().nodes())
    if (const std::string* module = node.meta().get<std::string>("module_name"))
      std::cout << node.name() << " comes from module " << *module << "\n";
  // [end]
}

}  // namespace

int main() {
  two_inputs();
  a_module();
  operators();
  by_hand();
  stepping();
  own_tracer();
}
