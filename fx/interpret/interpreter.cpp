#include "fx/interpret/interpreter.h"

#include <optional>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/module_path.h"
#include "fx/graph/module_types.h"
#include "fx/graph/node_error.h"
#include "fx/graph/traceback.h"
#include "fx/ops/call.h"
#include "fx/ops/device_check.h"
#include "fx/ops/stop.h"

namespace fx {

// --- construction
// ----------------------------------------------------------------------------------

Interpreter::Interpreter(GraphModule& module, bool garbage_collect_values)
    : keep_alive_(std::dynamic_pointer_cast<GraphModule>(module.weak_from_this().lock())),
      graph_module_(&module),
      module_(&module),
      graph_owner_(module.graph_ptr()),
      graph_(graph_owner_.get()),
      garbage_collect_values_(garbage_collect_values) {}

Interpreter::Interpreter(std::shared_ptr<GraphModule> module, bool garbage_collect_values)
    : Interpreter(*module, garbage_collect_values) {
  keep_alive_ = std::move(module);
}

Interpreter::Interpreter(const torch::nn::Module& module, Graph& graph, bool garbage_collect_values)
    : module_(&module), graph_(&graph), garbage_collect_values_(garbage_collect_values) {}

Interpreter::~Interpreter() = default;

// What is derived from the graph follows its edits.
void Interpreter::refresh() {
  if (graph_module_ && graph_module_->graph_ptr() != graph_owner_) {
    graph_owner_ = graph_module_->graph_ptr();
    graph_ = graph_owner_.get();
    fresh_ = false;
  }
  if (fresh_ && version_ == graph_->version()) return;
  last_uses_ = garbage_collect_values_ ? LastUses(*graph_) : LastUses();
  signature_ = InputSignature(*graph_);
  version_ = graph_->version();
  fresh_ = true;
}

// --- running
// ---------------------------------------------------------------------------------------

void Interpreter::start(Values args, RunOptions options) {
  refresh();
  // Inputs that already are the values of placeholders have no structure left to flatten.
  const bool no_inputs = args.empty() && options.kwargs.empty();
  if (options.enable_io_processing && graph_module_ && !(no_inputs && !options.initial_env.empty()))
    flatten_inputs(*graph_module_, signature_, args, options.kwargs);
  const Env& given = options.initial_env;
  inputs_ = BoundInputs(signature_, std::move(args), std::move(options.kwargs), options.strict,
                        [&](const Node& node) { return given.contains(node); });
  if (given.empty())
    env_.clear();
  else
    env_ = std::move(options.initial_env);
  io_processing_ = options.enable_io_processing;
  result_ = Value();
  cursor_ = graph_->empty() ? nullptr : &graph_->nodes().front();
}

Node* Interpreter::step() {
  while (cursor_) {
    Node& node = *cursor_;
    const bool known = env_.contains(node);
    if (!known) execute(node);
    if (garbage_collect_values_) release_after(node);
    cursor_ = node.is_output() && !known ? nullptr : node.next();
    if (!known) return &node;
  }
  return nullptr;
}

Value Interpreter::finish() {
  while (step()) {
  }
  inputs_ = BoundInputs();
  Value result = std::exchange(result_, Value());
  return io_processing_ && graph_module_ ? unflatten_output(*graph_module_, std::move(result))
                                         : result;
}

Value Interpreter::run(Values args, RunOptions options) {
  start(std::move(args), std::move(options));
  return finish();
}

Value Interpreter::boxed_run(Values& args) {
  refresh();
  const auto& parameters = signature_.parameters;
  if (args.size() != parameters.size()) {
    const bool extra = args.size() > parameters.size();
    std::string names;
    for (const auto& parameter : parameters)
      names += (names.empty() ? "" : ", ") + parameter.target;
    throw RunError(extra ? ErrorCode::kExtraInput : ErrorCode::kMissingInput,
                   "Interpreter.boxed_run expected " + std::to_string(parameters.size()) +
                       " arguments for placeholders (" + names + ") but received " +
                       std::to_string(args.size()) +
                       (extra ? " (extra arguments)" : " (missing arguments)"));
  }
  RunOptions options;
  std::size_t index = 0;
  for (Node* node : graph_->placeholders())
    options.initial_env.set(*node, std::move(args[index++]));
  args.clear();
  return run({}, std::move(options));
}

void Interpreter::execute(Node& node) {
  try {
    throw_if_stopped(StopScope::current());
    Value value = run_node(node);
    record_value(node, value);
    if (node.is_output()) result_ = value;
    if (post_hooks_.empty()) {
      store_value(node, std::move(value));
    } else {
      store_value(node, value);
      post_hooks_(node, value);
    }
  } catch (...) {
    rethrow_at(node);
  }
}

void Interpreter::release_after(const Node& node) noexcept {
  for (const Node* dead : last_uses_.after(node)) env_.erase(*dead);
}

void Interpreter::rethrow_at(const Node& node) const {
  NamedValues inputs;
  for (const Node* input : node.all_input_nodes())
    if (const Value* value = env_.find(*input)) inputs.emplace_back(input->name(), *value);
  rethrow_for_node(node, inputs);
}

Value Interpreter::run_node(Node& node) {
  struct Restore {
    Node*& current;
    Node* before;
    ~Restore() { current = before; }
  } restore{current_, std::exchange(current_, &node)};
  std::optional<traceback::Guard> meta;
  if (traceback::has_preserved_node_meta())
    meta.emplace(traceback::set_current_meta(node, "Interpreter"));
  auto [args, kwargs] = fetch_args_kwargs_from_env(node);
  if (!pre_hooks_.empty()) pre_hooks_(node, args, kwargs);
  const Target& target = node.target();
  switch (node.op()) {
    case Opcode::kPlaceholder:
      return placeholder(target.str(), std::move(args), std::move(kwargs));
    case Opcode::kGetAttr:
      return get_attr(target.str(), std::move(args), std::move(kwargs));
    case Opcode::kCallFunction:
      return call_function(target, std::move(args), std::move(kwargs));
    case Opcode::kCallMethod:
      return call_method(target.str(), std::move(args), std::move(kwargs));
    case Opcode::kCallModule:
      return call_module(target.str(), std::move(args), std::move(kwargs));
    case Opcode::kOutput:
      return output(target.str(), std::move(args), std::move(kwargs));
  }
  FX_ASSERT(false, "unknown opcode");
}

Value Interpreter::run_node(Node& node, Values inputs) {
  start(std::move(inputs));
  for (Node* input : graph_->placeholders()) {
    if (input == &node) return run_node(node);
    env_.set(*input, run_node(*input));
  }
  return run_node(node);
}

// --- handlers
// --------------------------------------------------------------------------------------

Value Interpreter::placeholder(std::string_view target, Values args, KwValues) {
  return inputs_.take(target, args.empty() ? nullptr : &args[0]);
}

Value Interpreter::get_attr(std::string_view target, Values, KwValues) {
  return fetch_attr(target);
}

Value Interpreter::call_function(const Target& target, Values args, KwValues kwargs) {
  const Function* function = target.function();
  if (!function)
    throw GraphError(
        ErrorCode::kBadTarget,
        "target should not be a string for call_function, found " + str_repr(target.str()));
  check_devices(*function, args, kwargs);
  return call(*function, std::move(args), std::move(kwargs));
}

Value Interpreter::call_method(std::string_view target, Values args, KwValues kwargs) {
  check_devices_of_method(target, args, kwargs);
  return fx::call_method(target, std::move(args), std::move(kwargs));
}

Value Interpreter::call_module(std::string_view target, Values args, KwValues kwargs) {
  const ModulePath path(target);
  const auto* submodule = path.find_module(*module_);
  if (!submodule) {
    fetch_attr(target);  // throws when there is nothing at all
    throw RunError(ErrorCode::kMissingAttr, "call_module of " + str_repr(target) +
                                                ": a tensor stands there, wanted a module");
  }
  const std::shared_ptr<torch::nn::Module> alive = *submodule;
  return fx::call_module(*alive, std::move(args), std::move(kwargs));
}

Value Interpreter::output(std::string_view, Values args, KwValues) {
  if (args.empty()) throw RunError(ErrorCode::kMissingValue, kEmptyOutput);
  return std::move(args[0]);
}

// --- helpers
// ---------------------------------------------------------------------------------------

Value Interpreter::fetch_attr(std::string_view target) {
  if (graph_module_) return graph_module_->fetch_attr(target);
  const ModulePath path(target);
  if (const at::Tensor* tensor = path.find_tensor(*module_)) return *tensor;
  if (const auto* submodule = path.find_module(*module_))
    return Value::make_capsule(c10::make_intrusive<ModuleValue>(*submodule));
  path.throw_missing(*module_);
}

ArgsKwargs Interpreter::fetch_args_kwargs_from_env(Node& node) {
  ArgsKwargs fetched;
  fetched.args.reserve(node.num_args());
  for (const Argument& argument : node.args())
    fetched.args.push_back(map_nodes_to_values(argument, node));
  fetched.kwargs.reserve(node.kwargs().size());
  for (const KwArg& argument : node.kwargs())
    fetched.kwargs.push_back({argument.key, map_nodes_to_values(argument.value, node)});
  return fetched;
}

Value Interpreter::map_nodes_to_values(const Argument& argument, Node& node) {
  auto read = [&](Node& input) -> Value {
    const Value* value = env_.find(input);
    if (!value) throw_missing_value(node, input);
    return *value;
  };
  return argument.is_node() ? read(argument.node()) : value_of(argument, read);
}

void Interpreter::record_value(Node&, const Value&) {}

void Interpreter::store_value(Node& node, Value value) { env_.set(node, std::move(value)); }

bool Interpreter::ready(const Node& node) const {
  for (const Node* input : node.all_input_nodes())
    if (!env_.contains(*input)) return false;
  return true;
}

}  // namespace fx
