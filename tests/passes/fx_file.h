#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx {

/// A pass test in text form (tests/text/*.fx): a graph with instructions in its comments.
///
///     # RUN: dce,cse                          the pipeline
///     # INPUT: x = f32[2, 3]                  an input; results before and after are compared on
///     it # PARAM: w = f32[4, 3]                  random parameter; BUFFER and CONST likewise #
///     CONST: c = [1.0, 2.0]                 with these values # ALIAS: v = w the same tensor under
///     another name # MODULE: conv = Conv2d(3, 8, 3)        a submodule in eval mode; `train` after
///     it: training mode # TRAIN                                 the whole module in training mode
///     # UNCHANGED                             the pipeline must not change anything
///     # NOT-IDEMPOTENT                        a second run may change something
///     # RESULTS-DIFFER                        results are not compared
///     # ERROR: kBadPassOption text            the pipeline must fail so
///     # CHECK: ...                            lines for torch's FileCheck, on to_text of the
///     result fx 1
///     ...
///
/// Attributes that are left are listed behind the graph, as "# attributes: a b c", for CHECK lines.
struct FxFile {
  std::string pipeline;
  std::string checks;
  std::string error;
  bool unchanged = false;
  bool idempotent = true;
  bool compare_results = true;
  std::shared_ptr<GraphModule> module;
  Values inputs;

  /// @throws std::runtime_error naming the line.
  static FxFile read(const std::string& text);
};

/// to_text of the module's graph and the list of its attributes.
std::string text_of(const GraphModule& module);

}  // namespace fx
