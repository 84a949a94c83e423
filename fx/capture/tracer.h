#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fx/capture/proxy.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_access.h"

namespace fx {

/// Where in the module tree a node was recorded, from the outside in: (path, class name) pairs.
/// Kept in node.meta()["nn_module_stack"]; a second call of one module is "path@1" (torch.fx's
/// module_stack).
using ModuleStack = std::vector<std::pair<std::string, std::string>>;

/// What every tracer does: turn values into arguments, record nodes, wrap them in proxies
/// (torch.fx.proxy.TracerBase). The hooks are virtual: proxy creation, node creation, argument
/// conversion, control flow and iteration.
class TracerBase {
 public:
  virtual ~TracerBase() { *alive_ = nullptr; }
  TracerBase() = default;
  TracerBase(const TracerBase&) = delete;
  TracerBase& operator=(const TracerBase&) = delete;

  /// The graph under construction. @throws TraceError kNotTracing when there is none.
  virtual Graph& graph() = 0;
  /// The same, for proxies to keep alive; null when somebody else owns the graph.
  virtual std::shared_ptr<Graph> shared_graph() { return nullptr; }

  /// Records a node. The default checks mutable operators if asked to and creates the node.
  virtual Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs,
                            std::string_view name = {}, std::string_view type = {});
  /// The proxy of a node; override to use an own kind of value around it.
  virtual Proxy proxy(Node& node);
  /// Converts the arguments, records a node and gives its proxy.
  virtual Proxy create_proxy(Opcode op, Target target, TraceArgs args, KwTraceArgs kwargs = {},
                             std::string_view name = {}, std::string_view type = {});
  /// Turns a value into an argument.
  /// @throws TraceError kMixedTracers for a proxy of another tracer; kBadArgument.
  virtual Argument create_arg(const TraceArg& value);
  /// A real tensor as an argument.
  virtual Argument create_tensor_arg(const at::Tensor& tensor) = 0;
  /// A module as an argument, which only a tracer with a root can name.
  /// @throws TraceError kBadArgument by default, kUnknownModule.
  virtual Argument create_module_arg(const torch::nn::Module& module);
  /// The tensor that `node` gives as far as this tracer knows it: shape, strides and dtype, no
  /// data. Proxies answer questions from it. Null by default: asking is refused.
  virtual const at::Tensor* known_tensor(const Node& node) const;
  /// bool(proxy). @throws TraceError kControlFlow by default.
  virtual bool to_bool(const Proxy& proxy);
  /// for (... : proxy). @throws TraceError kIterate by default.
  virtual void iter(const Proxy& proxy);
  /// proxy.attr(name): records builtins.getattr by default.
  virtual Proxy getattr(const Proxy& proxy, std::string_view name);

  /// Refuse operators that write to their arguments while tracing (TraceError kMutableOp).
  bool check_mutable_operations = false;
  /// Records in each node where the program made it: the C++ call stack, as meta "stack_trace",
  /// which errors of a running node show. Functions have names if the program exports its symbols
  /// (-rdynamic). Costs some hundred microseconds a node.
  bool record_stack_traces = false;

  /// Points to this tracer, or to null once it is gone: how a proxy notices that its trace is over.
  const std::shared_ptr<TracerBase*>& alive() const noexcept { return alive_; }

 private:
  std::shared_ptr<TracerBase*> alive_ = std::make_shared<TracerBase*>(this);
};

/// Appends to an existing graph: what Proxy(node) uses (torch.fx.proxy.GraphAppendingTracer). Real
/// tensors have no module to live in and are refused.
class GraphAppendingTracer : public TracerBase {
 public:
  explicit GraphAppendingTracer(Graph& graph) : graph_(&graph) {}
  Graph& graph() override { return *graph_; }
  Argument create_tensor_arg(const at::Tensor& tensor) override;

 private:
  Graph* graph_;
};

/// Options of symbolic tracing.
struct TraceOptions {
  /// Names of the inputs; C++ does not tell parameter names. Default: x, y, z, w, arg4, arg5, ...
  std::vector<std::string> input_names = {};
  /// Inputs that are fixed while tracing, by name: parameters of non-tensor type (bool, int,
  /// double) need one. The placeholder stays; a torch._assert checks the value at run time.
  std::map<std::string, Argument> concrete_args = {};
  /// Class name of the GraphModule; default: the class or "GraphModule".
  std::string class_name = {};
  /// How many items the containers have that an input is made of, by its name: needed for
  /// parameters that hold a std::vector or std::map. The leaves of input "x" become the inputs x_1,
  /// x_2, ...: of these there are placeholders, and concrete_args may fix them (torch.fx's PH). The
  /// GraphModule takes the structure (in_spec).
  std::map<std::string, TreeSpec> structures = {};
  /// Metadata for placeholders, by name; what a tracer has set there stays (torch.fx's PHWithMeta).
  std::map<std::string, Meta> input_meta = {};
};

namespace detail {
class GraphModuleTracing;
}

/// Symbolic tracing: runs a program once on proxies (torch.fx.Tracer).
///
/// Subclass to choose leaf modules and to intercept node creation. One tracer traces one root at a
/// time; tracers on different threads do not know of each other.
class Tracer : public TracerBase {
 public:
  /// The innermost trace that runs on this thread, or null.
  static Tracer* current() noexcept;

  /// Traces `forward`, which receives one proxy per name, in the attribute space of `root`.
  /// symbolic_trace.h wraps modules and callables of any signature.
  std::shared_ptr<Graph> trace_with(const torch::nn::Module& root,
                                    const std::vector<std::string>& input_names,
                                    const std::function<TraceArg(std::vector<Proxy>&)>& forward);

  Graph& graph() override;
  std::shared_ptr<Graph> shared_graph() override { return graph_; }
  Node& create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                    std::string_view type) override;
  /// Parameters and buffers of the root become get_attr nodes (one each), other tensors constants
  /// "_tensor_constantN", one per tensor.
  Argument create_tensor_arg(const at::Tensor& tensor) override;
  /// A get_attr node of the path of the module.
  Argument create_module_arg(const torch::nn::Module& module) override;

  /// Whether calls of `module` are recorded as one call_module node instead of being traced
  /// through. Default: all of torch::nn but the containers.
  virtual bool is_leaf_module(const torch::nn::Module& module, std::string_view path) const;
  /// The path of a submodule of the root. @throws TraceError kUnknownModule
  virtual std::string path_of_module(const torch::nn::Module& module) const;
  /// Called at every module boundary that the holders of fx::nn report: records a call_module node
  /// for a leaf, else runs `forward`.
  virtual TraceArg call_module(const torch::nn::Module& module,
                               const std::function<TraceArg()>& forward, TraceArgs args,
                               KwTraceArgs kwargs);
  /// Extension of torch.fx: told of every leaf call after its node was made.
  virtual void trace_module(const torch::nn::Module& module, std::string_view path, Node& node);
  /// First unused "prefixN".
  std::string get_fresh_qualname(std::string_view prefix) const;

  /// Constants that the last trace met, by attribute path.
  const GraphModule::Constants& constants() const noexcept { return constants_; }
  /// The module stack at this point of the trace.
  const ModuleStack& module_stack() const noexcept { return module_stack_; }

 private:
  struct Running;
  friend class detail::GraphModuleTracing;
  // A tensor that became or may become a get_attr node.
  struct Attribute {
    const std::string* module_path = nullptr;  // of a parameter or buffer of the root
    const std::string* name = nullptr;
    Node* node = nullptr;  // once it was used
  };
  using TensorsOf = const detail::TensorDict& (*)(const torch::nn::Module&);

  void index_root(const torch::nn::Module& root);
  void index_modules(const torch::nn::Module& module, const std::string& path);
  void index_tensors(const torch::nn::Module& module, TensorsOf tensors_of);
  std::string constant_path(const at::Tensor& tensor);
  bool is_taken(const std::string& path) const;
  bool knows_module(const torch::nn::Module& module) const {
    return module_paths_.contains(&module);
  }

  std::shared_ptr<Graph> graph_;
  const torch::nn::Module* root_ = nullptr;
  std::unordered_map<const torch::nn::Module*, std::string> module_paths_;
  std::vector<const torch::nn::Module*> modules_;  // the root and all modules below, in their order
  std::unordered_map<const c10::TensorImpl*, Attribute> attributes_;
  // Paths of the constants of GraphModules in the root: they keep them.
  std::unordered_map<const c10::TensorImpl*, std::string> constant_paths_;
  std::unordered_map<std::string, int> module_calls_;
  GraphModule::Constants constants_;
  mutable std::map<std::string, std::size_t, std::less<>>
      fresh_;  // by prefix: lower numbers are taken
  ModuleStack module_stack_;
};

/// Whether a symbolic trace runs on this thread (torch.fx's is_fx_tracing).
inline bool is_fx_tracing() { return Tracer::current() != nullptr; }

}  // namespace fx
