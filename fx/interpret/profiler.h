#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fx/interpret/interpreter.h"

namespace fx {

/// What a ProfilingInterpreter knows of one node.
struct NodeProfile {
  std::string name;
  Opcode op = Opcode::kPlaceholder;
  std::string target;
  std::size_t calls = 0;
  double total_us = 0;  ///< wall time of run_node, arguments fetched included
  double min_us = 0;
  // Of the last value, when it is a tensor.
  std::vector<std::int64_t> shape;
  std::optional<at::ScalarType> dtype;
  std::int64_t bytes = 0;  ///< elements times size; the sum over the tensors of an aggregate
  std::string value;       ///< one line: "Tensor f32[2, 3]", "tuple of 2"
};

/// An Interpreter that measures each node. Times add up over runs until reset(). Accelerators run
/// asynchronously: their nodes show the time of the launch. For LibTorch's own profilers each node
/// is a range of its name (a user scope of at::RecordFunction) around the operators that it calls.
class ProfilingInterpreter : public Interpreter {
 public:
  using Interpreter::Interpreter;

  Value run_node(Node& node) override;

  /// In order of first execution.
  const std::vector<NodeProfile>& profiles() const noexcept { return profiles_; }
  /// Null for a node that has not run.
  const NodeProfile* find(const Node& node) const;
  double total_us() const;
  void reset();

  /// A table with one line a node, in order of execution, or slowest first.
  std::string table(bool slowest_first = false) const;

 private:
  std::vector<NodeProfile> profiles_;
  std::unordered_map<const Node*, std::size_t> index_;
};

}  // namespace fx
