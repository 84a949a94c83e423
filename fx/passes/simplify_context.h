#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

#include "fx/analysis/alias.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/tensor_meta.h"

/// What the rules of the pass simplify ask, and how they edit: shared by the files of that pass.
namespace fx::detail {

class SimplifyContext {
 public:
  SimplifyContext(GraphModule& module, bool use_metadata);

  /// Whether the call may be looked at: pure, and its value is written to by nobody.
  bool is_plain(const Node& node) const;
  /// The node that a rule may look into: `node`'s first argument, if that is a plain call whose own
  /// first argument nobody writes to either. Null otherwise.
  Node* inner_of(const Node& node) const;

  /// The dtype of a tensor in every run, if that is known.
  std::optional<c10::ScalarType> dtype_of(const Node& node, int depth = 0) const;
  /// The metadata of a strided tensor in every run, or null.
  const TensorMeta* meta_of(const Node& node) const;
  /// Whether no tensor of the graph requires gradients, in any run.
  bool without_gradients() const { return without_gradients_; }
  /// Whether `value`, which is equal, may stand for `node`, which is in memory of its own: nobody
  /// can tell the two apart.
  bool may_stand_for(const Node& value, const Node& node) const;

  /// Puts `value` in the place of `node` and erases that.
  void replace(Node& node, Node& value);
  /// Makes `node` a call on other arguments. Its inner call is erased if nobody else uses it.
  void rewire(Node& node, Args args);
  void erase_if_unused(Node* node);
  /// The same with another target; `name` is that of an operator and of a method alike.
  void retarget(Node& node, std::string_view name, std::string_view overload, Args args);

 private:
  Graph& graph_;
  bool use_metadata_;
  bool without_gradients_;
  AliasAnalysis aliases_;
};

/// The dtype of "to(x, dtype)", "x.float()", "_to_copy(x, dtype=...)" that does nothing else.
std::optional<c10::ScalarType> conversion_of(const Node& node);
/// The rest of the arguments behind the first are equal in both calls, and hold no nodes.
bool has_equal_options(const Node& a, const Node& b);
/// `args` with another first one.
Args with_input(const Node& node, const Argument& input);

/// The rules: each edits the graph around `node` and returns true, or returns false.
#define FX_SIMPLIFY_RULE(name, rewrite, reason) \
  bool simplify_##name(SimplifyContext& context, Node& node);
#include "fx/passes/simplify_rules.def"
#undef FX_SIMPLIFY_RULE

}  // namespace fx::detail
