#include "fx/io/argument_import.h"

#include <algorithm>
#include <utility>

#include "fx/base/error.h"
#include "fx/io/shown.h"
#include "fx/io/weights.h"

namespace fx::io {
namespace {

constexpr std::size_t kMaxListedNodes = 5;

/// Turns each alternative of the schema's union into an Argument.
struct ArgumentBuilder {
  const ValueTable& values;
  Problems& problems;
  const std::string& where;

  Argument operator()(std::monostate) const { return {}; }
  Argument operator()(const schema::TensorArgument& a) const {
    return values.get(a.name, where).node;
  }
  Argument operator()(std::int64_t value) const { return value; }
  Argument operator()(double value) const { return value; }
  Argument operator()(bool value) const { return value; }
  Argument operator()(const std::string& value) const { return value; }
  Argument operator()(std::complex<double> value) const { return value; }
  Argument operator()(schema::ScalarType value) const { return to_scalar_type(value); }
  Argument operator()(schema::MemoryFormat value) const { return to_memory_format(value); }
  Argument operator()(schema::Layout value) const {
    if (auto layout = to_layout(value)) return *layout;
    problems.add("layout mkldnn as an argument is not supported", where);
    return {};
  }
  Argument operator()(const schema::Device& value) const {
    at::Device device = to_device(value, values.label() + ": " + where);
    if (!device.is_cpu() && !device.is_meta())
      problems.add("device " + device.str() + " is not there; export on the CPU", where);
    return device;
  }
  template <typename T>
  Argument operator()(const std::variant<std::string, T>& value) const {
    if (const auto* name = std::get_if<std::string>(&value)) return values.get(*name, where).node;
    return std::get<T>(value);
  }
  Argument operator()(const schema::SymIntArgument& a) const { return (*this)(a.value); }
  Argument operator()(const schema::SymFloatArgument& a) const { return (*this)(a.value); }
  Argument operator()(const schema::SymBoolArgument& a) const { return (*this)(a.value); }
  Argument operator()(const schema::OptionalTensorArgument& a) const {
    return a ? (*this)(*a) : Argument();
  }
  Argument operator()(const schema::GraphArgument&) const {
    problems.add("nested graphs (branches and loops on data) are not supported", where);
    return {};
  }
  Argument operator()(const schema::CustomObjArgument& a) const {
    problems.add("objects of class " + shown(a.class_fqn) + " are not supported", where);
    return {};
  }
  Argument operator()(const schema::OperatorArgument&) const {
    problems.add("operators as arguments are not supported", where);
    return {};
  }
  Argument operator()(const schema::Argument& a) const { return std::visit(*this, a.value); }
  template <typename T>
  Argument operator()(const std::vector<T>& list) const {
    std::vector<Argument> items;
    items.reserve(list.size());
    for (const auto& item : list) items.push_back((*this)(item));
    return Argument::list(std::move(items));
  }
  Argument operator()(const std::vector<bool>& list) const {
    std::vector<Argument> items;
    for (bool item : list) items.emplace_back(item);
    return Argument::list(std::move(items));
  }
  Argument operator()(const std::vector<std::pair<std::string, schema::Argument>>& dict) const {
    std::vector<DictItem> items;
    for (const auto& [key, value] : dict) items.emplace_back(Argument(key), (*this)(value));
    return Argument::dict(std::move(items));
  }
};

using Kind = Argument::Kind;

bool is_number(const Argument& argument, const ValueTable& values, bool with_float) {
  switch (argument.kind()) {
    case Kind::kInt:
    case Kind::kBool:
      return true;
    case Kind::kFloat:
      return with_float;
    case Kind::kNode: {
      ValueKind kind = values.kind_of(argument.node());
      return kind == ValueKind::kInt || kind == ValueKind::kBool ||
             (with_float && kind == ValueKind::kFloat);
    }
    default:
      return false;
  }
}

bool is_tensor(const Argument& argument, const ValueTable& values) {
  return argument.is_node() && values.kind_of(argument.node()) == ValueKind::kTensor;
}

template <typename Fn>
bool is_list_of(const Argument& argument, Fn&& element_fits) {
  if (argument.kind() != Kind::kList && argument.kind() != Kind::kTuple) return false;
  return std::ranges::all_of(argument.items(), element_fits);
}

}  // namespace

const std::string* value_name(const schema::Argument& argument) {
  if (const auto* tensor = argument.get<schema::TensorArgument>()) return &tensor->name;
  auto named = [](const auto* symbolic) -> const std::string* {
    return symbolic == nullptr ? nullptr : std::get_if<std::string>(&symbolic->value);
  };
  if (const auto* name = named(argument.get<schema::SymIntArgument>())) return name;
  if (const auto* name = named(argument.get<schema::SymFloatArgument>())) return name;
  if (const auto* name = named(argument.get<schema::SymBoolArgument>())) return name;
  if (const auto* object = argument.get<schema::CustomObjArgument>()) return &object->name;
  return nullptr;
}

ValueKind kind_of_value(const schema::Argument& argument) {
  if (argument.get<schema::SymIntArgument>() != nullptr) return ValueKind::kInt;
  if (argument.get<schema::SymFloatArgument>() != nullptr) return ValueKind::kFloat;
  if (argument.get<schema::SymBoolArgument>() != nullptr) return ValueKind::kBool;
  return ValueKind::kTensor;
}

void ValueTable::define(const std::string& name, ImportedValue value, const std::string& where) {
  if (!values_.emplace(name, value).second)
    throw ImportError(ErrorCode::kBadProgram, label_ + ": " + where + " defines the value " +
                                                  shown(name) + " a second time");
  kinds_.emplace(value.node, value.kind);
}

const ImportedValue& ValueTable::get(const std::string& name, const std::string& where) const {
  auto it = values_.find(name);
  if (it == values_.end())
    throw ImportError(
        ErrorCode::kBadProgram,
        label_ + ": " + where +
            (expected_.contains(name) ? " uses the value " + shown(name) +
                                            " before it is made (a cycle, or out of order)"
                                      : " uses the unknown value " + shown(name)));
  return it->second;
}

ValueKind ValueTable::kind_of(const Node& node) const {
  auto it = kinds_.find(&node);
  return it == kinds_.end() ? ValueKind::kTensorList : it->second;
}

void Problems::add(const std::string& what, const std::string& where, bool forbidden) {
  forbidden_ = forbidden_ || forbidden;
  auto row = std::ranges::find(rows_, what, &Row::what);
  if (row == rows_.end()) row = rows_.insert(rows_.end(), Row{what, {}, 0});
  ++row->count;
  if (row->nodes.size() < kMaxListedNodes &&
      std::ranges::find(row->nodes, where) == row->nodes.end())
    row->nodes.push_back(where);
}

std::string Problems::list() const {
  std::string text;
  for (const Row& row : rows_) {
    text += "\n  - " + row.what + " (";
    for (std::size_t i = 0; i < row.nodes.size(); ++i) text += (i > 0 ? ", " : "") + row.nodes[i];
    if (row.count > row.nodes.size()) text += ", ... " + std::to_string(row.count) + " in all";
    text += ")";
  }
  return text + "\n";
}

void Problems::raise(const std::string& label) const {
  const std::string text = label + " cannot be imported:" + list();
  throw ImportError(forbidden_ ? ErrorCode::kForbiddenOperator : ErrorCode::kUnsupported, text);
}

Argument import_argument(const schema::Argument& argument, const ValueTable& values,
                         Problems& problems, const std::string& where) {
  return ArgumentBuilder{values, problems, where}(argument);
}

bool fits(const Argument& argument, const ArgRule& rule, const ValueTable& values) {
  if (argument.is_none() && (rule.optional || rule.conversion == Conversion::kOptionalTensor))
    return true;
  auto is_int = [&](const Argument& a) { return is_number(a, values, false); };
  auto is_float = [&](const Argument& a) { return is_number(a, values, true); };
  auto is_bool = [&](const Argument& a) {
    return a.kind() == Kind::kBool || (a.is_node() && values.kind_of(a.node()) == ValueKind::kBool);
  };
  auto is_scalar = [&](const Argument& a) {
    return is_float(a) || a.kind() == Kind::kComplex || is_tensor(a, values);
  };
  auto is_string = [&](const Argument& a) {
    return a.kind() == Kind::kString ||
           (a.is_node() && values.kind_of(a.node()) == ValueKind::kString);
  };
  auto is_tensor_list_node = [&](const Argument& a) {
    return a.is_node() && values.kind_of(a.node()) == ValueKind::kTensorList;
  };
  switch (rule.conversion) {
    case Conversion::kTensor:
    case Conversion::kOptionalTensor:
      // Python wraps a number where a tensor stands.
      return is_scalar(argument);
    case Conversion::kInt:
      return is_int(argument) || argument.kind() == Kind::kDtype ||
             argument.kind() == Kind::kLayout || argument.kind() == Kind::kMemoryFormat;
    case Conversion::kFloat:
      return is_float(argument);
    case Conversion::kBool:
      return is_bool(argument);
    case Conversion::kScalar:
      return is_scalar(argument);
    case Conversion::kString:
      return is_string(argument);
    case Conversion::kDevice:
      return argument.kind() == Kind::kDevice || is_string(argument);
    case Conversion::kIntList:
      return is_list_of(argument, is_int) || (rule.broadcasts && is_int(argument));
    case Conversion::kFloatList:
      return is_list_of(argument, is_float) || (rule.broadcasts && is_float(argument));
    case Conversion::kBoolList:
      return is_list_of(argument, is_bool) || (rule.broadcasts && is_bool(argument));
    case Conversion::kTensorList:
      return is_tensor_list_node(argument) ||
             is_list_of(argument, [&](const Argument& a) { return is_tensor(a, values); });
    case Conversion::kOptionalTensorList:
      return is_tensor_list_node(argument) || is_list_of(argument, [&](const Argument& a) {
               return a.is_none() || is_tensor(a, values);
             });
    case Conversion::kScalarList:
      return is_list_of(argument, is_scalar);
    case Conversion::kStringList:
      return is_list_of(argument, is_string);
    case Conversion::kAny:
      return true;
  }
  return false;
}

std::string wanted(const ArgRule& rule) {
  auto name = [&]() -> std::string {
    switch (rule.conversion) {
      case Conversion::kTensor:
      case Conversion::kOptionalTensor:
        return "Tensor";
      case Conversion::kInt:
        return "int";
      case Conversion::kFloat:
        return "float";
      case Conversion::kBool:
        return "bool";
      case Conversion::kScalar:
        return "number";
      case Conversion::kString:
        return "string";
      case Conversion::kDevice:
        return "device";
      case Conversion::kIntList:
        return "list of ints";
      case Conversion::kFloatList:
        return "list of floats";
      case Conversion::kBoolList:
        return "list of bools";
      case Conversion::kTensorList:
        return "list of Tensors";
      case Conversion::kOptionalTensorList:
        return "list of Tensors or None";
      case Conversion::kScalarList:
        return "list of numbers";
      case Conversion::kStringList:
        return "list of strings";
      case Conversion::kAny:
        break;
    }
    return "value";
  };
  return name() + (rule.optional ? " or None" : "");
}

}  // namespace fx::io
