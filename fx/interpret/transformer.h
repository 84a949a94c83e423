#pragma once

#include <memory>
#include <string_view>

#include "fx/interpret/interpreter.h"
#include "fx/interpret/proxy_value.h"

namespace fx {

struct TransformerOptions {
  /// Nodes that are emitted again as they were keep their names, types and meta, the module its
  /// class name and its specs. False: new names, no types, and of the meta only the stack_trace,
  /// traceback::kCopyMetaFields and a new from_node, as torch.fx does.
  bool preserve = true;
};

/// An Interpreter that builds a graph instead of computing (torch.fx.Transformer). The values that
/// flow are nodes of new_graph() (ProxyValue) and constants; every handler emits its node again.
/// Override a handler to emit something else:
///
///     Value call_function(const Target& target, Values args, KwValues kwargs) override {
///       if (target == "torch.sigmoid")
///         return Transformer::call_function(Target::function("torch.neg"), args, kwargs);
///       return Transformer::call_function(target, args, kwargs);
///     }
///
/// A handler may call several, and return one of its arguments to leave the node out. Numbers,
/// strings, lists and so on come as they are; dtypes, layouts and memory formats as capsules that
/// to_argument reads.
class Transformer : public Interpreter {
 public:
  explicit Transformer(GraphModule& module, TransformerOptions options = {});

  /// Runs the graph on proxies and returns a module of the new graph, which shares the attributes
  /// that it refers to with the old one. May be called again: each call starts a new graph.
  /// @throws RunError kNodeFailed naming the node whose handler failed.
  std::shared_ptr<GraphModule> transform();

  Value placeholder(std::string_view target, Values args, KwValues kwargs) override;
  Value get_attr(std::string_view target, Values args, KwValues kwargs) override;
  Value call_function(const Target& target, Values args, KwValues kwargs) override;
  Value call_method(std::string_view target, Values args, KwValues kwargs) override;
  /// Emits the call; the submodule must exist. @throws RunError kMissingAttr
  Value call_module(std::string_view target, Values args, KwValues kwargs) override;
  Value map_nodes_to_values(const Argument& argument, Node& node) override;

  /// Adds a node to the new graph and returns its proxy. While a node of the old graph runs, the
  /// new one inherits its meta as TransformerOptions say.
  Value emit(Opcode op, Target target, Values args, KwValues kwargs = {});

  /// What the new graph says for a value: a node, a constant or an aggregate of them.
  /// @throws RunError kWrongType for a tensor, which a graph cannot hold.
  static Argument to_argument(const Value& value);

  Graph& new_graph() noexcept { return *new_graph_; }

 private:
  void inherit(const Node& from, Node& to, bool same) const;

  GraphModule& source_;
  TransformerOptions options_;
  std::shared_ptr<Graph> new_graph_ = std::make_shared<Graph>();
};

}  // namespace fx
