#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"
#include "tests/random/choices.h"
#include "tests/random/outcome.h"

/// Random programs that run: see docs/design/fuzzing.md.
namespace fx::fuzz {

/// What random programs are like. Percentages are shares of the operations, unless they say else.
struct ProgramOptions {
  int operations = 20;  ///< rules that are applied; most make one or two nodes
  int view_percent = 25;
  int module_percent = 8;
  int factory_percent = 6;
  int noop_percent = 8;
  int repeat_percent = 12;  ///< an operation that was there already, once more
  /// Of the programs, those with in-place operators; in them, of the operations.
  int writing_programs_percent = 35;
  int write_percent = 15;
  /// Of the programs, those that draw random numbers.
  int drawing_programs_percent = 10;
  /// Of the elements of inputs and attributes: nan, infinities, -0.0, extreme and subnormal ones.
  int special_percent = 4;
  std::vector<c10::ScalarType> dtypes = {c10::kFloat, c10::kDouble, c10::kBFloat16, c10::kLong,
                                         c10::kInt,   c10::kByte,   c10::kBool};
  /// Sizes of dimensions of inputs; a program uses a few of them.
  std::vector<std::int64_t> sizes = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 17};
  std::int64_t max_numel = 600;  ///< of any tensor
};

/// A program and what it is run on.
struct Program {
  std::shared_ptr<GraphModule> module;  ///< in eval mode but for active dropout; recompiled
  Values inputs;                        ///< for the placeholders, which may have defaults instead
  bool writes = false;                  ///< has in-place operators
  bool draws = false;                   ///< draws random numbers
  bool active_dropout = false;
  /// What the operators give when they are called one by one without a graph, in C++, while the
  /// program was made; nothing for programs that come from elsewhere.
  std::optional<Outcome> eager;
  std::map<std::string, int> rules;  ///< how often each rule made a part of it
};

/// A program by choices; valid by construction: operators get only what their shape and dtype rules
/// allow. Values of tensors decide nothing. O(operations + elements).
/// @throws std::logic_error naming the rule that made a call LibTorch refuses: a fault of the rule.
Program random_program(Choices& choices, const ProgramOptions& options = {});
Program random_program(std::uint64_t seed, const ProgramOptions& options = {});

/// The names of all rules.
std::vector<std::string> rule_names();

/// A copy that shares nothing with the program.
Program copy_of(const Program& program);

}  // namespace fx::fuzz
