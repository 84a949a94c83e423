#include "fx/capture/graph_module_tracing.h"

#include <unordered_map>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/symbolic_trace.h"
#include "fx/capture/tracer.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/bound_inputs.h"
#include "fx/graph/module_types.h"
#include "fx/graph/traceback.h"
#include "fx/ops/value.h"

namespace fx::detail {
namespace {

bool is_traced(const Value& value) {
  if (value.isTensor()) return find_proxy(value.toTensor()) != nullptr;
  if (is_sequence(value)) {
    for (const Value& item : elements(value))
      if (is_traced(item)) return true;
  } else if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict())
      if (is_traced(item.value())) return true;
  }
  return false;
}

// Traced values of the nodes of one graph.
class Environment {
 public:
  void set(const Node& node, TraceArg value) { values_.insert_or_assign(&node, std::move(value)); }

  TraceArg read(const Argument& argument, const Node& reader) const {
    switch (argument.kind()) {
      case Argument::Kind::kNode: {
        auto found = values_.find(&argument.node());
        if (found != values_.end()) return found->second;
        throw RunError(ErrorCode::kMissingValue, "Node " + std::string(reader.name()) +
                                                     " referenced nonexistent value " +
                                                     std::string(argument.node().name()) +
                                                     "! Run Graph.lint() to diagnose such issues");
      }
      case Argument::Kind::kList:
        return TraceArg::list(items(argument, reader));
      case Argument::Kind::kTuple:
        return TraceArg::tuple(items(argument, reader));
      case Argument::Kind::kSlice: {
        std::vector<TraceArg> bounds = items(argument, reader);
        return TraceArg::slice(bounds[0], bounds[1], bounds[2]);
      }
      case Argument::Kind::kDict: {
        std::vector<std::pair<Argument, TraceArg>> pairs;
        for (const DictItem& item : argument.dict_items())
          pairs.emplace_back(item.first, read(item.second, reader));
        return TraceArg::dict(std::move(pairs));
      }
      default:
        return TraceArg(argument);
    }
  }

 private:
  std::vector<TraceArg> items(const Argument& argument, const Node& reader) const {
    std::vector<TraceArg> out;
    for (const Argument& item : argument.items()) out.push_back(read(item, reader));
    return out;
  }

  std::unordered_map<const Node*, TraceArg> values_;
};

}  // namespace

Value value_of(const TraceArg& arg) {
  switch (arg.kind()) {
    case TraceArg::Kind::kArgument:
      return fx::value_of(arg.argument());
    case TraceArg::Kind::kTensor:
      return arg.tensor();
    case TraceArg::Kind::kProxy:
      return static_cast<at::Tensor>(arg.proxy());
    case TraceArg::Kind::kList: {
      Values items;
      for (const TraceArg& item : arg.items()) items.push_back(value_of(item));
      return make_list(std::move(items));
    }
    case TraceArg::Kind::kTuple: {
      Values items;
      for (const TraceArg& item : arg.items()) items.push_back(value_of(item));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    case TraceArg::Kind::kDict: {
      c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
      for (std::size_t i = 0; i < arg.items().size(); ++i)
        dict.insert(fx::value_of(arg.keys()[i]), value_of(arg.items()[i]));
      return dict;
    }
    case TraceArg::Kind::kSlice:
    case TraceArg::Kind::kModule:
    case TraceArg::Kind::kObject:
      break;
  }
  throw TraceError(ErrorCode::kBadResult,
                   "the program returns a slice, a module or an object, which is no value");
}

TraceArg traced(const Value& value) {
  if (value.isTensor()) return TraceArg(value.toTensor());
  if (is_sequence(value)) {
    std::vector<TraceArg> items;
    for (const Value& item : elements(value)) items.push_back(traced(item));
    return value.isTuple() ? TraceArg::tuple(std::move(items)) : TraceArg::list(std::move(items));
  }
  auto refuse = [](const Value& leaf) -> Argument {
    throw TraceError(ErrorCode::kBadArgument, "a graph cannot hold a " + describe(leaf));
  };
  if (value.isGenericDict()) {
    std::vector<std::pair<Argument, TraceArg>> items;
    for (const auto& item : value.toGenericDict())
      items.emplace_back(argument_of(item.key(), refuse), traced(item.value()));
    return TraceArg::dict(std::move(items));
  }
  return TraceArg(argument_of(value, refuse));
}

std::optional<Value> GraphModuleTracing::record_call_of(GraphModule& module, Values& inputs,
                                                        KwValues& kwargs) {
  bool any = false;
  for (const Value& input : inputs) any = any || is_traced(input);
  for (const KwValue& input : kwargs) any = any || is_traced(input.value);
  // A module from outside of the root has no path: its operators are recorded as it runs.
  if (!any || !tracer_.knows_module(module)) return std::nullopt;
  TraceArgs args;
  for (const Value& input : inputs) args.push_back(traced(input));
  KwTraceArgs keywords;
  for (const KwValue& input : kwargs) keywords.push_back({input.key.str(), traced(input.value)});
  const TraceArg result = tracer_.call_module(
      module,
      [&]() -> TraceArg {
        flatten_inputs(module, InputSignature(module.graph()), inputs, kwargs);
        return trace_through(module, std::move(inputs), std::move(kwargs));
      },
      std::move(args), std::move(keywords));
  return unflatten_output(module, value_of(result));
}

TraceArg GraphModuleTracing::trace_through(const GraphModule& module, Values inputs,
                                           KwValues kwargs) {
  const InputSignature signature(module.graph());
  BoundInputs bound(signature, std::move(inputs), std::move(kwargs));
  return trace_nodes(module, [&](const Node& node) {
    const Value fallback = node.num_args() ? fx::value_of(node.arg(0)) : Value();
    return traced(bound.take(node.target().str(), node.num_args() ? &fallback : nullptr));
  });
}

TraceArg GraphModuleTracing::trace_nodes(const GraphModule& module,
                                         const std::function<TraceArg(const Node&)>& input) {
  Environment environment;
  auto record = [&](const Node& node) {
    TraceArgs args;
    for (const Argument& argument : node.args()) args.push_back(environment.read(argument, node));
    KwTraceArgs keywords;
    for (const KwArg& kwarg : node.kwargs())
      keywords.push_back({kwarg.key.str(), environment.read(kwarg.value, node)});
    if (node.op() != Opcode::kCallModule)
      return TraceArg(
          tracer_.create_proxy(node.op(), node.target(), std::move(args), std::move(keywords)));
    const auto submodule = module.find_submodule(node.target().str());
    if (!submodule)
      throw RunError(ErrorCode::kMissingAttr,
                     "Node referenced nonexistent target " + node.target().str());
    return tracer_.call_module(
        *submodule,
        [&submodule, this, args, keywords]() -> TraceArg {
          Values values;
          for (const TraceArg& arg : args) values.push_back(value_of(arg));
          KwValues named;
          for (const KwTraceArg& keyword : keywords)
            named.push_back({Symbol(keyword.key), value_of(keyword.value)});
          if (const auto* nested = dynamic_cast<const GraphModule*>(submodule.get()))
            return trace_through(*nested, std::move(values), std::move(named));
          return traced(call_module(*submodule, std::move(values), std::move(named)));
        },
        args, keywords);
  };
  for (const Node& node : module.graph().nodes()) {
    const traceback::Guard meta = traceback::set_current_meta(node, "GraphModule");
    switch (node.op()) {
      case Opcode::kPlaceholder:
        environment.set(node, input(node));
        break;
      case Opcode::kGetAttr: {
        const at::Tensor tensor = module.find_tensor(node.target().str());
        if (tensor.defined())
          environment.set(node, TraceArg(tensor));
        else if (auto submodule = module.find_submodule(node.target().str()))
          environment.set(node, TraceArg(submodule));
        else
          throw RunError(ErrorCode::kMissingAttr,
                         "Node referenced nonexistent target " + node.target().str());
        break;
      }
      case Opcode::kOutput:
        return node.num_args() ? environment.read(node.arg(0), node) : TraceArg();
      default:
        environment.set(node, record(node));
    }
  }
  return {};
}

std::shared_ptr<Graph> trace_graph_module(Tracer& tracer, const GraphModule& root,
                                          const TraceOptions& options) {
  if (!options.input_names.empty() || !options.concrete_args.empty() || !options.structures.empty())
    throw TraceError(
        ErrorCode::kConcreteArgs,
        "a GraphModule keeps the inputs of its graph: edit the graph instead of giving "
        "input_names, concrete_args or structures");
  const std::vector<Node*> old = root.graph().placeholders();
  std::vector<std::string> names;
  for (const Node* node : old) names.push_back(node->target().str());
  auto graph = tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
    // "*args" and "**kwargs" stand for themselves: what they hold is not known.
    std::size_t next = 0;
    return GraphModuleTracing(tracer).trace_nodes(
        root, [&](const Node&) { return TraceArg(inputs[next++]); });
  });
  const std::vector<Node*> made = graph->placeholders();
  for (std::size_t i = 0; i < old.size(); ++i) {
    made[i]->set_args({old[i]->args().begin(), old[i]->args().end()});
    if (made[i]->type().empty()) made[i]->set_type(old[i]->type());
  }
  finish_inputs(*graph, options, names);
  return graph;
}

}  // namespace fx::detail
