#pragma once

// The programs that scripts/export_zoo.py exported, with inputs and what Python made of them.

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "fx/graph/graph_module.h"

namespace fx::io::testing {

/// One entry of a manifest.
struct ZooEntry {
  std::string folder;
  std::string version;  ///< of the torch that exported it, "2_9"
  nlohmann::json data;

  std::string name() const { return data.at("name").get<std::string>(); }
  std::string path(const std::string& file) const { return folder + "/" + file; }
  std::string path() const { return path(data.at("file").get<std::string>()); }
  bool runs() const { return data.at("expect") == "run"; }
  double rtol() const { return data.at("rtol").get<double>(); }
  double atol() const { return data.at("atol").get<double>(); }
};
void PrintTo(const ZooEntry& entry, std::ostream* out);

/// Those that are kept in the tree, or, if FXCPP_ZOO names a folder, those there.
std::vector<ZooEntry> read_manifests();

/// A value of a manifest: a tensor in a file, or a constant.
Value read_value(const ZooEntry& entry, const nlohmann::json& item);

/// The leaves of nested tuples, lists and dicts, in order.
void flatten_value(const Value& value, Values& leaves);

/// Calls `module` on flat inputs by the Interpreter, structured as its in_spec says, and gives flat
/// outputs.
Values call_flat(GraphModule& module, const Values& flat);

void expect_close(const Value& actual, const Value& expected, double rtol, double atol,
                  const std::string& what);

}  // namespace fx::io::testing
