// A user of an installed fxcpp: captures a net of its own, rewrites it, runs it.
#include <fx/fx.h>

#include <iostream>

namespace nn = fx::nn;

struct Net : torch::nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(4, 2));
  auto forward(auto x) { return relu(fc(x)); }
};

int main() {
  auto net = std::make_shared<Net>();
  auto gm = fx::symbolic_trace(net);
  for (fx::Node& n : gm->graph().nodes())
    if (n.calls("torch.relu")) n.set_target("torch.sigmoid");
  gm->graph().lint({.strict = true});
  gm->recompile();
  fx::PassManager("cse,dce").run(*gm);
  std::cout << gm->graph();

  torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({3, 4});
  const at::Tensor expected = torch::sigmoid(net->fc(x));
  const bool same = torch::equal((*gm)(x).toTensor(), expected) &&
                    torch::equal(fx::Interpreter(*gm).run({x}).toTensor(), expected);
  return same && gm->graph().size() == 4 ? 0 : 1;
}
