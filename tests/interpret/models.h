#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {

/// (x + 1) * 2 as symbolic tracing records it: x, add, mul, output.
inline std::shared_ptr<GraphModule> affine_module() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& add = graph->call_function("operator.add", {x, 1});
  Node& mul = graph->call_function("operator.mul", {add, 2});
  graph->output(mul);
  return std::make_shared<GraphModule>(graph);
}

/// A module with parameter `param` [10, 20] and `linear` 20 -> 5: linear(y * (x + param)).
struct ParamModelImpl : torch::nn::Module {
  ParamModelImpl() {
    param = register_parameter("param", torch::randn({10, 20}));
    linear = register_module("linear", torch::nn::Linear(20, 5));
  }
  at::Tensor forward(at::Tensor x, at::Tensor y) { return linear->forward(y * (x + param)); }

  at::Tensor param;
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(ParamModel);

/// Its graph: x, y, param, add, mul, linear, output.
inline std::shared_ptr<Graph> param_model_graph() {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& y = graph->placeholder("y");
  Node& param = graph->get_attr("param");
  Node& add = graph->call_function("operator.add", {x, param});
  Node& mul = graph->call_function("operator.mul", {y, add});
  Node& linear = graph->call_module("linear", {mul});
  graph->output(linear);
  return graph;
}

inline std::shared_ptr<GraphModule> param_module(const ParamModel& model) {
  return std::make_shared<GraphModule>(*model, param_model_graph(), "ParamModel");
}

/// placeholder, `length` additions of 1, output.
inline std::shared_ptr<GraphModule> chain_module(std::size_t length,
                                                 const char* function = "operator.add") {
  auto graph = std::make_shared<Graph>();
  Node* last = &graph->placeholder("x");
  for (std::size_t i = 0; i < length; ++i) last = &graph->call_function(function, {*last, 1});
  graph->output(*last);
  return std::make_shared<GraphModule>(graph);
}

/// A module of the user's own with a submodule, for the two leaf policies.
struct MySubModuleImpl : torch::nn::Module {
  MySubModuleImpl(std::int64_t in, std::int64_t out) {
    linear = register_module("linear", torch::nn::Linear(in, out));
  }
  at::Tensor forward(at::Tensor x) {
    ++forward_calls;
    return linear->forward(x);
  }

  torch::nn::Linear linear{nullptr};
  static inline int forward_calls = 0;
};
TORCH_MODULE(MySubModule);

/// Two MySubModules (10 -> 20, 20 -> 5) with a relu between.
struct MyModelImpl : torch::nn::Module {
  MyModelImpl() {
    sub_module_a = register_module("sub_module_a", MySubModule(10, 20));
    sub_module_b = register_module("sub_module_b", MySubModule(20, 5));
    another_linear = register_module("another_linear", torch::nn::Linear(5, 2));
  }
  at::Tensor forward(at::Tensor x) {
    return another_linear->forward(sub_module_b->forward(torch::relu(sub_module_a->forward(x))));
  }

  MySubModule sub_module_a{nullptr};
  MySubModule sub_module_b{nullptr};
  torch::nn::Linear another_linear{nullptr};
};
TORCH_MODULE(MyModel);

/// With `leaf`, the submodules are called as a whole; else what is inside them.
inline std::shared_ptr<GraphModule> my_model_module(const MyModel& model, bool leaf) {
  register_module_type<MySubModuleImpl>("MySubModule");
  const std::string suffix = leaf ? "" : ".linear";
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  Node& a = graph->call_module("sub_module_a" + suffix, {x});
  Node& relu = graph->call_function("torch.relu", {a});
  Node& b = graph->call_module("sub_module_b" + suffix, {relu});
  Node& last = graph->call_module("another_linear", {b});
  graph->output(last);
  return std::make_shared<GraphModule>(*model, graph, "MyModel");
}

inline Node& node_of(GraphModule& module, std::string_view name) {
  Node* node = module.graph().find_node(name);
  if (!node) throw std::runtime_error("the graph has no node " + std::string(name));
  return *node;
}

inline bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}
inline bool same(const Value& a, const at::Tensor& b) {
  return a.isTensor() && same(a.toTensor(), b);
}
inline at::Tensor row(std::vector<float> values) { return torch::tensor(values); }

}  // namespace fx
