#pragma once

#include <optional>
#include <string>

#include "fx/passes/pass_manager.h"
#include "tools/fxcpp/compare.h"
#include "tools/fxcpp/inputs.h"
#include "tools/fxcpp/model.h"

namespace fx::cli {

/// Runs a pipeline text ("dce,cse") over the model, verified after each pass, with progress on
/// stderr.
/// @param inputs for passes that need some (shape_prop), or null.
/// @param on_change is called after each pass that changed the graph with its name and the graph's
/// text before and after.
/// @throws PassError
PipelineResult run_pipeline(
    Model& model, const std::string& pipeline, const ModelInputs* inputs, const Talk& talk,
    const std::function<void(const PassStatistics&, const std::string& before,
                             const std::string& after)>& on_change = {});

/// Whether some pass of the pipeline wants inputs to run the module on.
bool wants_inputs(const std::string& pipeline);

/// {"name", "changed", "rewrites", "nodes_before", "nodes_after", "ms"} of each pass, and "rules"
/// of one that has rules: the number of rewrites by the name of the rule.
Json passes_json(const PipelineResult& result);

}  // namespace fx::cli
