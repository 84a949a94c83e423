#include "tests/passes/random_program.h"

#include <torch/torch.h>

#include <random>

namespace fx {

std::shared_ptr<GraphModule> random_program(std::uint64_t seed, int operations) {
  std::mt19937_64 random(seed);
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  module->eval();
  const at::Tensor state = torch::linspace(-1, 1, 16).reshape({4, 4}).clone();
  module->set_buffer("state", state);
  module->set_buffer("turned", state.t());
  module->set_buffer("fixed", torch::linspace(0, 2, 16).reshape({4, 4}).clone());
  module->set_parameter("weight",
                        torch::linspace(-2, 0, 16).reshape({4, 4}).clone().set_requires_grad(true));

  std::vector<Node*> values = {&graph->placeholder("x"), &graph->placeholder("y")};
  auto pick = [&]() -> Node& {
    return *values[values.size() - 1 - below(std::min<std::size_t>(values.size(), 12))];
  };
  // Few writes in some programs, many in others, none in most.
  const std::size_t writes = below(3) == 0 ? 1 + below(8) : 0;
  auto make = [&]() -> Node& {
    const char* unary[] = {"aten::cos", "aten::neg", "aten::relu", "aten::sigmoid"};
    const char* view[] = {"aten::t", "aten::alias", "aten::detach"};
    const char* attribute[] = {"state", "turned", "fixed", "weight"};
    if (writes && below(16) < writes) {
      Node& target = pick();
      switch (below(4)) {
        case 0:
          return graph->call_function("aten::add_.Scalar", {target, 0.5});
        case 1:
          // A copy: eager refuses an operand that partly overlaps what is written.
          return graph->call_function("aten::mul_.Tensor",
                                      {target, graph->call_function("aten::clone", {pick()})});
        case 2:
          return graph->call_method("cos_", {target});
        default:
          return graph->call_function("operator.iadd", {target, 1});
      }
    }
    switch (below(12)) {
      case 0:
        return graph->get_attr(attribute[below(4)]);
      case 1:
        return graph->call_function("aten::zeros", {Argument(std::vector<std::int64_t>{4, 4})});
      case 2:
        return graph->call_function(view[below(3)], {pick()});
      case 3:
        return graph->call_function("aten::view",
                                    {graph->call_function("aten::contiguous", {pick()}),
                                     Argument(std::vector<std::int64_t>{4, 4})});
      case 4:
        return graph->call_function("aten::slice.Tensor", {pick(), 0, 0, 4});
      case 5:
        return graph->call_function("aten::mul.Tensor", {pick(), 1.0});
      case 6:
      case 7:
        return graph->call_function("aten::add.Tensor", {pick(), pick()});
      case 8: {
        Node& halves = graph->call_function("aten::split.Tensor", {pick(), 2});
        Node& first = graph->call_function("operator.getitem", {halves, below(2)});
        Node& second = graph->call_function("operator.getitem", {halves, below(2)});
        return graph->call_function("aten::cat", {Argument::list({first, second})});
      }
      case 9:
        return graph->call_function("aten::dropout", {pick(), 0.5, false});
      default:
        return graph->call_function(unary[below(4)], {pick()});
    }
  };
  for (int i = 0; i < operations; ++i) {
    Node& made = make();
    values.push_back(&made);
    // The same once more, now and then.
    if (below(4) == 0 && made.op() == Opcode::kCallFunction)
      values.push_back(&graph->node_copy(made, [](Node& input) { return Argument(input); }));
  }
  std::vector<Argument> results;
  for (std::size_t i = 0; i < 1 + below(3); ++i) results.emplace_back(pick());
  graph->output(Argument::tuple(std::move(results)));
  module->recompile();
  return module;
}

}  // namespace fx
