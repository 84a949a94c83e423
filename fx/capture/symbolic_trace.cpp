#include "fx/capture/symbolic_trace.h"

#include <algorithm>

#include "fx/base/text.h"
#include "fx/ops/call.h"
#include "fx/ops/effects.h"

namespace fx::detail {

std::vector<std::string> default_input_names(std::size_t count, const TraceOptions& options) {
  if (options.input_names.size() > count)
    throw TraceError(ErrorCode::kConcreteArgs,
                     "found " + std::to_string(options.input_names.size()) +
                         " input names for a function of " + std::to_string(count) + " inputs");
  std::vector<std::string> names = options.input_names;
  constexpr std::string_view kUsual[] = {"x", "y", "z", "w"};
  while (names.size() < count)
    names.push_back(names.size() < std::size(kUsual) ? std::string(kUsual[names.size()])
                                                     : "arg" + std::to_string(names.size()));
  return names;
}

const Argument& concrete_value(const TraceOptions& options, const std::string& name,
                               const Proxy& input, std::string_view type) {
  auto found = options.concrete_args.find(name);
  if (found == options.concrete_args.end())
    throw TraceError(ErrorCode::kConcreteArgs,
                     "input " + str_repr(name) + " is a " + std::string(type) +
                         ", which has no proxy: give its value in TraceOptions::concrete_args");
  const Argument& value = found->second;
  const Proxy same = record_call("operator.eq", {input, TraceArg(value)});
  record_call("torch._assert", {same, TraceArg(name + " has been specialized to have value " +
                                               repr(value) + " but got another value")});
  return value;
}

void check_concrete_args(const TraceOptions& options, const std::vector<std::string>& names) {
  for (const auto& [name, value] : options.concrete_args) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string known;
    for (const std::string& input : names) known += (known.empty() ? "" : ", ") + input;
    throw TraceError(ErrorCode::kConcreteArgs, "there is no input " + str_repr(name) +
                                                   " to specialise, the inputs are: " + known);
  }
}

bool is_fixed_to_none(const TraceOptions& options, const std::string& name, const Proxy& input) {
  auto found = options.concrete_args.find(name);
  if (found == options.concrete_args.end()) return false;
  if (!found->second.is_none())
    throw TraceError(ErrorCode::kConcreteArgs,
                     "input " + str_repr(name) +
                         " is a tensor, which only None can stand for while tracing, found " +
                         repr(found->second));
  // A function of its own: a tensor cannot be compared with None by operator.eq.
  static const bool registered = [] {
    register_wrapped_function("fx.assert_is_none", [](Values args, KwValues) -> Value {
      if (args.at(0).isNone()) return {};
      throw RunError(ErrorCode::kWrongType, args.at(1).toStringRef());
    });
    has_side_effect(*Function::get("fx.assert_is_none"));
    return true;
  }();
  (void)registered;
  record_call("fx.assert_is_none",
              {input, TraceArg(name + " has been specialized to have value None but got another "
                                      "value")});
  return true;
}

void InputTrees::add(const std::string& name, TreeSpec tree) {
  if (tree.kind == TreeSpec::Kind::kLeaf) {
    leaves.push_back(name);
  } else {
    structured = true;
    const std::size_t count = tree.num_leaves();
    for (std::size_t i = 1; i <= count; ++i) leaves.push_back(name + "_" + std::to_string(i));
  }
  trees.push_back(std::move(tree));
}

std::optional<TreeSpec> InputTrees::in_spec() const {
  if (!structured) return std::nullopt;
  TreeSpec args, kwargs, both;
  args.kind = both.kind = TreeSpec::Kind::kTuple;
  kwargs.kind = TreeSpec::Kind::kDict;
  args.children = trees;
  both.children = {std::move(args), std::move(kwargs)};
  return both;
}

const TreeSpec& given_structure(const TraceOptions& options, const std::string& name,
                                std::string_view container) {
  auto found = options.structures.find(name);
  if (found != options.structures.end()) return found->second;
  throw TraceError(ErrorCode::kConcreteArgs,
                   "input " + str_repr(name) + " is a " + std::string(container) +
                       ", of which nothing says how many items it has: give TraceOptions::"
                       "structures");
}

void check_kind(const TreeSpec& tree, TreeSpec::Kind wanted, const std::string& name) {
  if (tree.kind != wanted)
    throw TraceError(ErrorCode::kConcreteArgs, "the structure given for input " + str_repr(name) +
                                                   " does not fit its C++ type");
}

void finish_inputs(Graph& graph, const TraceOptions& options,
                   const std::vector<std::string>& names) {
  const std::vector<Node*> inputs = graph.placeholders();
  auto input = [&](const std::string& name) -> Node* {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? nullptr : inputs[static_cast<std::size_t>(found - names.begin())];
  };
  for (const auto& [name, value] : options.concrete_args)
    if (value.is_none()) input(name)->set_args({Argument()});
  for (const auto& [name, meta] : options.input_meta) {
    Node* node = input(name);
    if (!node)
      throw TraceError(ErrorCode::kConcreteArgs,
                       "there is no input " + str_repr(name) + " for the metadata given");
    for (const auto& [key, value] : meta)
      if (!node->meta().contains(key)) node->meta().set(key, value);
  }
}

std::shared_ptr<GraphModule> make_graph_module(const Tracer& tracer, const torch::nn::Module& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name) {
  return std::make_shared<GraphModule>(root, std::move(graph), std::move(class_name),
                                       GraphModule::Share::kAll, tracer.constants());
}

}  // namespace fx::detail
