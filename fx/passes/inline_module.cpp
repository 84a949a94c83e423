#include "fx/passes/inline_module.h"

#include <cctype>
#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

[[noreturn]] void fail(const Node& call, const std::string& problem) {
  throw GraphError(ErrorCode::kMissingAttribute, "cannot inline the call " + str_repr(call.name()) +
                                                     " of " + str_repr(call.target().str()) + ": " +
                                                     problem);
}

// What the call gives each placeholder.
ValueMap bind(const Node& call, const Graph& graph) {
  ValueMap map;
  std::size_t position = 0;
  for (const Node* placeholder : graph.placeholders()) {
    const std::string& name = placeholder->target().str();
    if (name.starts_with("*")) fail(call, "it takes " + name);
    if (const Argument* given = call.find_kwarg(name))
      map.emplace(placeholder, *given);
    else if (position < call.num_args())
      map.emplace(placeholder, call.args()[position++]);
    else if (placeholder->num_args() > 0)
      map.emplace(placeholder, placeholder->args()[0]);
    else
      fail(call, "it misses the argument " + str_repr(name));
  }
  return map;
}

}  // namespace

ValueMap inline_module(GraphModule& module, Node& call) {
  Graph& graph = module.graph();
  const std::string path = call.target().str();
  const auto inner = call.op() == Opcode::kCallModule
                         ? std::dynamic_pointer_cast<GraphModule>(module.find_submodule(path))
                         : nullptr;
  if (!inner) fail(call, "that is no GraphModule of the module");
  ValueMap map = bind(call, inner->graph());

  const auto guard = graph.inserting_before(call);
  Argument result;
  for (const Node& node : inner->graph().nodes()) {
    if (node.is_placeholder()) continue;
    auto mapped = [&](Node& input) { return map.at(&input); };
    if (node.is_output()) {
      result = node.arg(0).map_nodes(mapped);
      break;
    }
    Args args;
    for (const Argument& arg : node.args()) args.push_back(arg.map_nodes(mapped));
    Kwargs kwargs;
    for (const KwArg& kwarg : node.kwargs())
      kwargs.emplace_back(kwarg.key, kwarg.value.map_nodes(mapped));
    Target target = node.target();
    if (node.op() == Opcode::kGetAttr || node.op() == Opcode::kCallModule) {
      std::string own = path + "." + target.str();
      if (const auto constant = inner->constants().find(target.str());
          constant != inner->constants().end()) {
        own = get_unique_attr_name_in_module(module, target.str());
        module.set_constant(own, constant->second);
      }
      target = Target::string(own);
    }
    Node& copy = graph.create_node(node.op(), std::move(target), std::move(args), std::move(kwargs),
                                   node.name(), node.type());
    copy.meta() = node.meta();
    map.emplace(&node, copy);
  }
  const bool is_sequence =
      result.kind() == Argument::Kind::kTuple || result.kind() == Argument::Kind::kList;
  for (Node* user : call.users().to_vector()) {
    if (is_sequence && user->calls("operator.getitem") && user->num_args() == 2 &&
        user->args()[0].node_or_null() == &call && user->args()[1].kind() == Argument::Kind::kInt) {
      std::int64_t index = user->args()[1].to_int();
      const auto size = static_cast<std::int64_t>(result.items().size());
      if (index < 0) index += size;
      if (index >= 0 && index < size) {
        const Argument& item = result.items()[static_cast<std::size_t>(index)];
        for (Node* reader : user->users().to_vector()) reader->replace_input_with(*user, item);
        graph.erase_node(*user);
        continue;
      }
    }
    user->replace_input_with(call, result);
  }
  graph.erase_node(call);
  return map;
}

std::string get_unique_attr_name_in_module(const GraphModule& module, std::string_view name) {
  std::string base;
  for (const char c : name) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    // A run of other characters becomes one underscore.
    if (is_word)
      base += c;
    else if (base.empty() || base.back() != '_')
      base += '_';
  }
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0])) != 0) base = "_" + base;
  if (module.attr_kind(base) == GraphOwner::AttrKind::kMissing) return base;
  std::size_t number = 0;
  const auto digits = base.find_last_not_of("0123456789");
  if (digits != std::string::npos && digits + 1 < base.size() && base[digits] == '_' &&
      base.size() - digits < 10) {
    number = std::stoul(base.substr(digits + 1));
    base.resize(digits);
  }
  std::string candidate;
  do candidate = base + "_" + std::to_string(++number);
  while (module.attr_kind(candidate) != GraphOwner::AttrKind::kMissing);
  return candidate;
}

}  // namespace fx
