#pragma once

#include <functional>
#include <string>

#include "tests/random/oracles.h"

namespace fx::fuzz {

struct MinimiseOptions {
  double seconds = 10;  ///< gives up then, with the smallest program so far
};

/// A program that is as small as it gets while `fails` holds: delta debugging over nodes, outputs,
/// inputs, arguments, shapes and values. The result has no eager run to compare with.
/// @param fails must hold for `program`; false for what does not even run
Program minimise(const Program& program, const std::function<bool(const Program&)>& fails,
                 const MinimiseOptions& options = {});

/// The same for a failed check: candidates must run and fail it in the same way, by other results
/// or by an exception.
Program minimise(const Program& program, const Failure& failure,
                 const MinimiseOptions& options = {});

/// The program as text: graph, attributes, inputs.
std::string describe(const Program& program);

/// A GoogleTest that builds the program and makes sure that `call`, an expression of `program`
/// ("check_runs(program)"), gives an empty string, or, if `fails`, another one. It needs
/// tests/random/literals.h.
std::string cpp_test(const Program& program, const std::string& suite, const std::string& name,
                     const std::string& call, bool fails = false);

/// What to print of a failure: how to run it again, the program shrunk, and a test of it.
std::string report(const Program& program, const Failure& failure, const std::string& rerun);

}  // namespace fx::fuzz
