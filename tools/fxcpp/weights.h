#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::cli {

/// A tensor of a module.
struct WeightRow {
  std::string name;
  std::string kind;  ///< "parameter", "buffer", "constant"
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of its elements
  /// The first tensor with the same memory, or empty.
  std::string shared_with;
};

/// Sums over tensors. Elements of tensors that share memory with an earlier one of the same size
/// count once; bytes are those of the storages, each once, so that ties and views are not counted
/// twice.
struct WeightTotal {
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
};

struct WeightSummary {
  std::vector<WeightRow>
      rows;  ///< in the module's order: parameters, buffers, constants of the graph
  WeightTotal parameters;
  WeightTotal buffers;
  WeightTotal constants;
};

/// All parameters and buffers of `module`, and what else its get_attr nodes read. O(tensors +
/// nodes).
WeightSummary summarize_weights(const GraphModule& module);

/// A module of the model, and what is below it.
struct ModuleRow {
  std::string path;  ///< "" for the model itself
  std::string type;  ///< "torch.nn.modules.conv.Conv2d", empty if unknown
  std::size_t depth = 0;
  std::size_t calls = 0;  ///< of operators, nested modules included
  std::uint64_t parameters = 0;
};

/// The module hierarchy as nodes and weights tell it, parents before children, down to `depth`.
std::vector<ModuleRow> module_tree(const GraphModule& module, std::size_t depth);

}  // namespace fx::cli
