#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "fx/graph/bound_inputs.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/hooks.h"
#include "fx/graph/last_uses.h"
#include "fx/interpret/env.h"

namespace fx {

/// How Interpreter::run takes its inputs.
struct RunOptions {
  /// Values that nodes have from the start, copied: such nodes are skipped, placeholders or not.
  Env initial_env = {};
  /// Flatten structured inputs and restore structured outputs by the module's specs.
  bool enable_io_processing = true;
  /// Inputs by placeholder name (extension of torch.fx).
  KwValues kwargs = {};
  /// Extra positional inputs are an error; false ignores them, as torch.fx does.
  bool strict = true;
};

/// Positional and keyword values of a node:
/// `auto [args, kwargs] = fetch_args_kwargs_from_env(node);`
struct ArgsKwargs {
  Values args;
  KwValues kwargs;
};

/// Executes a graph node by node (torch.fx.Interpreter): the reference meaning of a graph. Derive
/// and override to analyse, change or replace what nodes do:
///
///     run()
///       +-- run_node(node)
///       |     +-- fetch_args_kwargs_from_env(node) -- map_nodes_to_values(argument, node)
///       |     +-- placeholder, get_attr, call_function, call_method, call_module, output
///       +-- record_value(node, value), store_value(node, value), post hooks
///
/// Nodes run in list order, in the graph as it stands when run() starts: edits need no recompile.
/// run_node returns a value and stores nothing; run() stores what it returned in env(), also when
/// an override has written there itself. With garbage collection (the default) a value is destroyed
/// right after the last node that reads it, or after its own node when nobody does, so that only
/// the value of the output is left at the end. After an error env() stays as it was, to be looked
/// at.
///
/// An exception while a node runs is rethrown as a RunError with the original nested in it and the
/// node, its argument shapes and its origin in the text: see rethrow_for_node.
///
/// One interpreter runs one graph at a time; use one per thread.
class Interpreter {
 public:
  /// Runs the graph of `module`, which must outlive the interpreter unless a shared_ptr owns it.
  explicit Interpreter(GraphModule& module, bool garbage_collect_values = true);
  explicit Interpreter(std::shared_ptr<GraphModule> module, bool garbage_collect_values = true);
  /// Runs `graph` with the attributes of any module. Both must outlive the interpreter.
  Interpreter(const torch::nn::Module& module, Graph& graph, bool garbage_collect_values = true);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  virtual ~Interpreter();

  // --- running ----------------------------------------------------------------------------------
  /// Runs the graph and returns the output's value, or None when there is no output node, or when
  /// initial_env already holds its value. Inputs go to placeholders from the left, "*args" takes
  /// the rest as a list, "**kwargs" the remaining keywords as a dict.
  /// @throws RunError kMissingInput, kExtraInput, kUnknownInput; of nodes as described above.
  virtual Value run(Values args = {}, RunOptions options = {});

  /// Takes the inputs out of `args`, so that each dies at its last use. On an arity error `args`
  /// stays as it is. Placeholders get their values without being executed, as in torch.fx.
  /// @throws RunError kMissingInput, kExtraInput
  virtual Value boxed_run(Values& args);

  /// Step by step: start() binds the inputs; step() executes the next node that has no value yet
  /// and returns it, or null at the end; finish() executes the rest and returns what run() would.
  void start(Values args = {}, RunOptions options = {});
  Node* step();
  Value finish();
  /// The node that step() looks at next, or null at the end.
  Node* next_node() const noexcept { return cursor_; }

  /// Executes one node: fetches its arguments from env() and calls the handler of its opcode.
  /// Stores nothing.
  virtual Value run_node(Node& node);
  /// Extension of torch.fx: starts over with `inputs` bound to the placeholders, as run() would,
  /// then executes just `node`. Other nodes it reads must be placeholders.
  Value run_node(Node& node, Values inputs);

  // --- handlers, one for each opcode ------------------------------------------------------------
  /// The next input. Stateful. @throws RunError kMissingInput
  virtual Value placeholder(std::string_view target, Values args, KwValues kwargs);
  /// The attribute, read from the module as it is now.
  virtual Value get_attr(std::string_view target, Values args, KwValues kwargs);
  /// fx::call, after a check that all tensors are on one device.
  virtual Value call_function(const Target& target, Values args, KwValues kwargs);
  /// Calls a method of args[0].
  virtual Value call_method(std::string_view target, Values args, KwValues kwargs);
  /// Calls the submodule at a dotted path.
  virtual Value call_module(std::string_view target, Values args, KwValues kwargs);
  virtual Value output(std::string_view target, Values args, KwValues kwargs);

  // --- helpers for overrides --------------------------------------------------------------------
  /// The attribute at a dotted path of the module: a tensor, or a submodule as a capsule.
  /// @throws RunError kMissingAttr "Node referenced nonexistent target a.b", up to what fails
  virtual Value fetch_attr(std::string_view target);
  /// The arguments of `node` with node references replaced by their values: copies to do with as
  /// one likes; tensors share their storage. @throws as map_nodes_to_values
  virtual ArgsKwargs fetch_args_kwargs_from_env(Node& node);
  /// One argument of `node` with values for nodes, also inside lists, tuples, dicts and slices.
  /// @throws RunError kMissingValue "Node add referenced nonexistent value x! Run Graph.lint() to
  ///   diagnose such issues"
  virtual Value map_nodes_to_values(const Argument& argument, Node& node);

  /// Called by run() exactly once for each executed node with what run_node returned, inputs and
  /// output included: override to record. Does nothing here.
  virtual void record_value(Node& node, const Value& value);
  /// Puts a value into env(); override to change how values enter it.
  virtual void store_value(Node& node, Value value);

  // --- state ------------------------------------------------------------------------------------
  Graph& graph() const noexcept { return *graph_; }
  const torch::nn::Module& module() const noexcept { return *module_; }
  /// Values by node, for reading and writing: a node that has a value is not executed.
  Env& env() noexcept { return env_; }
  const Env& env() const noexcept { return env_; }
  bool garbage_collect_values() const noexcept { return garbage_collect_values_; }
  /// The node that run_node is executing, for handlers; null outside.
  Node* current_node() const noexcept { return current_; }
  /// Whether all inputs of `node` have values.
  bool ready(const Node& node) const;

  // --- hooks, an extension of torch.fx ----------------------------------------------------------
  using PreHook = std::function<void(Node&, const Values& args, const KwValues& kwargs)>;
  using PostHook = std::function<void(Node&, const Value& output)>;
  /// Called in registration order before a node is executed, with its resolved arguments. An
  /// override of run_node that does not call the base skips it.
  HookHandle register_node_pre_hook(PreHook hook) { return pre_hooks_.add(std::move(hook)); }
  /// Called in registration order after run() stored the value of a node, whoever made it.
  HookHandle register_node_post_hook(PostHook hook) { return post_hooks_.add(std::move(hook)); }

 private:
  void refresh();
  void execute(Node& node);
  void release_after(const Node& node) noexcept;
  [[noreturn]] void rethrow_at(const Node& node) const;

  std::shared_ptr<GraphModule> keep_alive_;
  GraphModule* graph_module_ = nullptr;  // null when run on a plain module
  const torch::nn::Module* module_;
  std::shared_ptr<Graph> graph_owner_;
  Graph* graph_;
  bool garbage_collect_values_;

  // Derived from the graph at this version.
  bool fresh_ = false;
  std::uint64_t version_ = 0;
  LastUses last_uses_;
  InputSignature signature_;

  Env env_;
  BoundInputs inputs_;
  Node* cursor_ = nullptr;
  Node* current_ = nullptr;
  Value result_;
  bool io_processing_ = true;
  HookList<Node&, const Values&, const KwValues&> pre_hooks_;
  HookList<Node&, const Value&> post_hooks_;
};

}  // namespace fx
