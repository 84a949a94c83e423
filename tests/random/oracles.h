#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/passes/pass.h"
#include "tests/random/program.h"

/// What must hold for every program. A check returns what is wrong, or an empty string; it leaves
/// the program as it is.
namespace fx::fuzz {

using Check = std::function<std::string(const Program&)>;

/// The Interpreter, the plan and, where there is one, the eager run agree bit by bit.
std::string check_runs(const Program& program);
/// Text of the graph reads back as the same graph, which computes the same.
std::string check_text(const Program& program);
/// Clones and deep copies are equal, compute the same, and share nothing.
std::string check_copies(const Program& program);
/// fx::save and fx::load give an equal module with equal results, and again the same bytes.
std::string check_archive(const Program& program);

/// A pass to be checked. How exactly results must agree afterwards, and whether the pass makes
/// weights that 8 bits no longer hold exactly.
struct CheckedPass {
  Pass pass;
  Agreement agreement = Agreement::kExact;
};

/// How often something happened in a run over many programs.
struct Tally {
  std::int64_t programs = 0;
  std::int64_t nodes = 0;
  std::map<std::string, std::int64_t> hits;      ///< of a pass: programs that it rewrote
  std::map<std::string, std::int64_t> rewrites;  ///< of a pass: as it counts them
};

/// Runs the passes one after the other on a copy. After each one the graph is sound and computes
/// what the untouched one does, and a second run changes nothing.
/// @param twice as HowToRun::twice
std::string check_passes(const Program& program, std::span<const CheckedPass> passes, bool twice,
                         Tally* tally = nullptr);

/// A copy of the program on which the passes were run, one after the other.
Program after_passes(const Program& program, std::span<const CheckedPass> passes);

/// The passes of a pipeline text (parse_pipeline).
std::vector<CheckedPass> checked_passes(std::string_view pipeline);

/// All passes of the table in random order with random options, as far as these keep results, and
/// `more` among them.
std::vector<CheckedPass> random_passes(Choices& choices, const Program& program, bool twice,
                                       std::span<const CheckedPass> more = {});

/// A check that failed.
struct Failure {
  std::string name;  ///< of the check, with the passes
  std::string message;
  Check check;       ///< says the same of other programs
  std::string call;  ///< the check as a C++ expression of a `program`
};

struct OracleOptions {
  int archive_percent = 10;  ///< of the programs: they go through a file
  std::vector<CheckedPass> more_passes;
};

/// All checks of a program.
std::optional<Failure> check_all(const Program& program, Choices& choices, Tally& tally,
                                 const OracleOptions& options = {});

}  // namespace fx::fuzz
