#include "fx/capture/tracer.h"

#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>

#include <exception>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/graph_module_tracing.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/graph/module_path.h"
#include "fx/graph/module_types.h"
#include "fx/graph/traceback.h"
#include "fx/ops/effects.h"

namespace fx {

// --- TracerBase
// ------------------------------------------------------------------------------------

Node& TracerBase::create_node(Opcode op, Target target, Args args, Kwargs kwargs,
                              std::string_view name, std::string_view type) {
  if (check_mutable_operations) {
    auto has_kwarg = [&](std::string_view key) {
      for (const KwArg& kwarg : kwargs)
        if (kwarg.key == key) return true;
      return false;
    };
    const bool mutates =
        op == Opcode::kCallFunction ? effects_of(*target.function(), has_kwarg).mutates
        : op == Opcode::kCallMethod ? effects_of_method(target.str(), has_kwarg).mutates
                                    : false;
    if (mutates)
      throw TraceError(ErrorCode::kMutableOp, "Tried to trace mutable operation " + target.str() +
                                                  ". FX only supports functional code");
  }
  Node& node = graph().create_node(op, target, std::move(args), std::move(kwargs), name, type);
  traceback::stamp(node);
  if (record_stack_traces && node.stack_trace().empty())
    node.set_stack_trace(c10::get_lazy_backtrace(1, 32)->get());
  return node;
}

Proxy TracerBase::proxy(Node& node) { return Proxy(node, this); }

Proxy TracerBase::create_proxy(Opcode op, Target target, TraceArgs args, KwTraceArgs kwargs,
                               std::string_view name, std::string_view type) {
  Args converted;
  converted.reserve(args.size());
  for (const TraceArg& arg : args) converted.push_back(create_arg(arg));
  Kwargs keywords;
  keywords.reserve(kwargs.size());
  for (const KwTraceArg& kwarg : kwargs) keywords.emplace_back(kwarg.key, create_arg(kwarg.value));
  return proxy(create_node(op, target, std::move(converted), std::move(keywords), name, type));
}

Argument TracerBase::create_arg(const TraceArg& value) {
  auto node_of = [&](const Proxy& proxy) -> Argument {
    Node& node = proxy.node();
    if (&node.graph() != &graph())
      throw TraceError(ErrorCode::kMixedTracers,
                       "Found multiple different tracers while recording: " + proxy.repr() +
                           " belongs to another trace");
    return node;
  };
  auto items = [&] {
    Args out;
    out.reserve(value.items().size());
    for (const TraceArg& item : value.items()) out.push_back(create_arg(item));
    return out;
  };
  switch (value.kind()) {
    case TraceArg::Kind::kArgument:
      return value.argument();
    case TraceArg::Kind::kProxy:
      return node_of(value.proxy());
    case TraceArg::Kind::kTensor:
      if (!value.tensor().defined()) return {};
      if (const Proxy* proxy = find_proxy(value.tensor())) return node_of(*proxy);
      return create_tensor_arg(value.tensor());
    case TraceArg::Kind::kList:
      return Argument::list(items());
    case TraceArg::Kind::kTuple:
      return Argument::tuple(items());
    case TraceArg::Kind::kSlice: {
      Args bounds = items();
      return Argument::slice(bounds[0], bounds[1], bounds[2]);
    }
    case TraceArg::Kind::kDict: {
      std::vector<DictItem> pairs;
      for (std::size_t i = 0; i < value.items().size(); ++i)
        pairs.emplace_back(value.keys()[i], create_arg(value.items()[i]));
      return Argument::dict(std::move(pairs));
    }
    case TraceArg::Kind::kModule:
      return create_module_arg(value.module());
    case TraceArg::Kind::kObject:
      return value.create_arg(*this);
  }
  FX_ASSERT(false, "unknown kind of trace argument");
}

Argument TracerBase::create_module_arg(const torch::nn::Module& module) {
  throw TraceError(ErrorCode::kBadArgument,
                   "a module of class " + module_type_name(module) +
                       " cannot become an argument of a graph that has no root: use get_attr");
}

const at::Tensor* TracerBase::known_tensor(const Node&) const { return nullptr; }

bool TracerBase::to_bool(const Proxy& proxy) {
  throw TraceError(
      ErrorCode::kControlFlow,
      "symbolically traced variables cannot be used as inputs to control flow: " + proxy.repr() +
          " was asked for its truth; the node is " + proxy.node().format_node());
}

void TracerBase::iter(const Proxy& proxy) {
  throw TraceError(ErrorCode::kIterate,
                   "Proxy object cannot be iterated: the length of " + proxy.repr() +
                       " is not known while tracing; the node is " + proxy.node().format_node());
}

Proxy TracerBase::getattr(const Proxy& proxy, std::string_view name) {
  return create_proxy(Opcode::kCallFunction, Target::function("builtins.getattr"),
                      {TraceArg(proxy), TraceArg(name)});
}

Argument GraphAppendingTracer::create_tensor_arg(const at::Tensor& tensor) {
  throw TraceError(ErrorCode::kBadArgument,
                   "the tensor " + describe(tensor) +
                       " cannot become an argument of a graph that is built node by node: store it "
                       "in the GraphModule and use get_attr");
}

// --- Tracer
// ----------------------------------------------------------------------------------------

namespace {
thread_local std::vector<Tracer*> running_tracers;
}  // namespace

struct Tracer::Running {
  explicit Running(Tracer& t) : graph_modules(t), before(detail::call_recorder()) {
    running_tracers.push_back(&t);
    detail::call_recorder() = &graph_modules;
  }
  ~Running() {
    detail::call_recorder() = before;
    running_tracers.pop_back();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  detail::GraphModuleTracing graph_modules;
  detail::CallRecorder* before;
};

Tracer* Tracer::current() noexcept {
  return running_tracers.empty() ? nullptr : running_tracers.back();
}

Graph& Tracer::graph() {
  if (!graph_) throw TraceError(ErrorCode::kNotTracing, "the tracer has no trace running");
  return *graph_;
}

void Tracer::index_root(const torch::nn::Module& root) {
  root_ = &root;
  module_paths_.clear();
  modules_.clear();
  attributes_.clear();
  module_calls_.clear();
  constants_.clear();
  fresh_.clear();
  module_stack_.clear();
  constant_paths_.clear();
  // The first path of a shared module or tied tensor counts.
  index_modules(root, "");
  for (const torch::nn::Module* module : modules_) index_tensors(*module, detail::parameters);
  for (const torch::nn::Module* module : modules_) index_tensors(*module, detail::buffers);
  for (const torch::nn::Module* module : modules_)
    if (const auto* graph_module = dynamic_cast<const GraphModule*>(module))
      for (const auto& [path, tensor] : graph_module->constants())
        if (tensor.defined())
          constant_paths_.emplace(tensor.unsafeGetTensorImpl(),
                                  detail::join_path(module_paths_.at(module), path));
}

void Tracer::index_modules(const torch::nn::Module& module, const std::string& path) {
  const auto [found, is_new] = module_paths_.emplace(&module, path);
  if (!is_new) return;
  modules_.push_back(&module);
  for (const auto& child : detail::children(module))
    if (child.value()) index_modules(*child.value(), detail::join_path(found->second, child.key()));
}

void Tracer::index_tensors(const torch::nn::Module& module, TensorsOf tensors_of) {
  const std::string& path = module_paths_.at(&module);
  for (const auto& item : tensors_of(module))
    if (item.value().defined())
      attributes_.emplace(item.value().unsafeGetTensorImpl(), Attribute{&path, &item.key()});
}

namespace {

// Runs the traced program. What asks a proxy tensor for its memory fails in LibTorch, which cannot
// know why there is none.
TraceArg run_program(const std::function<TraceArg(std::vector<Proxy>&)>& forward,
                     std::vector<Proxy>& inputs) {
  try {
    return forward(inputs);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    for (const char* of_proxies : {"found UNKNOWN_SCALAR", "Tensor that doesn't have storage"})
      if (text.find(of_proxies) != std::string::npos)
        std::throw_with_nested(
            TraceError(ErrorCode::kConcreteValue,
                       "the program asked a traced tensor for its memory, but values do not exist "
                       "while tracing: " +
                           text));
    throw;
  }
}

}  // namespace

std::shared_ptr<Graph> Tracer::trace_with(
    const torch::nn::Module& root, const std::vector<std::string>& input_names,
    const std::function<TraceArg(std::vector<Proxy>&)>& forward) {
  if (graph_)
    throw TraceError(ErrorCode::kMixedTracers, "this tracer is tracing already; use another one");
  index_root(root);
  graph_ = std::make_shared<Graph>();
  struct Reset {
    std::shared_ptr<Graph>& graph;
    ~Reset() { graph.reset(); }
  } reset{graph_};
  const Running running(*this);
  std::vector<Proxy> inputs;
  inputs.reserve(input_names.size());
  for (const std::string& name : input_names)
    inputs.push_back(
        proxy(create_node(Opcode::kPlaceholder, Target::string(name), {}, {}, {}, {})));
  const TraceArg result = run_program(forward, inputs);
  const Argument output = create_arg(result);
  create_node(Opcode::kOutput, Target::string("output"), {output}, {}, {}, {});
  return graph_;
}

Node& Tracer::create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                          std::string_view type) {
  Node& node = TracerBase::create_node(op, target, std::move(args), std::move(kwargs), name, type);
  if (!module_stack_.empty() && !node.meta().contains("nn_module_stack"))
    node.meta().set("nn_module_stack", module_stack_);
  return node;
}

Argument Tracer::create_tensor_arg(const at::Tensor& tensor) {
  Attribute& attribute = attributes_[tensor.unsafeGetTensorImpl()];
  if (!attribute.node) {
    const std::string path = attribute.name
                                 ? detail::join_path(*attribute.module_path, *attribute.name)
                                 : constant_path(tensor);
    attribute.node = &create_node(Opcode::kGetAttr, Target::string(path), {}, {}, {}, {});
  }
  return *attribute.node;
}

Argument Tracer::create_module_arg(const torch::nn::Module& module) {
  return create_node(Opcode::kGetAttr, Target::string(path_of_module(module)), {}, {}, {}, {});
}

std::string Tracer::constant_path(const at::Tensor& tensor) {
  for (const auto& [path, known] : constants_)
    if (known.is_same(tensor)) return path;
  if (auto found = constant_paths_.find(tensor.unsafeGetTensorImpl());
      found != constant_paths_.end())
    return constants_.emplace_back(found->second, tensor).first;
  return constants_.emplace_back(get_fresh_qualname("_tensor_constant"), tensor).first;
}

bool Tracer::is_leaf_module(const torch::nn::Module& module, std::string_view) const {
  const ModuleType* type = find_module_type(module);
  return type && type->is_leaf;
}

std::string Tracer::path_of_module(const torch::nn::Module& module) const {
  auto found = module_paths_.find(&module);
  if (found != module_paths_.end()) return found->second;
  throw TraceError(ErrorCode::kUnknownModule,
                   "a module of class " + module_type_name(module) +
                       " was called, but the module is not installed as a submodule of the root");
}

TraceArg Tracer::call_module(const torch::nn::Module& module,
                             const std::function<TraceArg()>& forward, TraceArgs args,
                             KwTraceArgs kwargs) {
  const std::string path = path_of_module(module);
  const int calls = module_calls_[path]++;
  module_stack_.emplace_back(calls == 0 ? path : path + "@" + std::to_string(calls),
                             module_type_name(module));
  struct Pop {
    ModuleStack& stack;
    ~Pop() { stack.pop_back(); }
  } pop{module_stack_};
  if (!is_leaf_module(module, path)) return forward();
  Proxy result =
      create_proxy(Opcode::kCallModule, Target::string(path), std::move(args), std::move(kwargs));
  trace_module(module, path, result.node());
  return result;
}

void Tracer::trace_module(const torch::nn::Module&, std::string_view, Node&) {}

std::string Tracer::get_fresh_qualname(std::string_view prefix) const {
  std::size_t& number = fresh_.try_emplace(std::string(prefix), 0).first->second;
  for (;; ++number) {
    std::string name = std::string(prefix) + std::to_string(number);
    if (!is_taken(name)) return name;
  }
}

bool Tracer::is_taken(const std::string& path) const {
  for (const auto& constant : constants_)
    if (constant.first == path) return true;
  for (const auto& [tensor, constant] : constant_paths_)
    if (constant == path) return true;
  const ModulePath of_root(path);
  return root_ && (of_root.find_module(*root_) || of_root.find_tensor(*root_));
}

}  // namespace fx
