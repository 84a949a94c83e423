#include "fx/graph/cpp_code.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/cpp_builtins.h"
#include "fx/graph/cpp_calls.h"
#include "fx/graph/cpp_names.h"
#include "fx/graph/graph_module.h"
#include "fx/graph/module_cpp.h"
#include "fx/graph/module_types.h"

namespace fx {
namespace {

using cpp::Expr;
using cpp::Type;
using Kind = Argument::Kind;

/// Writes one function.
class FunctionWriter {
 public:
  FunctionWriter(const Graph& graph, const GraphModule* module, std::string name,
                 std::string prefix, cpp::File& file, const CppCodeOptions& options)
      : graph_(graph),
        module_(module),
        name_(std::move(name)),
        prefix_(std::move(prefix)),
        file_(file),
        options_(options),
        builtins_([this](const Node& node) { return of_node(node); }, file.helpers) {}

  // The type of what the function returns.
  Expr write() {
    find_last_uses();
    inputs();
    for (const Node* node : order_) {
      emit(*node);
      if (node->is_output()) break;
    }
    if (order_.empty() || !order_.back()->is_output()) result_ = {Type::kNone, "", {}};
    file_.source += "\n" + (result_.type == Type::kNone ? "void" : cpp_result_type()) + " " +
                    name_ + "(const Weights& weights";
    if (!uses_weights_) file_.source.replace(file_.source.size() - 7, 7, "/*weights*/");
    for (const std::string& input : inputs_) file_.source += ", " + input;
    file_.source += ") {\n";
    for (const std::string& line : graph_.transformed_body(std::move(body_), CodeLanguage::kCpp))
      file_.source += "  " + line + "\n";
    file_.source += "}\n";
    return result_;
  }

 private:
  [[noreturn]] static void fail(const Node& node, std::string_view why) {
    cpp::not_expressible(node, why);
  }

  std::string cpp_result_type() const {
    return result_.type == Type::kMixed ? "c10::IValue" : cpp::type_name(result_);
  }

  // --- names and types
  // -----------------------------------------------------------------------------
  std::string unique(std::string_view candidate) {
    std::string name(candidate);
    for (int i = 1;
         cpp::is_taken(name) || file_.functions.contains(name) || !locals_.insert(name).second; ++i)
      name = std::string(candidate) + "_" + std::to_string(i);
    return name;
  }

  Expr of_node(const Node& node) const {
    auto found = values_.find(&node);
    if (found == values_.end())
      throw GraphError(ErrorCode::kForeignNode, "cannot write C++ code: node " +
                                                    std::string(node.name()) +
                                                    " is used but has no value before");
    return found->second;
  }
  cpp::NodeExpr nodes() const {
    return [this](const Node& node) { return of_node(node); };
  }
  Expr expr(const Argument& argument) const { return cpp::expr_of(argument, nodes()); }

  void find_last_uses() {
    for (const Node& node : graph_.nodes()) {
      order_.push_back(&node);
      if (node.is_output()) break;
    }
    std::unordered_map<const Node*, const Node*> last;
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      for (const Node* input : (*it)->all_input_nodes())
        if (last.emplace(input, *it).second) last_uses_[*it].push_back(input);
  }

  // --- inputs
  // --------------------------------------------------------------------------------------
  static Type input_type(const Node& node) {
    const std::string& type = node.type();
    if (type == "int" || type == "SymInt") return Type::kInt;
    if (type == "float") return Type::kFloat;
    if (type == "bool") return Type::kBool;
    if (type == "str") return Type::kString;
    if (type == "List[int]" || type == "list[int]") return Type::kIntList;
    if (type == "List[Tensor]" || type == "list[Tensor]") return Type::kTensorList;
    if (node.num_args() == 0 || !type.empty()) return Type::kTensor;
    switch (node.args()[0].kind()) {
      case Kind::kInt:
        return Type::kInt;
      case Kind::kFloat:
        return Type::kFloat;
      case Kind::kBool:
        return Type::kBool;
      case Kind::kString:
        return Type::kString;
      default:
        return Type::kTensor;
    }
  }

  void inputs() {
    std::vector<const Node*> placeholders;
    for (const Node* node : order_)
      if (node->is_placeholder()) placeholders.push_back(node);
    // C++ too wants defaults last.
    std::size_t required = 0;
    for (std::size_t i = 0; i < placeholders.size(); ++i)
      if (placeholders[i]->num_args() == 0) required = i + 1;
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      const Node& node = *placeholders[i];
      if (node.target().str().starts_with('*')) fail(node, "a variable number of inputs");
      const Type type = input_type(node);
      const std::string name = unique(node.name());
      std::string text = cpp::type_name(type) + " " + name;
      if (node.num_args() > 0 && i >= required) {
        const Expr value = expr(node.args()[0]);
        if (value.type == type || (type == Type::kFloat && value.type == Type::kInt))
          text += " = " + value.text;
        else if (value.type == Type::kNone && type == Type::kTensor)
          text += " = {}";
        else
          fail(node, "its default value does not have its type");
      }
      inputs_.push_back(text);
      values_[&node] = {type, name, {}};
    }
  }

  // --- statements
  // ------------------------------------------------------------------------------------
  void emit(const Node& node) {
    Expr made;
    switch (node.op()) {
      case Opcode::kPlaceholder:
        return;
      case Opcode::kOutput:
        return emit_output(node);
      case Opcode::kGetAttr:
        if (module_ && module_->attr_kind(node.target().str()) == GraphOwner::AttrKind::kModule)
          fail(node, "a module is no value in C++");
        made = {Type::kTensor, weight(node.target().str()), {}};
        break;
      case Opcode::kCallModule:
        made = module_call(node);
        break;
      case Opcode::kCallMethod:
        made = method_call(node);
        break;
      case Opcode::kCallFunction:
        made = function_call(node);
        break;
    }
    statement(node, made);
  }

  void statement(const Node& node, Expr made) {
    std::string text;
    if (made.type == Type::kNone || node.num_users() == 0) {
      text = made.text + ";";
    } else {
      const std::string name = unique(node.name());
      text = cpp::type_name(made) + " " + name + " = " + made.text + ";";
      made.text = name;
    }
    values_[&node] = made;
    if (options_.free_values)
      for (const Node* input : last_uses_[&node])
        if (auto found = values_.find(input);
            found != values_.end() && found->second.type == Type::kTensor)
          text += "  " + found->second.text + ".reset();";
    body_.push_back(std::move(text));
  }

  void emit_output(const Node& node) {
    if (node.num_args() == 0 || node.args()[0].is_none()) {
      result_ = {Type::kNone, "", {}};
      return;
    }
    result_ = expr(node.args()[0]);
    if (result_.type == Type::kTensor || result_.type == Type::kTensorList) {
      body_.push_back("return " + result_.text + ";");
      return;
    }
    file_.helpers.values = true;
    result_.type = Type::kMixed;
    body_.push_back("return " + cpp::ivalue(node.args()[0], nodes()) + ";");
  }

  // --- attributes and modules
  // ------------------------------------------------------------------------
  std::string weight(const std::string& path) {
    uses_weights_ = true;
    return "weights.at(" + cpp::string_literal(prefix_ + path) + ")";
  }

  Expr module_call(const Node& node) {
    const std::string& path = node.target().str();
    const auto child = module_ ? module_->find_submodule(path) : nullptr;
    if (!child)
      throw GraphError(
          ErrorCode::kUnknownModuleType,
          "cannot write C++ code for " + node.format_node() + ": there is no module at that path");
    if (const auto* inner = dynamic_cast<const GraphModule*>(child.get()))
      return nested(node, *inner);
    const Expr input =
        node.num_args() == 1 && node.kwargs().empty() ? expr(node.args()[0]) : Expr{};
    std::optional<std::string> text;
    if (input.type == Type::kTensor)
      text = cpp::module_expression(*child, path, input.text,
                                    [this](const std::string& p) { return weight(p); });
    if (!text)
      throw GraphError(ErrorCode::kUnknownModuleType,
                       "cannot write C++ code for " + node.format_node() + ": a call of " +
                           module_type_name(*child) +
                           " with these options and arguments has no "
                           "expression on LibTorch alone");
    return {Type::kTensor, *text, {}};
  }

  Expr nested(const Node& node, const GraphModule& inner) {
    if (!node.kwargs().empty()) fail(node, "a keyword argument of a nested graph");
    uses_weights_ = true;
    const std::string name = file_.claim(name_ + "_" + node.target().str());
    Expr result = FunctionWriter(inner.graph(), &inner, name, prefix_ + node.target().str() + ".",
                                 file_, options_)
                      .write();
    if (result.type == Type::kMixed) fail(node, "its result has no C++ type");
    result.text = name + "(weights";
    for (const Argument& arg : node.args()) result.text += ", " + expr(arg).text;
    result.text += ")";
    return result;
  }

  // --- calls
  // -----------------------------------------------------------------------------------------
  Expr call(const Node& node, const OpInfo& info, std::span<const Argument> args,
            std::span<const KwArg> kwargs) {
    Expr made = cpp::operator_call(info, args, kwargs, nodes(), file_.helpers);
    if (made.text.empty())
      fail(node, info.overloads.empty() ? "this process does not know the operator"
                                        : "no overload takes arguments of these C++ types");
    return made;
  }
  Expr call(const Node& node, std::string_view torch_function, std::span<const Argument> args) {
    return call(node, OpInfo::of(*Function::get("torch." + std::string(torch_function))), args, {});
  }

  Expr function_call(const Node& node) {
    const Function& function = *node.target().function();
    switch (function.kind()) {
      case FunctionKind::kWrapped:
        fail(node, "a wrapped function has no source here");
      case FunctionKind::kBuiltin:
        return builtin_call(node, function);
      case FunctionKind::kTorch:
        if (function.name() == "torch.tensor") return tensor_call(node);
        if (function.name() == "torch._assert") return builtins_.assert_call(node);
        break;
      case FunctionKind::kOperator:
        break;
    }
    return call(node, OpInfo::of(function), node.args(), node.kwargs());
  }

  // torch.tensor of numbers: floats have the default dtype, ints are longs.
  Expr tensor_call(const Node& node) {
    const Expr data = node.num_args() == 1 ? expr(node.args()[0]) : Expr{};
    std::string dtype;
    for (const KwArg& kwarg : node.kwargs()) {
      if (!(kwarg.key == "dtype") || kwarg.value.kind() != Kind::kDtype)
        fail(node, "an option of torch.tensor");
      dtype = cpp::dtype_literal(kwarg.value.to_dtype());
    }
    std::string natural;
    switch (data.type) {
      case Type::kFloat:
      case Type::kFloatList:
        natural = "at::typeMetaToScalarType(at::get_default_dtype())";
        break;
      case Type::kInt:
      case Type::kIntList:
        natural = "at::kLong";
        break;
      case Type::kBool:
        natural = "at::kBool";
        break;
      default:
        fail(node, "torch.tensor of anything but a number or a flat list of numbers");
    }
    const std::string options = ", " + (dtype.empty() ? natural : dtype) + ")";
    const bool scalar = data.type != Type::kFloatList && data.type != Type::kIntList;
    return {
        Type::kTensor, (scalar ? "at::scalar_tensor(" : "at::tensor(") + data.text + options, {}};
  }

  Expr builtin_call(const Node& node, const Function& function) {
    const std::string_view name = function.base_name();
    const auto args = node.args();
    if (!node.kwargs().empty()) fail(node, "a built-in takes no keywords");
    if (function.name() == "builtins.getattr" && args.size() == 2 &&
        args[1].kind() == Kind::kString)
      return builtins_.attribute(node, expr(args[0]), args[1].to_string());
    if (function.name() == "builtins.float" && args.size() == 1 && expr(args[0]).type == Type::kInt)
      return {Type::kFloat, "static_cast<double>(" + expr(args[0]).text + ")", {}};
    if (!function.name().starts_with("operator.")) fail(node, "this built-in has no C++ form");
    if (name == "getitem" && args.size() == 2) return builtins_.get_item(node, args[0], args[1]);
    if (name == "setitem" && args.size() == 3) return builtins_.set_item(node);
    // x += y is x.add_(y) on tensors.
    if (name.starts_with('i') && args.size() == 2 && expr(args[0]).type == Type::kTensor) {
      const cpp::Operator* plain = cpp::find_operator(name.substr(1));
      if (!plain) plain = cpp::find_operator(std::string(name.substr(1)) + "_");
      if (plain) return call(node, std::string(plain->function) + "_", args);
    }
    const cpp::Operator* op = cpp::find_operator(name);
    if (!op) fail(node, "this operator has no C++ form");
    const bool tensors = std::ranges::any_of(
        args, [&](const Argument& arg) { return expr(arg).type == Type::kTensor; });
    if (!tensors) return builtins_.on_numbers(node, *op);
    if (name == "sub" && expr(args[0]).type != Type::kTensor) {
      const Args reflected{args[1], args[0]};
      return call(node, "rsub", reflected);
    }
    return call(node, op->function, args);
  }

  // --- methods
  // ---------------------------------------------------------------------------------------
  Expr method_call(const Node& node) {
    if (node.num_args() == 0) fail(node, "a method without an object");
    const std::string& name = node.target().str();
    Args args(node.args().begin(), node.args().end());
    const Expr self = expr(args[0]);
    if (self.type != Type::kTensor) fail(node, "a method of what is no tensor");
    if (args.size() == 1 && node.kwargs().empty()) {
      struct Row {
        std::string_view name;
        Type type;
        std::string_view text;
      };
      constexpr Row kRows[] = {{"bfloat16", Type::kTensor, ".to(at::kBFloat16)"},
                               {"bool", Type::kTensor, ".to(at::kBool)"},
                               {"byte", Type::kTensor, ".to(at::kByte)"},
                               {"char", Type::kTensor, ".to(at::kChar)"},
                               {"cpu", Type::kTensor, ".to(at::kCPU)"},
                               {"cuda", Type::kTensor, ".to(at::kCUDA)"},
                               {"dim", Type::kInt, ".dim()"},
                               {"double", Type::kTensor, ".to(at::kDouble)"},
                               {"float", Type::kTensor, ".to(at::kFloat)"},
                               {"half", Type::kTensor, ".to(at::kHalf)"},
                               {"int", Type::kTensor, ".to(at::kInt)"},
                               {"item", Type::kScalar, ".item()"},
                               {"long", Type::kTensor, ".to(at::kLong)"},
                               {"ndimension", Type::kInt, ".dim()"},
                               {"nelement", Type::kInt, ".numel()"},
                               {"numel", Type::kInt, ".numel()"},
                               {"requires_grad_", Type::kTensor, ".requires_grad_()"},
                               {"short", Type::kTensor, ".to(at::kShort)"},
                               {"size", Type::kIntList, ".sizes().vec()"},
                               {"stride", Type::kIntList, ".strides().vec()"}};
      for (const Row& row : kRows)
        if (row.name == name) return {row.type, self.text + std::string(row.text), {}};
    }
    if (name == "__getitem__" && args.size() == 2)
      return builtins_.get_item(node, args[0], args[1]);
    const OpInfo& info = OpInfo::of_method(name);
    // view(2, 3) means view([2, 3]).
    const bool ints = args.size() > 1 && std::all_of(args.begin() + 1, args.end(), [&](auto& arg) {
                        return expr(arg).type == Type::kInt;
                      });
    if (ints && !info.overloads.empty() && info.overloads[0].rules.size() > 1 &&
        info.overloads[0].rules[1].conversion == Conversion::kIntList &&
        (args.size() > 2 || info.overloads[0].num_positional == 2))
      args = {args[0], Argument::list({args.begin() + 1, args.end()})};
    return call(node, info, args, node.kwargs());
  }

  const Graph& graph_;
  const GraphModule* module_;
  const std::string name_;
  const std::string prefix_;  // of weights: the path of a nested GraphModule and a dot
  cpp::File& file_;
  const CppCodeOptions& options_;
  cpp::Builtins builtins_;
  std::vector<const Node*> order_;  // up to the first output
  std::unordered_map<const Node*, std::vector<const Node*>> last_uses_;
  std::unordered_map<const Node*, Expr> values_;
  std::set<std::string> locals_;
  std::vector<std::string> inputs_;
  std::vector<std::string> body_;  // lines
  Expr result_;
  bool uses_weights_ = false;
};

std::string write(const Graph& graph, const GraphModule* module, const CppCodeOptions& options) {
  cpp::File file;
  file.functions.insert("Weights");
  const std::string name = file.claim(options.function_name);
  FunctionWriter(graph, module, name, "", file, options).write();
  std::string out = "#include <ATen/ATen.h>\n";
  if (file.helpers.scalar_ops) out += "#include <ATen/ScalarOps.h>\n";
  if (file.helpers.indexing) out += "#include <ATen/TensorIndexing.h>\n";
  if (file.helpers.dispatcher) out += "#include <ATen/core/dispatch/Dispatcher.h>\n";
  if (file.helpers.values) out += "#include <ATen/core/ivalue.h>\n";
  out +=
      "\n#include <cstdint>\n#include <limits>\n#include <map>\n#include <optional>\n"
      "#include <string>\n#include <tuple>\n#include <utility>\n#include <vector>\n";
  if (!options.name_space.empty()) out += "\nnamespace " + options.name_space + " {\n";
  out +=
      "\n/// Parameters, buffers and constants by their path.\n"
      "using Weights = std::map<std::string, at::Tensor>;\n";
  const std::string helpers = cpp::helpers_source(file.helpers);
  if (!helpers.empty()) out += "\nnamespace {\n" + helpers + "\n}  // namespace\n";
  out += file.source;
  if (!options.name_space.empty()) out += "\n}  // namespace " + options.name_space + "\n";
  return out;
}

}  // namespace

std::string cpp_code(const Graph& graph, const CppCodeOptions& options) {
  return write(graph, dynamic_cast<const GraphModule*>(graph.owner()), options);
}

std::string GraphModule::code() const { return write(graph(), this, CppCodeOptions()); }

}  // namespace fx
