// The part of GraphExporter that turns nodes and their arguments into the schema's.

#include <algorithm>
#include <array>
#include <utility>

#include "fx/graph/subgraphs.h"
#include "fx/io/graph_exporter.h"
#include "fx/io/shown.h"
#include "fx/io/symbolic_targets.h"
#include "fx/io/weights.h"

namespace fx::io {
namespace {

/// "torch.ops.aten.add.Tensor" for the overload; "default" stands for a name without overload.
std::string target_of(const Overload& overload) {
  const c10::OperatorName& name = overload.handle.operator_name();
  std::string target = "torch.ops." + name.name + "." +
                       (name.overload_name.empty() ? "default" : name.overload_name);
  target.replace(target.find("::"), 2, ".");
  return target;
}

schema::NamedArgument named(std::string name, schema::Argument value, schema::ArgumentKind kind) {
  return {std::move(name), std::move(value), kind};
}

template <typename T, typename Fn>
std::vector<T> collect(std::span<const Argument> items, Fn&& fn) {
  std::vector<T> out;
  out.reserve(items.size());
  for (const Argument& item : items) out.push_back(fn(item));
  return out;
}

}  // namespace

void GraphExporter::not_an_operator(const Node& node, const std::string& what) {
  problems_.add(what, where(node));
  needs_capture_ = needs_capture_ || !node.calls("torch._assert");
}

void GraphExporter::unknown(const Node& node) {
  auto it = types_.failures.find(&node);
  if (it != types_.failures.end())
    return problems_.add("what it gives cannot be told without values: " + it->second, where(node));
  problems_.add("what it gives is not known, since it reads what is not known", where(node));
}

void GraphExporter::add_nodes() {
  for (const Node& node : graph_.nodes())
    if (!node.is_output() && !skipped_.contains(&node)) add_node(node);
}

std::string not_an_overload(const Node& node) {
  const std::string target = node.target().str();
  if (node.op() == Opcode::kCallModule) return "calls of modules have no form";
  if (node.op() == Opcode::kCallMethod)
    return "method " + shown(target) + " is no operator overload";
  if (node.op() != Opcode::kCallFunction) return {};
  if (node.calls("torch._assert"))
    return "a check of a value (torch._assert) has no form: let tensors decide (torch::where), "
           "capture without checks (MakeFxOptions::guard_values) for what the example shows, or "
           "save as .fxa, which keeps them";
  const Function& function = *node.target().function();
  if (function.kind() == FunctionKind::kBuiltin || find_higher_order(function)) return {};
  if (function.kind() != FunctionKind::kOperator)
    return "function " + shown(target) + " is no operator overload";
  if (OpInfo::of(function).overloads.size() > 1)
    return "operator " + shown(target) + " has several overloads, one has to be named";
  return {};
}

void GraphExporter::add_node(const Node& node) {
  if (const HigherOrderOp* op = higher_order_of(node)) return add_higher_order(node, *op);
  if (const std::string reason = not_an_overload(node); !reason.empty())
    return not_an_operator(node, reason);
  if (node.op() != Opcode::kCallFunction) return;
  if (node.calls("operator.getitem")) {
    // An element of a sequence is a result of the node that makes it.
    const Node* source = node.num_args() > 0 ? node.arg(0).node_or_null() : nullptr;
    if (source != nullptr && elements_.contains(source)) return;
  }
  const std::string target = node.target().str();
  const Function& function = *node.target().function();
  if (function.kind() == FunctionKind::kBuiltin) return add_builtin(node, target);
  const OpInfo& info = OpInfo::of(function);
  if (info.overloads.empty()) {
    problems_.add("operator " + shown(target) +
                      " is not in this process (load the library that registers it)",
                  where(node));
    return;
  }
  add_operator(node, info.overloads.front());
}

bool GraphExporter::is_number(const Argument& argument) const {
  if (const Node* node = argument.node_or_null()) {
    const ValueType& type = type_of(*node);
    return type.meta && type.meta->kind != ValueMeta::Kind::kTensor;
  }
  return argument.kind() == Argument::Kind::kInt || argument.kind() == Argument::Kind::kFloat ||
         argument.kind() == Argument::Kind::kBool;
}

/// Arithmetic on numbers, as torch.export has it for symbolic sizes.
void GraphExporter::add_builtin(const Node& node, const std::string& target) {
  const std::string name = symbolic_target(target);
  if (!std::ranges::all_of(node.args(), [this](const Argument& a) { return is_number(a); }) ||
      name.empty() || !node.kwargs().empty() || node.num_args() == 0 || node.num_args() > 2)
    return not_an_operator(node, "function " + shown(target) + " is no operator overload");
  schema::Node out;
  out.target = name;
  static constexpr std::array kNames = {"a", "b"};
  for (std::size_t i = 0; i < node.num_args(); ++i)
    out.inputs.push_back(named(kNames[i], export_argument(node.args()[i], nullptr, where(node)),
                               schema::ArgumentKind::kPositional));
  const ValueType& type = type_of(node);
  if (!type.meta) return unknown(node);
  out.outputs.push_back(result_of(node, type));
  out.metadata = metadata(node);
  out.name = std::string(node.name());
  out_->nodes.push_back(std::move(out));
}

void GraphExporter::add_operator(const Node& node, const Overload& overload) {
  schema::Node out;
  out.target = target_of(overload);
  out.name = std::string(node.name());
  add_inputs(node, overload, out);
  add_results(node, overload.handle.schema().returns().size(), out);
  out.metadata = metadata(node);
  out_->nodes.push_back(std::move(out));
}

void GraphExporter::add_inputs(const Node& node, const Overload& overload, schema::Node& out) {
  const std::string op = overload.handle.schema().name();
  std::vector<bool> given(overload.rules.size());
  for (std::size_t i = 0; i < node.num_args(); ++i) {
    if (i >= overload.num_positional) {
      problems_.add(
          shown(op) + " takes " + std::to_string(overload.num_positional) + " positional arguments",
          where(node));
      return;
    }
    const ArgRule& rule = overload.rules[i];
    given[i] = true;
    out.inputs.push_back(
        named(rule.name, export_argument(node.args()[i], &rule, where(node) + ", " + rule.name),
              schema::ArgumentKind::kPositional));
  }
  for (const KwArg& kwarg : node.kwargs()) {
    const std::string name(kwarg.key.str());
    auto rule = std::ranges::find(overload.rules, name, &ArgRule::name);
    if (rule == overload.rules.end()) {
      problems_.add(shown(op) + " has no argument " + shown(name), where(node));
      continue;
    }
    const auto index = static_cast<std::size_t>(rule - overload.rules.begin());
    if (given[index])
      problems_.add("argument " + shown(name) + " of " + shown(op) + " twice", where(node));
    given[index] = true;
    out.inputs.push_back(
        named(name, export_argument(kwarg.value, &*rule, where(node) + ", " + rule->name),
              schema::ArgumentKind::kKeyword));
  }
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i] && !overload.rules[i].has_default)
      problems_.add(shown(op) + " lacks its argument " + shown(overload.rules[i].name),
                    where(node));
}

// --- results

/// `is_tuple`: the node gives a tuple also of one result.
void GraphExporter::add_results(const Node& node, std::size_t count, schema::Node& out,
                                bool is_tuple) {
  if (count == 0) return;
  ValueType type = type_of(node);
  if (type.kind == ValueType::Kind::kUnknown) {
    // What is read of a sequence may still be known.
    const bool only_items = std::ranges::all_of(node.users(), [&](const Node* user) {
      return user->calls("operator.getitem") && user->num_args() == 2 &&
             user->arg(1).kind() == Argument::Kind::kInt;
    });
    if (count == 1 && !is_tuple && (!only_items || node.num_users() == 0)) {
      if (node.num_users() == 0)
        out.outputs.push_back({std::monostate()});
      else
        unknown(node);
      return;
    }
    type.kind = ValueType::Kind::kSequence;
    type.items.resize(count > 1 || is_tuple ? count : 0);
  }
  if (type.kind == ValueType::Kind::kSequence) {
    const ElementNames names = element_names(node, type);
    elements_[&node] = names;
    if (count == 1 && !is_tuple) {
      std::vector<schema::TensorArgument> list;
      for (const std::string& name : names) list.push_back({name});
      if (list.empty() || std::ranges::find(names, std::string()) != names.end())
        problems_.add("a list of results of which none, or not all, are known has no form",
                      where(node));
      out.outputs.push_back({std::move(list)});
      return;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Node* reader = nullptr;
      for (const Node* user : node.users())
        if (reader == nullptr && names_.at(user) == names[i]) reader = user;
      ValueType item = i < type.items.size() ? type.items[i] : ValueType();
      if (item.kind == ValueType::Kind::kUnknown && reader != nullptr) item = type_of(*reader);
      if (item.kind == ValueType::Kind::kSequence && reader != nullptr) {
        const ElementNames inner = element_names(*reader, item);
        elements_[reader] = inner;
        std::vector<schema::TensorArgument> list;
        for (const std::string& name : inner) list.push_back({name});
        out.outputs.push_back({std::move(list)});
      } else if (names[i].empty() || !item.meta) {
        out.outputs.push_back({std::monostate()});
      } else {
        out.outputs.push_back(name_argument(names[i], *item.meta));
      }
    }
    return;
  }
  if (type.kind == ValueType::Kind::kNone)
    out.outputs.push_back({std::monostate()});
  else
    out.outputs.push_back(result_of(node, type));
}

schema::Argument GraphExporter::result_of(const Node& node, const ValueType& type) {
  declare(names_.at(&node), type.meta);
  return name_argument(names_.at(&node), *type.meta);
}

/// Names for the elements of a sequence: those of the nodes that read them, new ones for elements
/// that nobody reads, and none for those of which nothing is known.
GraphExporter::ElementNames GraphExporter::element_names(const Node& sequence,
                                                         const ValueType& type) {
  std::vector<const Node*> readers(type.items.size(), nullptr);
  for (Node* user : sequence.users()) {
    if (!user->calls("operator.getitem") || user->num_args() != 2) continue;
    if (user->arg(1).kind() != Argument::Kind::kInt) {
      problems_.add("parts of a list of results have no form", where(*user));
      continue;
    }
    std::int64_t index = user->arg(1).to_int();
    if (index < 0) index += static_cast<std::int64_t>(readers.size());
    if (index < 0 || index > 100'000) {
      problems_.add("an index that is out of range", where(*user));
      continue;
    }
    const auto place = static_cast<std::size_t>(index);
    if (place >= readers.size()) readers.resize(place + 1, nullptr);
    if (readers[place] == nullptr)
      readers[place] = user;
    else
      names_[user] = names_.at(readers[place]);
  }
  ElementNames names;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    ValueType item = i < type.items.size() ? type.items[i] : ValueType();
    if (readers[i] != nullptr) {
      if (const ValueType& read = type_of(*readers[i]); read.kind != ValueType::Kind::kUnknown)
        item = read;
      names.push_back(names_.at(readers[i]));
      if (item.meta)
        declare(names.back(), item.meta);
      else if (item.kind == ValueType::Kind::kUnknown)
        unknown(*readers[i]);
    } else if (item.meta) {
      names.push_back(fresh_name(std::string(sequence.name()) + "_unused_" + std::to_string(i)));
      declare(names.back(), item.meta);
    } else {
      names.emplace_back();
    }
  }
  return names;
}

schema::Map<std::string> GraphExporter::metadata(const Node& node) const {
  schema::Map<std::string> out;
  if (!node_meta_) return out;
  using Stack = std::vector<std::pair<std::string, std::string>>;
  auto text = [&](const char* key) {
    if (const auto* value = node.meta().get<std::string>(key)) out.emplace_back(key, *value);
  };
  text("stack_trace");
  if (const auto* stack = node.meta().get<Stack>("nn_module_stack")) {
    // Commas and semicolons separate; what holds them cannot be told apart any more.
    std::string joined;
    bool clean = !stack->empty();
    for (const auto& [path, type] : *stack) {
      clean = clean && (path + type).find_first_of(",;[]()") == std::string::npos;
      joined += (joined.empty() ? "" : ";") + std::string("L__self__") +
                (path.empty() ? "" : "." + path) + "," + path + "," + type;
    }
    if (clean) out.emplace_back("nn_module_stack", std::move(joined));
  }
  for (const char* key : {"torch_fn", "source_fn_stack", "custom"}) text(key);
  return out;
}

// --- arguments

schema::Argument GraphExporter::export_node(const Node& node, const std::string& where) {
  if (auto it = elements_.find(&node); it != elements_.end()) {
    std::vector<schema::TensorArgument> list;
    for (const std::string& name : it->second) {
      if (name.empty())
        problems_.add("a list of results of which not all are known has no form", where);
      list.push_back({name});
    }
    return {std::move(list)};
  }
  if (constant_inputs_.contains(&node)) {
    problems_.add("inputs with a default value as results have no form", where);
    return {std::monostate()};
  }
  const ValueType& type = type_of(node);
  if (type.kind == ValueType::Kind::kNone) return {std::monostate()};
  if (!type.meta) {
    if (problems_.empty()) unknown(node);
    return {std::monostate()};
  }
  return name_argument(names_.at(&node), *type.meta);
}

schema::Argument GraphExporter::export_argument(const Argument& argument, const ArgRule* rule,
                                                const std::string& where) {
  using Kind = Argument::Kind;
  switch (argument.kind()) {
    case Kind::kNone:
      return {std::monostate()};
    case Kind::kBool:
      return {argument.to_bool()};
    case Kind::kInt:
      return {argument.to_int()};
    case Kind::kFloat:
      return {argument.to_double()};
    case Kind::kComplex:
      return {argument.to_complex()};
    case Kind::kString:
      return {argument.to_string()};
    case Kind::kNode:
      return export_node(argument.node(), where);
    case Kind::kDtype:
      if (auto type = from_scalar_type(argument.to_dtype())) return {*type};
      break;
    case Kind::kDevice:
      return {from_device(argument.to_device())};
    case Kind::kLayout:
      if (auto layout = from_layout(argument.to_layout())) return {*layout};
      break;
    case Kind::kMemoryFormat:
      if (auto format = from_memory_format(argument.to_memory_format())) return {*format};
      break;
    case Kind::kList:
    case Kind::kTuple:
      return export_list(argument.items(), rule, where);
    case Kind::kDict:
    case Kind::kSlice:
    case Kind::kEllipsis:
      break;
  }
  problems_.add("the argument " + repr(argument) + " has no form", where);
  return {std::monostate()};
}

schema::Argument GraphExporter::export_list(std::span<const Argument> items, const ArgRule* rule,
                                            const std::string& where) {
  using Kind = Argument::Kind;
  using Number = ValueMeta::Kind;
  auto all = [&](auto&& test) { return std::ranges::all_of(items, test); };
  auto kind = [](Kind wanted) {
    return [wanted](const Argument& a) { return a.kind() == wanted; };
  };
  auto kind_or_node = [&](Kind wanted, Number number) {
    return [this, wanted, number](const Argument& a) {
      if (const Node* node = a.node_or_null()) {
        const ValueType& type = type_of(*node);
        return type.meta && type.meta->kind == number && !elements_.contains(node);
      }
      return a.kind() == wanted;
    };
  };
  auto tensor_name = [&](const Argument& a) {
    return schema::TensorArgument{names_.at(&a.node())};
  };
  auto is_tensor = [&](const Argument& a) {
    return a.is_node() && kind_or_node(Kind::kNode, Number::kTensor)(a);
  };
  const Conversion wanted = rule != nullptr ? rule->conversion : Conversion::kAny;
  if (items.empty()) {
    if (wanted == Conversion::kBoolList) return {std::vector<bool>()};
    if (wanted == Conversion::kFloatList) return {std::vector<double>()};
    if (wanted == Conversion::kStringList) return {std::vector<std::string>()};
    if (wanted == Conversion::kIntList || wanted == Conversion::kScalarList)
      return {std::vector<std::int64_t>()};
    return {std::vector<schema::TensorArgument>()};
  }
  if (all(kind(Kind::kBool)))
    return {collect<bool>(items, [](const Argument& a) { return a.to_bool(); })};
  if (wanted != Conversion::kFloatList && all(kind(Kind::kInt)))
    return {collect<std::int64_t>(items, [](const Argument& a) { return a.to_int(); })};
  if (all([](const Argument& a) { return a.kind() == Kind::kInt || a.kind() == Kind::kFloat; }) &&
      (wanted == Conversion::kFloatList || all(kind(Kind::kFloat))))
    return {collect<double>(items, [](const Argument& a) { return a.to_double(); })};
  if (all(kind(Kind::kString)))
    return {collect<std::string>(items, [](const Argument& a) { return a.to_string(); })};
  if (all(kind_or_node(Kind::kInt, Number::kInt)))
    return {collect<schema::SymIntArgument>(items, [&](const Argument& a) {
      return a.is_node() ? schema::SymIntArgument{names_.at(&a.node())}
                         : schema::SymIntArgument{a.to_int()};
    })};
  if (all(kind_or_node(Kind::kFloat, Number::kFloat)))
    return {collect<schema::SymFloatArgument>(items, [&](const Argument& a) {
      return a.is_node() ? schema::SymFloatArgument{names_.at(&a.node())}
                         : schema::SymFloatArgument{a.to_double()};
    })};
  if (all(kind_or_node(Kind::kBool, Number::kBool)))
    return {collect<schema::SymBoolArgument>(items, [&](const Argument& a) {
      return a.is_node() ? schema::SymBoolArgument{names_.at(&a.node())}
                         : schema::SymBoolArgument{a.to_bool()};
    })};
  if (all(is_tensor)) return {collect<schema::TensorArgument>(items, tensor_name)};
  if (all([&](const Argument& a) { return a.is_none() || is_tensor(a); }))
    return {collect<schema::OptionalTensorArgument>(items, [&](const Argument& a) {
      return a.is_none() ? schema::OptionalTensorArgument() : tensor_name(a);
    })};
  problems_.add("the list " + repr(Argument::list({items.begin(), items.end()})) + " has no form",
                where);
  return {std::monostate()};
}

}  // namespace fx::io
