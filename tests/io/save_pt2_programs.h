#pragma once

// What tests of save_pt2 share.

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/graph/text.h"
#include "fx/io/import_export.h"
#include "fx/io/save_pt2.h"
#include "tests/io/archive_builder.h"
#include "tests/io/zoo.h"

namespace fx::io::testing {

inline std::string text_of(const GraphModule& module) { return to_text(module.graph()); }

inline std::shared_ptr<GraphModule> written_and_read(const GraphModule& module,
                                                     const std::string& path,
                                                     const SavePt2Options& options = {}) {
  save_pt2(module, path, options);
  return load(path, {.verify_weights = true});
}

inline std::vector<ZooEntry> running_programs() {
  std::vector<ZooEntry> entries = read_manifests();
  std::erase_if(entries, [](const ZooEntry& entry) { return !entry.runs(); });
  return entries;
}

inline std::string zoo_path(const std::string& name) {
  return source_path("tests/io/zoo/" + name + ".pt2");
}

/// A graph that no capture made: an operator a keyword at a time.
inline std::shared_ptr<GraphModule> by_hand() {
  auto graph = std::make_shared<Graph>();
  auto module = std::make_shared<GraphModule>(graph);
  module->set_parameter("w", torch::randn({4, 3}));
  module->set_buffer("b", torch::randn({4}), /*persistent=*/false);
  module->set_constant("c", torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}));
  Node& x = graph->placeholder("x");
  Node& w = graph->get_attr("w");
  Node& b = graph->get_attr("b");
  Node& c = graph->get_attr("c");
  Node& linear = graph->call_function("aten::linear", {x, w, b});
  Node& scaled = graph->call_function("aten::add.Tensor", {linear, c}, {{"alpha", 0.5}});
  Node& chunks = graph->call_function("aten::chunk", {scaled, 2, 1});
  Node& second = graph->call_function("operator.getitem", {chunks, -1});
  Node& half = graph->call_function("aten::to.dtype", {second, torch::kBFloat16});
  Node& back = graph->call_function("aten::to.dtype", {half, torch::kFloat});
  std::vector<DictItem> items{{"first", back}, {"none", Argument()}, {"n", 3}};
  graph->output(Argument::dict(std::move(items)));
  module->recompile();
  return module;
}

}  // namespace fx::io::testing
