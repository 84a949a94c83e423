#pragma once

#include <string>

#include "fx/graph/graph_module.h"
#include "fx/ops/value.h"

namespace fx {

/// How fx::save_pt2 writes a file.
struct SavePt2Options {
  /// Values for the inputs of the graph, one for each placeholder, in order. Needed for a graph of
  /// whose inputs nothing is known (built by hand, symbolic_trace), and for one that calls modules,
  /// methods or functions other than operators: it is run on them once, and what it calls of
  /// LibTorch is recorded (make_fx), so that shapes are those of the example.
  Values example_inputs = {};
  /// The program's name in the archive; torch.export.load reads "model".
  std::string model = "model";
  /// Also stack traces and module stacks of nodes.
  bool node_meta = true;
  /// Return only when the disk has the bytes, as fx::SaveOptions::flush.
  bool flush = true;
};

/// Writes `module` as a torch.export archive: Python's torch.export.load (2.9 and later) reads it
/// and runs it to the same result, and so does fx::load. Of a module that was loaded from such a
/// file, everything that Python reads comes back: signature, structured inputs and outputs,
/// symbols and their ranges, guards, tied weights. The file holds no pickle and appears whole or
/// not at all; the same module gives the same bytes.
///
/// Operators that write to buffers, parameters or inputs stay calls (the training dialect of
/// torch.export); only where such copies end an otherwise functional graph, they are written as
/// mutations of the signature, which is how torch.export has them after run_decompositions().
/// @throws ImportError kNotExportable with everything that has no form in an exported program at
///   once, kWriteFailed; LintError for a broken graph. O(nodes + bytes of all tensors).
void save_pt2(const GraphModule& module, const std::string& path,
              const SavePt2Options& options = {});

}  // namespace fx
