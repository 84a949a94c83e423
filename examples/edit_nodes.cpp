// Changing arguments of nodes, and changing the nodes: each sample traces a function of one line,
// edits its graph and runs it before and after.

#include <fx/fx.h>
#include <torch/torch.h>

#include <iostream>

namespace {

double call(fx::GraphModule& gm, double x) {
  return gm(torch::tensor(x)).toTensor().item<double>();
}

std::string names(const fx::Graph& graph) {
  std::string out;
  for (const fx::Node& node : graph.nodes())
    out += (out.empty() ? "" : ", ") + std::string(node.name());
  return out;
}

void two_inputs() {
  std::cout << "== update_arg\n";
  // [update_arg]
  auto gm = fx::symbolic_trace([](auto x, auto y) { return (x + y) * 2; });
  fx::Node& mul = *gm->graph().find_node("mul");
  std::cout << "before: " << fx::repr(mul.args()) << "\n";
  mul.update_arg(1, 3);
  std::cout << "after: " << fx::repr(mul.args()) << "\n";
  gm->recompile();
  std::cout << "gm(1, 2) = " << (*gm)(torch::tensor(1), torch::tensor(2)).toTensor().item<int>()
            << "\n";
  // [end]
}

void a_constant() {
  std::cout << "== a constant\n";
  auto gm = fx::symbolic_trace([](auto x) { return (x + 5) * 2; });
  gm->graph().print_tabular();
  std::cout << "original: " << call(*gm, 3) << "\n";
  gm->graph().find_node("mul")->update_arg(1, 10);
  gm->graph().lint();
  gm->recompile();
  gm->graph().print_tabular();
  std::cout << "modified: " << call(*gm, 3) << "\n";
}

void another_node() {
  std::cout << "== another node as argument\n";
  // [another_node]
  auto gm = fx::symbolic_trace([](auto x) { return ((x + 10) - 5) * 2; });
  gm->graph().print_tabular();
  std::cout << "original: " << call(*gm, 10) << "\n";
  fx::Node& add = *gm->graph().find_node("add");
  fx::Node& mul = *gm->graph().find_node("mul");
  std::cout << "before: " << fx::repr(mul.args()) << "\n";
  mul.update_arg(0, add);
  std::cout << "after: " << fx::repr(mul.args()) << "\n";
  gm->recompile();
  gm->graph().print_tabular();
  std::cout << "modified: " << call(*gm, 10) << "\n";
  // [end]
}

void a_keyword() {
  std::cout << "== update_kwarg\n";
  // [update_kwarg]
  auto gm =
      fx::symbolic_trace([](auto x) { return clamp(x, fx::kw("min", -5), fx::kw("max", 5)); });
  fx::Node& clamp = *gm->graph().find_node("clamp");
  std::cout << "before: " << fx::repr(clamp.kwargs()) << ", " << call(*gm, 7) << "\n";
  clamp.update_kwarg("max", 10);
  gm->recompile();
  std::cout << "after: " << fx::repr(clamp.kwargs()) << ", " << call(*gm, 7) << "\n";
  // [end]
}

void replace_all_uses() {
  std::cout << "== replace_all_uses_with\n";
  // [replace_uses]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Graph& graph = gm->graph();
  fx::Node& old = *graph.find_node("add");
  {
    auto at = graph.inserting_before(old);  // new nodes go before `old` while `at` lives
    fx::Node& add = graph.call_function("operator.add", {old.arg(0), 2});
    old.replace_all_uses_with(add);
  }
  graph.erase_node(old);
  graph.lint();
  gm->recompile();
  // [end]
  std::cout << "nodes: " << names(graph) << "\n" << "gm(3) = " << call(*gm, 3) << "\n";
}

void without_insertion_point() {
  std::cout << "== without an insertion point\n";
  // [no_insertion_point]
  auto gm = fx::symbolic_trace([](auto x) { return (x + 1) * 2; });
  fx::Graph& graph = gm->graph();
  fx::Node& old = *graph.find_node("add");
  fx::Node& add = graph.call_function("operator.add", {old.arg(0), 2});  // lands behind the output
  old.replace_all_uses_with(add);
  try {
    graph.lint();
  } catch (const fx::LintError& error) {
    std::cout << error.what() << "\n";
  }
  // [end]
}

void another_operation() {
  std::cout << "== another operation\n";
  // [another_operation]
  auto gm = fx::symbolic_trace([](auto x) { return x * 2; });
  fx::Graph& graph = gm->graph();
  fx::Node& mul = *graph.find_node("mul");
  {
    auto at = graph.inserting_after(mul);
    fx::Node& add = graph.call_function("operator.add", {mul.arg(0), 2});
    mul.replace_all_uses_with(add);
  }
  graph.erase_node(mul);
  graph.lint();
  gm->recompile();
  // [end]
  std::cout << "nodes: " << names(graph) << "\n" << "gm(5) = " << call(*gm, 5) << "\n";
}

void a_node_in_between() {
  std::cout << "== a node in between\n";
  // [in_between]
  auto gm = fx::symbolic_trace([](auto x) { return (x - 1) * 2; });
  fx::Graph& graph = gm->graph();
  fx::Node& mul = *graph.find_node("mul");
  {
    auto at = graph.inserting_before(mul);
    mul.update_arg(0, graph.call_function("torch.relu", {mul.arg(0)}));
  }
  graph.lint();
  gm->recompile();
  // [end]
  std::cout << "nodes: " << names(graph) << "\n"
            << "gm([-3, 4]) = " << fx::to_string((*gm)(torch::tensor({-3.0, 4.0}))) << "\n";
}

}  // namespace

int main() {
  std::cout << std::fixed;
  std::cout.precision(1);
  two_inputs();
  a_constant();
  another_node();
  a_keyword();
  replace_all_uses();
  without_insertion_point();
  another_operation();
  a_node_in_between();
}
