#include "tools/fxcpp/pipeline.h"

#include <algorithm>

namespace fx::cli {

bool wants_inputs(const std::string& pipeline) {
  return std::ranges::any_of(parse_pipeline(pipeline),
                             [](const Pass& pass) { return pass.name() == "shape_prop"; });
}

PipelineResult run_pipeline(
    Model& model, const std::string& pipeline, const ModelInputs* inputs, const Talk& talk,
    const std::function<void(const PassStatistics&, const std::string& before,
                             const std::string& after)>& on_change) {
  PassManagerOptions options;
  if (inputs != nullptr) options.example_inputs = inputs->clone();
  PassManager manager(pipeline, std::move(options));
  Progress progress(talk, "pass", manager.passes().size());
  std::string text = on_change ? model.module->graph().str() : "";
  manager.add_before_hook([&progress](const Pass& pass, GraphModule&) {
    progress.step(pass.name());
    return true;
  });
  if (on_change) {
    manager.add_after_hook([&](const PassStatistics& statistics, GraphModule& module) {
      std::string after = module.graph().str();
      if (after != text) on_change(statistics, text, after);
      text = std::move(after);
    });
  }
  // Inputs are flat here, so the passes see the module without its structure.
  GraphModule& module = *model.module;
  const auto in_spec = module.in_spec(), out_spec = module.out_spec();
  module.set_specs(std::nullopt, std::nullopt);
  PipelineResult result = manager.run(module);
  module.set_specs(in_spec, out_spec);
  model.refresh();
  return result;
}

Json passes_json(const PipelineResult& result) {
  Json json = Json::array();
  for (const PassStatistics& pass : result.passes) {
    json.push_back({{"name", pass.name},
                    {"changed", pass.changed},
                    {"rewrites", pass.rewrites},
                    {"nodes_before", pass.nodes_before},
                    {"nodes_after", pass.nodes_after},
                    {"ms", pass.seconds * 1e3}});
    for (const auto& [rule, count] : pass.rules) json.back()["rules"][std::string(rule)] = count;
  }
  return json;
}

}  // namespace fx::cli
