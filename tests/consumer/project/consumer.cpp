// The smallest user of an installed fxcpp: builds a graph, checks it, prints it, and calls LibTorch beside it.
#include <ATen/ATen.h>
#include <fx/graph/graph.h>

#include <iostream>

int main() {
  fx::Graph graph;
  fx::Node& x = graph.placeholder("x");
  fx::Node& y = graph.call_function("aten::relu", {&x});
  graph.output(&y);
  graph.lint();
  std::cout << graph;

  at::Tensor result = at::relu(at::tensor({-1.0F, 2.0F}));
  return graph.size() == 3 && result.sum().item<double>() == 2.0 ? 0 : 1;
}
