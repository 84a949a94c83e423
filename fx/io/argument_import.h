#pragma once

// Internal: from the schema's arguments to those of a graph.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/io/export_schema.h"
#include "fx/ops/op_info.h"

namespace fx::io {

/// What a value of the file is, as far as operators ask.
enum class ValueKind : std::uint8_t { kTensor, kInt, kFloat, kBool, kString, kNone, kTensorList };

/// A name of the file and the node that stands for it.
struct ImportedValue {
  Node* node = nullptr;
  ValueKind kind = ValueKind::kTensor;
};

/// The values that exist so far, by their names in the file.
class ValueTable {
 public:
  /// `label` starts error messages.
  explicit ValueTable(std::string label) : label_(std::move(label)) {}

  /// @throws ImportError kBadProgram if the name is taken.
  void define(const std::string& name, ImportedValue value, const std::string& where);
  /// @throws ImportError kBadProgram for a name that does not exist, or not yet.
  const ImportedValue& get(const std::string& name, const std::string& where) const;
  /// The kind of a node that stands for a value of the file.
  ValueKind kind_of(const Node& node) const;
  /// Names that are defined somewhere in the file, to tell "later" from "never".
  void expect(const std::string& name) { expected_.insert(name); }

  const std::string& label() const { return label_; }

 private:
  std::string label_;
  std::unordered_map<std::string, ImportedValue> values_;
  std::unordered_map<const Node*, ValueKind> kinds_;
  std::set<std::string, std::less<>> expected_;
};

/// Things in a program that cannot be imported or exported, gathered so that the user sees all at
/// once.
class Problems {
 public:
  /// `what` is grouped: "operator aten::foo is unknown"; `where` lists the nodes.
  void add(const std::string& what, const std::string& where, bool forbidden = false);
  bool empty() const { return rows_.empty(); }
  /// All of them, a line each: "\n  - what (where, where, ... 12 in all)".
  std::string list() const;
  /// @throws ImportError kUnsupported, or kForbiddenOperator if any problem is one.
  [[noreturn]] void raise(const std::string& label) const;

 private:
  struct Row {
    std::string what;
    std::vector<std::string> nodes;
    std::size_t count = 0;
  };
  std::vector<Row> rows_;  // in order of first occurrence
  bool forbidden_ = false;
};

/// The name of an argument that is one value of the graph; null for constants and lists.
const std::string* value_name(const schema::Argument& argument);
/// What kind of value such an argument is.
ValueKind kind_of_value(const schema::Argument& argument);

/// The graph's form of `argument`; values are looked up in `values`. What graphs cannot hold
/// (nested graphs, custom objects) goes to `problems`, and none takes its place.
Argument import_argument(const schema::Argument& argument, const ValueTable& values,
                         Problems& problems, const std::string& where);

/// Whether `argument` can be passed where `rule` stands, by Python's rules.
bool fits(const Argument& argument, const ArgRule& rule, const ValueTable& values);

/// "Tensor", "int[]", ... of a rule, for messages.
std::string wanted(const ArgRule& rule);

}  // namespace fx::io
