#include "fx/interpret/transformer.h"

#include "fx/base/error.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/node_error.h"
#include "fx/graph/traceback.h"

namespace fx {
namespace {

template <typename T>
const T* capsule_of(const Value& value) {
  return value.isCapsule() ? dynamic_cast<const T*>(value.toCapsule().get()) : nullptr;
}

}  // namespace

Value make_proxy_value(Node& node) {
  return Value::make_capsule(c10::make_intrusive<ProxyValue>(node));
}

Node* proxy_node(const Value& value) {
  const auto* proxy = capsule_of<ProxyValue>(value);
  return proxy ? &proxy->node : nullptr;
}

Transformer::Transformer(GraphModule& module, TransformerOptions options)
    : Interpreter(module), source_(module), options_(options) {}

std::shared_ptr<GraphModule> Transformer::transform() {
  if (!new_graph_->empty()) new_graph_ = std::make_shared<Graph>();
  RunOptions options;
  options.enable_io_processing = false;
  const Value result = run({}, std::move(options));
  const auto outputs = graph().find_nodes(Opcode::kOutput);
  if (!outputs.empty()) {
    const Node& old = *outputs.front();
    Node& made = new_graph_->output(to_argument(result));
    inherit(old, made, /*same=*/true);
    if (made.name() != old.name() && options_.preserve) made.rename(old.name());
  }
  auto made = std::make_shared<GraphModule>(
      source_, new_graph_, options_.preserve ? source_.class_name() : std::string("GraphModule"));
  if (options_.preserve) made->set_specs(source_.in_spec(), source_.out_spec());
  return made;
}

void Transformer::inherit(const Node& from, Node& to, bool same) const {
  if (options_.preserve && same) {
    to.set_type(from.type());
    if (!from.meta().empty()) to.meta() = from.meta();
    return;
  }
  // What is known of the old value need not hold for the new one, but where it comes from does.
  for (const auto& [key, value] : from.meta())
    if (key == "stack_trace" || traceback::is_copied_field(key)) to.meta().set(key, value);
  to.meta().set("from_node", std::vector<NodeSource>{
                                 NodeSource(from, "Transformer", {NodeSourceAction::kCreate})});
}

Value Transformer::emit(Opcode op, Target target, Values args, KwValues kwargs) {
  Args new_args;
  for (const Value& value : args) new_args.push_back(to_argument(value));
  Kwargs new_kwargs;
  for (const KwValue& kwarg : kwargs) new_kwargs.emplace_back(kwarg.key, to_argument(kwarg.value));
  const Node* old = current_node();
  const bool same = old && old->op() == op && old->target() == target;
  Node& node =
      new_graph_->create_node(op, target, std::move(new_args), std::move(new_kwargs),
                              same && options_.preserve ? old->name() : std::string_view());
  if (old) inherit(*old, node, same);
  return make_proxy_value(node);
}

Argument Transformer::to_argument(const Value& value) {
  return argument_of(value, [](const Value& leaf) -> Argument {
    if (Node* node = proxy_node(leaf)) return *node;
    if (const auto* kept = capsule_of<ArgumentValue>(leaf)) return kept->argument;
    throw RunError(ErrorCode::kWrongType,
                   "a graph cannot hold a " + describe(leaf) +
                       ": make it an attribute of the module and emit a get_attr");
  });
}

Value Transformer::placeholder(std::string_view target, Values args, KwValues) {
  return emit(Opcode::kPlaceholder, Target::string(target), std::move(args));
}

Value Transformer::get_attr(std::string_view target, Values args, KwValues kwargs) {
  return emit(Opcode::kGetAttr, Target::string(target), std::move(args), std::move(kwargs));
}

Value Transformer::call_function(const Target& target, Values args, KwValues kwargs) {
  return emit(Opcode::kCallFunction, target, std::move(args), std::move(kwargs));
}

Value Transformer::call_method(std::string_view target, Values args, KwValues kwargs) {
  return emit(Opcode::kCallMethod, Target::string(target), std::move(args), std::move(kwargs));
}

Value Transformer::call_module(std::string_view target, Values args, KwValues kwargs) {
  fetch_attr(target);
  return emit(Opcode::kCallModule, Target::string(target), std::move(args), std::move(kwargs));
}

Value Transformer::map_nodes_to_values(const Argument& argument, Node& node) {
  return value_of(
      argument,
      [&](Node& input) -> Value {
        const Value* value = env().find(input);
        if (!value) throw_missing_value(node, input);
        return *value;
      },
      [](const Argument& enumerated) -> Value {
        return Value::make_capsule(c10::make_intrusive<ArgumentValue>(enumerated));
      });
}

}  // namespace fx
