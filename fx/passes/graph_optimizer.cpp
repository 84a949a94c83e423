#include "fx/passes/graph_optimizer.h"

namespace fx {

std::vector<Pass> GraphOptimizer::passes() const {
  std::vector<Pass> passes =
      parse_pipeline("remove_dropout,fuse_conv_bn,constant_fold,remove_noops");
  passes.insert(passes.end(), added_.begin(), added_.end());
  for (Pass& pass : parse_pipeline("cse,dce")) passes.push_back(std::move(pass));
  return passes;
}

PipelineResult GraphOptimizer::optimize(GraphModule& module) const {
  return PassManager(passes(), options_).run(module);
}

std::shared_ptr<GraphModule> optimize_for_inference(const GraphModule& module) {
  auto copy = module.deep_copy();
  copy->eval();
  GraphOptimizer().optimize(*copy);
  return copy;
}

}  // namespace fx
