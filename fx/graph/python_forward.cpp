#include "fx/graph/python_forward.h"

#include <algorithm>
#include <optional>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/readable.h"
#include "fx/ops/op_info.h"

namespace fx::python {
namespace {

struct Infix {
  std::string_view name;
  std::string_view symbol;
};
// Sorted by name.
constexpr Infix kBinary[] = {
    {"add", "+"},     {"and_", "&"}, {"eq", "=="},     {"floordiv", "//"}, {"ge", ">="},
    {"gt", ">"},      {"le", "<="},  {"lshift", "<<"}, {"lt", "<"},        {"matmul", "@"},
    {"mod", "%"},     {"mul", "*"},  {"ne", "!="},     {"or_", "|"},       {"pow", "**"},
    {"rshift", ">>"}, {"sub", "-"},  {"truediv", "/"}, {"xor", "^"},
};
constexpr Infix kUnary[] = {{"invert", "~"}, {"neg", "-"}, {"pos", "+"}};

std::string_view symbol(std::span<const Infix> table, std::string_view name) {
  auto found = std::lower_bound(table.begin(), table.end(), name,
                                [](const Infix& row, std::string_view n) { return row.name < n; });
  return found != table.end() && found->name == name ? found->symbol : std::string_view();
}

// operator.iadd and its kin, and setitem.
bool is_inplace(std::string_view name) {
  if (name == "setitem") return true;
  return name.starts_with('i') && name != "invert" && name != "index" && name != "is_" &&
         name != "is_not" && name != "inv" && name != "itemgetter" &&
         (!symbol(kBinary, name.substr(1)).empty() ||
          !symbol(kBinary, std::string(name.substr(1)) + "_").empty());
}

/// Emits one graph.
class Forward {
 public:
  Forward(const Graph& graph, File& file, const PythonCodeOptions& options, int indent)
      : graph_(graph),
        file_(file),
        options_(options),
        indent_(static_cast<std::size_t>(indent), ' ') {}

  std::string emit() {
    for (const Node& node : graph_.nodes()) {
      if (node.is_output()) {
        output_ = &node;
        break;
      }
    }
    claim_globals();
    emit_signature();
    name_nodes();
    find_last_uses();
    for (const Node& node : graph_.nodes()) {
      emit_node(node);
      if (&node == output_) break;
    }
    std::string body;
    for (const std::string& line : graph_.transformed_body(std::move(body_), CodeLanguage::kPython))
      body += (line.empty() ? "" : indent_ + "    " + line) + "\n";
    if (body.empty()) body = indent_ + "    pass\n";
    std::string out = indent_ + "def forward(self";
    for (const std::string& parameter : parameters_) out += ", " + parameter;
    out += ")";
    if (output_ && options_.types && !output_->type().empty())
      out += " -> " + type_source(output_->type());
    return out + ":\n" + body;
  }

 private:
  using NodeNames = std::unordered_map<const Node*, std::string>;

  // --- names -----------------------------------------------------------------------------------
  static bool is_taken_by_code(std::string_view name) {
    constexpr std::string_view kUsed[] = {"complex", "device",   "getattr", "inf",   "math",
                                          "nan",     "operator", "self",    "slice", "torch"};
    return std::find(std::begin(kUsed), std::end(kUsed), name) != std::end(kUsed);
  }

  // Before any local gets a name: a local variable would hide the function it calls.
  void claim_globals() {
    for (const Node& node : graph_.nodes()) {
      const Function* function = node.target().function();
      if (!function) continue;
      if (function->kind() == FunctionKind::kWrapped) file_.wrapped_function(function->name());
      if (function->kind() != FunctionKind::kBuiltin) continue;
      if (function->name().starts_with("builtins."))
        file_.globals.emplace(function->base_name());
      else if (is_inplace(function->base_name()))
        file_.globals.insert(inplace_helper(function->base_name()));
    }
  }

  static std::string inplace_helper(std::string_view name) {
    return "_operator_" + std::string(name);
  }

  std::string unique(std::string_view candidate) {
    std::string name(candidate);
    std::size_t number = 0;
    while (is_taken_by_code(name) || file_.globals.contains(name) || !locals_.insert(name).second)
      name = std::string(candidate) + "_" + std::to_string(++number);
    return name;
  }

  void emit_signature() {
    std::vector<const Node*> placeholders;
    for (const Node& node : graph_.nodes()) {
      if (node.is_placeholder()) placeholders.push_back(&node);
      if (&node == output_) break;
    }
    // Python wants defaults last: one that stands before an input without default cannot be left
    // out.
    std::size_t required = 0;
    for (std::size_t i = 0; i < placeholders.size(); ++i)
      if (placeholders[i]->num_args() == 0 && !placeholders[i]->target().str().starts_with('*'))
        required = i + 1;
    std::string variadic, keywords;
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      const Node& node = *placeholders[i];
      std::string_view target = node.target().str();
      const std::size_t stars = target.starts_with("**") ? 2 : target.starts_with('*') ? 1 : 0;
      target.remove_prefix(stars);
      const bool usable = is_name(target) && !is_taken_by_code(target) &&
                          !file_.globals.contains(target) && !locals_.contains(std::string(target));
      const std::string parameter = unique(usable ? target : node.name());
      parameter_of_[&node] = parameter;
      std::string text = parameter + annotation(node);
      if (node.num_args() > 0 && i >= required) text += " = " + value(node.args()[0]);
      if (stars == 0)
        parameters_.push_back(text);
      else
        (stars == 1 ? variadic : keywords) = std::string(stars, '*') + text;
    }
    if (!variadic.empty()) parameters_.push_back(variadic);
    if (!keywords.empty()) parameters_.push_back(keywords);
  }

  void name_nodes() {
    for (const Node& node : graph_.nodes()) {
      auto parameter = parameter_of_.find(&node);
      // A parameter is the node's own variable when it has its name.
      names_[&node] = parameter != parameter_of_.end() && parameter->second == node.name()
                          ? parameter->second
                          : unique(node.name());
      if (parameter != parameter_of_.end() && names_[&node] != parameter->second)
        line(names_[&node] + " = " + parameter->second);
      if (&node == output_) break;
    }
  }

  std::string name_of(const Node& node) const {
    auto found = names_.find(&node);
    if (found == names_.end())
      throw GraphError(ErrorCode::kForeignNode,
                       "cannot write Python code: node " + std::string(node.name()) +
                           " is used but is not in the part of the graph that runs");
    return found->second;
  }

  // --- values ----------------------------------------------------------------------------------
  std::string value(const Argument& argument) {
    return literal(argument, file_.imports, [this](const Node& node) { return name_of(node); });
  }

  // A value that stands before ".", "[" or an infix operator.
  std::string operand(const Argument& argument) {
    const std::string text = value(argument);
    const bool number =
        argument.kind() == Argument::Kind::kInt || argument.kind() == Argument::Kind::kFloat;
    return number && text.starts_with('-') ? "(" + text + ")" : text;
  }
  std::string object(const Argument& argument) {
    const std::string text = value(argument);
    return argument.is_node() ? text : "(" + text + ")";
  }

  // Takes a type such as "Dict[str, torch.Tensor]" from the front of `text`.
  static bool take_type(std::string_view& text) {
    auto take = [&](std::string_view token) {
      if (!text.starts_with(token)) return false;
      text.remove_prefix(token.size());
      return true;
    };
    if (take("...")) return true;
    do {
      std::size_t length = 0;
      while (length < text.size() && is_identifier(text.substr(0, length + 1))) ++length;
      if (!is_name(text.substr(0, length))) return text.starts_with("None") && take("None");
      text.remove_prefix(length);
    } while (take("."));
    if (!take("[")) return true;
    do {
      while (take(" ")) {
      }
      if (!take_type(text)) return false;
    } while (take(","));
    return take("]");
  }

  // Annotations are not evaluated, but have to be expressions: other text becomes a string.
  static std::string type_source(const std::string& type) {
    std::string_view rest = type;
    return take_type(rest) && rest.empty() ? type : string_literal(type);
  }

  std::string call(const std::string& callee, std::span<const Argument> args,
                   std::span<const KwArg> kwargs, const c10::FunctionSchema* schema = nullptr) {
    std::string out = callee + "(";
    bool first = true;
    auto add = [&](const std::string& text) {
      if (!first) out += ", ";
      first = false;
      out += text;
    };
    for (std::size_t i = 0; i < args.size(); ++i)
      add(value(schema && i < schema->arguments().size() ? typed(args[i], schema->arguments()[i])
                                                         : args[i]));
    std::string others;
    for (const KwArg& kwarg : kwargs) {
      const std::string& key = kwarg.key.str();
      const Argument* typed_value = &kwarg.value;
      Argument converted;
      if (schema)
        for (const c10::Argument& parameter : schema->arguments())
          if (parameter.name() == key) {
            converted = typed(kwarg.value, parameter);
            typed_value = &converted;
          }
      if (is_name(key))
        add(key + " = " + value(*typed_value));
      else
        others += (others.empty() ? "" : ", ") + string_literal(key) + ": " + value(*typed_value);
    }
    if (!others.empty()) add("**{" + others + "}");
    return out + ")";
  }

  // LibTorch stores dtypes, layouts and memory formats as ints, Python wants the objects.
  static Argument typed(const Argument& argument, const c10::Argument& parameter) {
    if (argument.kind() != Argument::Kind::kInt) return argument;
    c10::TypePtr type = parameter.real_type();
    if (type->kind() == c10::TypeKind::OptionalType)
      type = type->expectRef<c10::OptionalType>().getElementType();
    const std::int64_t number = argument.to_int();
    switch (type->kind()) {
      case c10::TypeKind::ScalarTypeType:
        return static_cast<c10::ScalarType>(number);
      case c10::TypeKind::LayoutType:
        return static_cast<c10::Layout>(number);
      case c10::TypeKind::MemoryFormatType:
        return static_cast<c10::MemoryFormat>(number);
      default:
        return argument;
    }
  }

  // --- statements ------------------------------------------------------------------------------
  void line(std::string text) { body_.push_back(std::move(text)); }

  // torch.fx's rule: a value dies with the statement that reads it last, inputs of outputs never.
  void find_last_uses() {
    std::unordered_map<const Node*, const Node*> last;
    std::vector<const Node*> order;
    for (const Node& node : graph_.nodes()) {
      order.push_back(&node);
      if (&node == output_) break;
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it)
      for (const Node* input : (*it)->all_input_nodes())
        if (last.emplace(input, *it).second) last_uses_[*it].push_back(input);
  }

  void statement(const Node& node, const std::string& expression) {
    if (options_.verbose) comments(node);
    std::string text = names_.at(&node) + annotation(node) + " = " + expression;
    if (options_.free_values) {
      std::string freed;
      for (const Node* input : last_uses_[&node]) freed += name_of(*input) + " = ";
      if (!is_used(node)) freed += names_.at(&node) + " = ";
      if (!freed.empty()) text += ";  " + freed + "None";
    }
    line(text);
  }

  // " : T", or what is known of the tensor.
  std::string annotation(const Node& node) const {
    if (options_.verbose) {
      const std::string meta =
          shown_tensor_meta(node, options_.include_stride, options_.include_device);
      if (!meta.empty()) return ": \"" + meta + "\"";
    }
    return options_.types && !node.type().empty() ? " : " + type_source(node.type()) : "";
  }

  // A comment ends where Python sees the end of a line, which is not only at \n.
  static std::string on_one_line(const std::string& text) {
    std::string out;
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7F) {
        const std::string repr = str_repr(std::string_view(&c, 1));
        out += repr.substr(1, repr.size() - 2);
      } else {
        out += c;
      }
    }
    return out;
  }

  // Where the node comes from, when that is not where the last one came from.
  void comments(const Node& node) {
    const std::string trace = node.stack_trace();
    if (!last_trace_ || *last_trace_ != trace) {
      if (last_trace_) line("");
      const std::string summary = stack_trace_summary(trace);
      line(trace.empty()     ? "# No stacktrace found for following nodes"
           : summary.empty() ? "# Origin: " + str_repr(trace)
                             : "# " + on_one_line(summary));
      last_trace_ = trace;
    }
    for (const std::string& key : options_.additional_meta)
      if (const std::string text = shown_entry(node.meta(), key); !text.empty())
        line("# " + key + ": " + text);
  }

  static std::string shown_entry(const Meta& meta, const std::string& key) {
    if (const auto* text = meta.get<std::string>(key)) return str_repr(*text);
    if (const auto* number = meta.get<int>(key)) return std::to_string(*number);
    if (const auto* number = meta.get<std::int64_t>(key)) return std::to_string(*number);
    if (const auto* number = meta.get<double>(key)) return float_repr(*number);
    if (const auto* flag = meta.get<bool>(key)) return *flag ? "True" : "False";
    return {};
  }

  // Whether a node that runs reads it.
  bool is_used(const Node& node) const {
    for (const Node* user : node.users())
      if (names_.contains(user)) return true;
    return false;
  }

  void emit_node(const Node& node) {
    switch (node.op()) {
      case Opcode::kPlaceholder:
        return;
      case Opcode::kGetAttr:
        return statement(node, attribute("self", node.target().str()));
      case Opcode::kCallModule:
        return statement(node,
                         call(attribute("self", node.target().str()), node.args(), node.kwargs()));
      case Opcode::kCallMethod:
        if (node.num_args() == 0)
          throw GraphError(ErrorCode::kIndexOutOfRange,
                           "the method call " + std::string(node.name()) + " has no object");
        return statement(node, call(attribute(object(node.args()[0]), node.target().str()),
                                    node.args().subspan(1), node.kwargs()));
      case Opcode::kCallFunction:
        return statement(node, function_call(node));
      case Opcode::kOutput:
        return line("return " + (node.num_args() ? value(node.args()[0]) : "None"));
    }
  }

  std::string function_call(const Node& node) {
    const Function& function = *node.target().function();
    switch (function.kind()) {
      case FunctionKind::kBuiltin:
        return builtin_call(node, function);
      case FunctionKind::kTorch:
        return call(dotted(function.name()), node.args(), node.kwargs());
      case FunctionKind::kWrapped:
        return call(file_.wrapped_function(function.name()), node.args(), node.kwargs());
      case FunctionKind::kOperator:
        break;
    }
    const std::string_view full = function.name();
    std::string callee = attribute("torch.ops", full.substr(0, full.find("::")));
    callee = attribute(callee, function.base_name());
    const OpInfo& info = OpInfo::of(function);
    const bool one = info.overloads.size() == 1;
    if (!function.overload_name().empty())
      callee = attribute(callee, function.overload_name());
    else if (one || info.overloads.empty())
      callee += ".default";
    return call(callee, node.args(), node.kwargs(),
                one ? &info.overloads[0].handle.schema() : nullptr);
  }

  static std::string dotted(std::string_view path) {
    const std::size_t dot = path.find('.');
    return attribute(std::string(path.substr(0, dot)), path.substr(dot + 1));
  }

  std::string builtin_call(const Node& node, const Function& function) {
    const auto args = node.args();
    const std::string_view name = function.base_name();
    const std::string_view full = function.name();
    const bool plain = node.kwargs().empty();
    if (full.starts_with("builtins.")) {
      if (name == "getattr" && plain && args.size() == 2 &&
          args[1].kind() == Argument::Kind::kString && is_name(args[1].to_string()))
        return object(args[0]) + "." + args[1].to_string();
      return call(std::string(name), args, node.kwargs());
    }
    if (full.starts_with("math.")) {
      file_.imports.math = true;
      return call(std::string(full), args, node.kwargs());
    }
    if (plain && args.size() == 2) {
      if (name == "getitem") return object(args[0]) + "[" + value(args[1]) + "]";
      if (name == "rsub") return operand(args[1]) + " - " + operand(args[0]);
      if (std::string_view infix = symbol(kBinary, name); !infix.empty())
        return operand(args[0]) + " " + std::string(infix) + " " + operand(args[1]);
    }
    if (plain && args.size() == 1)
      if (std::string_view prefix = symbol(kUnary, name); !prefix.empty())
        return std::string(prefix) + operand(args[0]);
    file_.imports.operator_ = true;
    if (is_inplace(name)) {
      // Traced again, `x += 1` would become an addition, and x[0] = y is refused: a helper keeps
      // both.
      file_.inplace.insert(std::string(name));
      return call(inplace_helper(name), args, node.kwargs());
    }
    return call(std::string(full), args, node.kwargs());
  }

  const Graph& graph_;
  File& file_;
  const PythonCodeOptions& options_;
  const std::string indent_;
  const Node* output_ = nullptr;
  std::set<std::string> locals_;
  std::vector<std::string> parameters_;
  NodeNames parameter_of_;
  NodeNames names_;
  std::unordered_map<const Node*, std::vector<const Node*>> last_uses_;
  std::optional<std::string> last_trace_;  // of the node before, in verbose code
  std::vector<std::string> body_;          // lines
};

}  // namespace

std::string File::claim(std::string_view candidate) {
  std::string base;
  for (char c : candidate)
    base += is_identifier(std::string_view(&c, 1)) || (c >= '0' && c <= '9') ? c : '_';
  if (!is_name(base)) base = "_" + base;
  std::string name = base;
  for (int i = 1; !globals.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  return name;
}

std::string File::wrapped_function(const std::string& name) {
  for (const auto& [cpp, python] : wrapped)
    if (cpp == name) return python;
  wrapped.emplace_back(name, claim(name));
  return wrapped.back().second;
}

std::string forward_source(const Graph& graph, File& file, const PythonCodeOptions& options,
                           int indent) {
  return Forward(graph, file, options, indent).emit();
}

}  // namespace fx::python
