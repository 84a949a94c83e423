#pragma once

// Saving and loading at once, and what has to hold of it.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>

#include "fx/graph/text.h"
#include "fx/io/save_module.h"
#include "tests/io/archive_builder.h"

namespace fx::io::testing {

namespace nn = torch::nn;

inline at::Tensor ramp(at::IntArrayRef shape) {
  return torch::arange(c10::multiply_integers(shape)).to(torch::kFloat).view(shape);
}

inline const void* memory(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

inline std::shared_ptr<GraphModule> saved_and_loaded(const GraphModule& module,
                                                     const LoadOptions& options = {}) {
  const TempDir folder;
  const std::string path = folder.path("module.any");
  save(module, path);
  const std::string bytes = read_file(path);
  auto loaded = load(path, options);
  // What was loaded is written as the same file.
  save(*loaded, path);
  EXPECT_TRUE(read_file(path) == bytes);
  return loaded;
}

// Graph, meta, state and constants are equal.
inline void expect_equal(const GraphModule& a, const GraphModule& b) {
  EXPECT_EQ(to_text(a.graph(), {.meta = true}), to_text(b.graph(), {.meta = true}));
  EXPECT_EQ(a.class_name(), b.class_name());
  EXPECT_EQ(a.is_training(), b.is_training());
  const auto mine = a.state_dict(), theirs = b.state_dict();
  ASSERT_EQ(mine.size(), theirs.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].first, theirs[i].first);
    EXPECT_TRUE(at::equal(mine[i].second, theirs[i].second)) << mine[i].first;
    EXPECT_EQ(mine[i].second.requires_grad(), theirs[i].second.requires_grad()) << mine[i].first;
  }
}

// A graph that calls one module with one input.
inline std::shared_ptr<GraphModule> calling(const nn::Module& root, const std::string& path) {
  auto graph = std::make_shared<Graph>();
  Node& x = graph->placeholder("x");
  graph->output(graph->call_module(path, {x}));
  return std::make_shared<GraphModule>(root, graph);
}

}  // namespace fx::io::testing
