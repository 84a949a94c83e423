#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "fx/ops/value.h"
#include "tools/fxcpp/command.h"

namespace fx::cli {

/// What executes a graph.
enum class Backend : std::uint8_t {
  kInterpret,  ///< the Interpreter: node by node, the reference
  kPlan,       ///< GraphModule's own planned execution
};

/// The words of --backend.
std::vector<std::string> backend_names();
/// @throws UsageError kBackendMissing, with a "did you mean".
Backend backend_from_name(const std::string& name);
std::string_view backend_name(Backend backend);

/// Flat inputs in, flat outputs out: one for each placeholder and each value returned. Random
/// operators start from `seed`. No gradients are recorded.
/// @throws RunError of a failing node.
Values run_backend(GraphModule& module, Backend backend, Values inputs, std::uint64_t seed,
                   const Talk& talk);

/// --threads: the number of threads of LibTorch's operators.
void add_threads_option(Command& command, int& threads);
/// @throws UsageError for a number that is not positive. 0 leaves the default.
void set_threads(int threads);

}  // namespace fx::cli
