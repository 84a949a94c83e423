// The members that torch.fx promises to keep (its backward compatibility tests), in their C++ form:
// a name or a type that changes does not compile here. Members that C++ writes in another way stand
// in docs/guide/names.md.
#include <torch/torch.h>

#include <type_traits>

#include "fx/capture/make_fx.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/wrap.h"
#include "fx/graph/builders.h"
#include "fx/graph/readable.h"
#include "fx/interpret/transformer.h"
#include "fx/ops/effects.h"
#include "fx/passes/replace_pattern.h"
#include "fx/passes/shape_prop.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

// FX_MEMBER(Class, name, type): &Class::name converts to a pointer to member of exactly that type.
#define FX_MEMBER(Class, name, ...) \
  static_assert(std::is_same_v<decltype(static_cast<__VA_ARGS__>(&Class::name)), __VA_ARGS__>)
#define FX_FUNCTION(name, ...) \
  static_assert(std::is_same_v<decltype(static_cast<__VA_ARGS__>(&name)), __VA_ARGS__>)

using Text = std::string_view;

TEST(Api, F_204_graph) {
  FX_MEMBER(Graph, create_node, Node & (Graph::*)(Opcode, Target, Args, Kwargs, Text, Text));
  FX_MEMBER(Graph, create_node, Node & (Graph::*)(Text, Text, Args, Kwargs, Text, Text));
  FX_MEMBER(Graph, placeholder, Node & (Graph::*)(Text, Text));
  FX_MEMBER(Graph, get_attr, Node & (Graph::*)(Text, Text));
  FX_MEMBER(Graph, call_function, Node & (Graph::*)(Target, Args, Kwargs, Text, Text));
  FX_MEMBER(Graph, call_method, Node & (Graph::*)(Text, Args, Kwargs, Text));
  FX_MEMBER(Graph, call_module, Node & (Graph::*)(Text, Args, Kwargs, Text));
  FX_MEMBER(Graph, output, Node & (Graph::*)(Argument, Text));
  FX_MEMBER(Graph, nodes, NodeRange(Graph::*)() const noexcept);
  FX_MEMBER(Graph, erase_node, void(Graph::*)(Node&));
  FX_MEMBER(Graph, eliminate_dead_code, bool(Graph::*)(const std::function<bool(const Node&)>&));
  FX_MEMBER(Graph, find_nodes, std::vector<Node*>(Graph::*)(Opcode, std::optional<Target>) const);
  FX_MEMBER(Graph, graph_copy, Argument(Graph::*)(const Graph&, ValueMap&));
  FX_MEMBER(Graph, node_copy,
            Node & (Graph::*)(const Node&, const std::function<Argument(Node&)>&));
  FX_MEMBER(Graph, inserting_before, InsertPointGuard(Graph::*)(Node&));
  FX_MEMBER(Graph, inserting_after, InsertPointGuard(Graph::*)(Node&));
  FX_MEMBER(Graph, lint, void(Graph::*)(const LintOptions&) const);
  FX_MEMBER(Graph, output_node, Node & (Graph::*)() const);
  FX_MEMBER(Graph, print_tabular, void(Graph::*)() const);
  FX_MEMBER(Graph, on_generate_code,
            CodeTransformerGuard(Graph::*)(const std::function<CodeTransformer(CodeTransformer)>&));
  FX_FUNCTION(create_size_node, Node & (*)(Graph&, Node&, std::int64_t));
  FX_FUNCTION(create_stride_node, Node & (*)(Graph&, Node&, std::int64_t));
  FX_FUNCTION(create_storage_offset_node, Node & (*)(Graph&, Node&));
  FX_FUNCTION(python_code, std::string(*)(const Graph&, Text, const PythonCodeOptions&));
}

TEST(Api, F_204_node) {
  FX_MEMBER(Node, graph, Graph & (Node::*)() const noexcept);
  FX_MEMBER(Node, name, Text(Node::*)() const noexcept);
  FX_MEMBER(Node, op, Opcode(Node::*)() const noexcept);
  FX_MEMBER(Node, target, const Target& (Node::*)() const noexcept);
  FX_MEMBER(Node, args, std::span<const Argument>(Node::*)() const noexcept);
  FX_MEMBER(Node, kwargs, std::span<const KwArg>(Node::*)() const noexcept);
  FX_MEMBER(Node, users, UserRange(Node::*)() const noexcept);
  FX_MEMBER(Node, type, const std::string& (Node::*)() const noexcept);
  FX_MEMBER(Node, meta, Meta & (Node::*)());
  FX_MEMBER(Node, stack_trace, std::string(Node::*)() const);
  FX_MEMBER(Node, next, Node * (Node::*)() const noexcept);
  FX_MEMBER(Node, prev, Node * (Node::*)() const noexcept);
  FX_MEMBER(Node, prepend, void(Node::*)(Node&));
  FX_MEMBER(Node, append, void(Node::*)(Node&));
  FX_MEMBER(Node, all_input_nodes, std::vector<Node*>(Node::*)() const);
  FX_MEMBER(Node, update_arg, void(Node::*)(std::int64_t, Argument));
  FX_MEMBER(Node, insert_arg, void(Node::*)(std::int64_t, Argument));
  FX_MEMBER(Node, update_kwarg, void(Node::*)(Text, Argument));
  FX_MEMBER(Node, format_node, std::string(Node::*)() const);
  FX_MEMBER(Node, is_impure, bool(Node::*)(bool) const);
  FX_MEMBER(Node, replace_all_uses_with,
            std::vector<Node*>(Node::*)(Node&, const std::function<bool(Node&)>&, bool));
  FX_MEMBER(Node, replace_input_with, void(Node::*)(Node&, const Argument&));
}

TEST(Api, F_204_tracer_and_proxy) {
  FX_MEMBER(TracerBase, create_node,
            Node & (TracerBase::*)(Opcode, Target, Args, Kwargs, Text, Text));
  FX_MEMBER(TracerBase, create_proxy,
            Proxy(TracerBase::*)(Opcode, Target, TraceArgs, KwTraceArgs, Text, Text));
  FX_MEMBER(TracerBase, create_arg, Argument(TracerBase::*)(const TraceArg&));
  FX_MEMBER(TracerBase, proxy, Proxy(TracerBase::*)(Node&));
  FX_MEMBER(TracerBase, to_bool, bool(TracerBase::*)(const Proxy&));
  FX_MEMBER(TracerBase, iter, void(TracerBase::*)(const Proxy&));
  FX_MEMBER(TracerBase, getattr, Proxy(TracerBase::*)(const Proxy&, Text));
  FX_MEMBER(TracerBase, check_mutable_operations, bool TracerBase::*);
  FX_MEMBER(TracerBase, record_stack_traces, bool TracerBase::*);
  FX_MEMBER(Tracer, is_leaf_module, bool(Tracer::*)(const torch::nn::Module&, Text) const);
  FX_MEMBER(Tracer, path_of_module, std::string(Tracer::*)(const torch::nn::Module&) const);
  FX_MEMBER(Tracer, get_fresh_qualname, std::string(Tracer::*)(Text) const);
  FX_MEMBER(Tracer, call_module,
            TraceArg(Tracer::*)(const torch::nn::Module&, const std::function<TraceArg()>&,
                                TraceArgs, KwTraceArgs));
  static_assert(std::derived_from<GraphAppendingTracer, TracerBase>);
  FX_MEMBER(Proxy, node, Node & (Proxy::*)() const);
  FX_MEMBER(Proxy, tracer, TracerBase & (Proxy::*)() const);
  FX_MEMBER(Proxy, attr, Proxy(Proxy::*)(Text) const);
}

TEST(Api, F_204_interpreter_transformer_and_graph_module) {
  FX_MEMBER(Interpreter, run, Value(Interpreter::*)(Values, RunOptions));
  FX_MEMBER(Interpreter, boxed_run, Value(Interpreter::*)(Values&));
  FX_MEMBER(Interpreter, run_node, Value(Interpreter::*)(Node&));
  FX_MEMBER(Interpreter, placeholder, Value(Interpreter::*)(Text, Values, KwValues));
  FX_MEMBER(Interpreter, get_attr, Value(Interpreter::*)(Text, Values, KwValues));
  FX_MEMBER(Interpreter, call_function, Value(Interpreter::*)(const Target&, Values, KwValues));
  FX_MEMBER(Interpreter, call_method, Value(Interpreter::*)(Text, Values, KwValues));
  FX_MEMBER(Interpreter, call_module, Value(Interpreter::*)(Text, Values, KwValues));
  FX_MEMBER(Interpreter, output, Value(Interpreter::*)(Text, Values, KwValues));
  FX_MEMBER(Interpreter, fetch_attr, Value(Interpreter::*)(Text));
  FX_MEMBER(Interpreter, fetch_args_kwargs_from_env, ArgsKwargs(Interpreter::*)(Node&));
  FX_MEMBER(Interpreter, map_nodes_to_values, Value(Interpreter::*)(const Argument&, Node&));
  FX_MEMBER(Transformer, transform, std::shared_ptr<GraphModule>(Transformer::*)());
  FX_MEMBER(GraphModule, graph, Graph & (GraphModule::*)() noexcept);
  FX_MEMBER(GraphModule, code, std::string(GraphModule::*)() const);
  FX_MEMBER(GraphModule, recompile, void(GraphModule::*)());
  FX_MEMBER(GraphModule, add_submodule,
            bool(GraphModule::*)(Text, std::shared_ptr<torch::nn::Module>));
  FX_MEMBER(GraphModule, delete_submodule, bool(GraphModule::*)(Text));
  FX_MEMBER(GraphModule, delete_all_unused_submodules, void(GraphModule::*)());
  FX_FUNCTION(print_readable, void (*)(const GraphModule&, const PythonCodeOptions&));
}

// The functions: callable with what torch.fx's are called with.
TEST(Api, F_203_G_121_functions) {
  auto net = [](Proxy x) { return x + 1; };
  static_assert(std::is_same_v<decltype(symbolic_trace(net)), std::shared_ptr<GraphModule>>);
  auto module = symbolic_trace(net);
  EXPECT_EQ(wrap("api_test.wrapped", [](at::Tensor x) { return x; }).name(), "api_test.wrapped");
  const Argument mapped = Argument::list({1, 2}).map_leaves(
      [](const Argument& leaf) { return Argument(leaf.to_int() + 1); });
  EXPECT_EQ(repr(mapped), "[2, 3]");
  EXPECT_EQ(repr(module->graph().output_node().arg(0).map_nodes([](Node&) { return Argument(7); })),
            "7");
  FX_FUNCTION(replace_pattern, std::vector<Match>(*)(GraphModule&, const Graph&, const Graph&,
                                                     const ReplaceOptions&));
  FX_FUNCTION(has_side_effect, void (*)(const Function&));
  static_assert(std::derived_from<ShapeProp, Interpreter>);
  static_assert(std::derived_from<Transformer, Interpreter>);
}

}  // namespace
}  // namespace fx
