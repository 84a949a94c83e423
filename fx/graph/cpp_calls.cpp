#include "fx/graph/cpp_calls.h"

#include <algorithm>
#include <iterator>

#include "fx/base/error.h"
#include "fx/graph/argument_value.h"

namespace fx::cpp {
namespace {

constexpr std::string_view kMethods[] = {
#define FX_CPP_METHOD(name) name,
#include "fx/graph/cpp_methods.def"
#undef FX_CPP_METHOD
};
static_assert(std::is_sorted(std::begin(kMethods), std::end(kMethods)));

bool is_method_only(std::string_view name) {
  return std::binary_search(std::begin(kMethods), std::end(kMethods), name);
}

// Operators whose C++ form is not regular: it does not exist, leaves arguments out, or has
// overloads that the same arguments fit. Called through the dispatcher. Sorted.
constexpr std::string_view kIrregular[] = {
    "_cudnn_init_dropout_state",
    "_sparse_compressed_tensor_with_dims",
    "_sparse_coo_tensor_with_dims",
    "_sparse_coo_tensor_with_dims_and_tensors",
    "count_nonzero",
    "gradient",
    "quantized_gru",
    "quantized_lstm",
    "random",
    "random_",
    "range",
    "shallow_copy_data_",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "sym_is_contiguous",
};
static_assert(std::is_sorted(std::begin(kIrregular), std::end(kIrregular)));

bool is_regular(std::string_view name, const std::vector<std::string>& written, bool has_out) {
  if (std::binary_search(std::begin(kIrregular), std::end(kIrregular), name)) return false;
  if (name.starts_with("upsample_") || name.starts_with("_upsample_")) return false;
  // Where nothing is given, the type of what is missing would pick the overload.
  const auto missing = std::count(written.begin(), written.end(), "std::nullopt");
  return missing == 0 || (!has_out && !(missing > 1 && name.starts_with("cl")));
}

// One argument of a call in the order of the schema.
struct Slot {
  Argument value;
  bool given = false;
};

// Arguments by position, keyword, or default. Nothing when the schema does not take them so.
std::optional<std::vector<Slot>> arrange(const c10::FunctionSchema& schema,
                                         std::span<const Argument> args,
                                         std::span<const KwArg> kwargs) {
  const auto& parameters = schema.arguments();
  std::vector<Slot> slots(parameters.size());
  if (args.size() > parameters.size()) return std::nullopt;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (parameters[i].kwarg_only()) return std::nullopt;
    slots[i] = {args[i], true};
  }
  for (const KwArg& kwarg : kwargs) {
    std::size_t at = 0;
    while (at < parameters.size() && !(kwarg.key == parameters[at].name())) ++at;
    // Python calls the tensor itself "input".
    if (at == parameters.size() && kwarg.key == "input" && !parameters.empty() &&
        parameters[0].name() == "self")
      at = 0;
    if (at == parameters.size() || slots[at].given) return std::nullopt;
    slots[at] = {kwarg.value, true};
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].given) continue;
    if (!parameters[i].default_value()) return std::nullopt;
    try {
      slots[i].value = argument_of(*parameters[i].default_value(), [](const Value&) -> Argument {
        throw GraphError(ErrorCode::kNotExpressible, "a default without a form as an argument");
      });
    } catch (const GraphError&) {
      return std::nullopt;
    }
  }
  return slots;
}

// How many arguments a call has to write: defaults of keywords at the end are left out. But the
// C++ function that takes dtype, layout, device and pin_memory one by one has no defaults at all.
std::size_t written_count(const c10::FunctionSchema& schema, const std::vector<Slot>& slots) {
  std::size_t count = slots.size();
  auto can_be_left_out = [&](std::size_t i) {
    const c10::Argument& parameter = schema.arguments()[i];
    return !slots[i].given && (parameter.kwarg_only() || parameter.name() == "alpha" ||
                               parameter.name() == "memory_format");
  };
  while (count > 0 && can_be_left_out(count - 1)) --count;
  auto is_option = [&](std::size_t i, std::string_view name) {
    return i < slots.size() && schema.arguments()[i].name() == name;
  };
  for (std::size_t i = 0; i + 3 < slots.size(); ++i)
    if (is_option(i, "dtype") && is_option(i + 1, "layout") && is_option(i + 2, "device") &&
        is_option(i + 3, "pin_memory") && count > i)
      return slots.size();
  return count;
}

std::string joined(const std::vector<std::string>& texts, std::size_t from = 0) {
  std::string out;
  for (std::size_t i = from; i < texts.size(); ++i) out += (i > from ? ", " : "") + texts[i];
  return out;
}

Expr result_of(const c10::FunctionSchema& schema) {
  Expr result;
  const auto& returns = schema.returns();
  if (returns.size() == 1) result.type = type_of(*returns[0].real_type());
  if (returns.size() > 1) {
    result.type = Type::kTuple;
    for (const c10::Argument& item : returns) result.items.push_back(type_of(*item.real_type()));
  }
  return result;
}

// at::add(x, y), x.add_(y), at::add_out(out, x, y); nothing where LibTorch's form is another.
std::optional<std::string> direct_call(const c10::FunctionSchema& schema,
                                       std::vector<std::string> texts, std::size_t count) {
  const std::string& qualified = schema.name();
  if (!qualified.starts_with("aten::")) return std::nullopt;
  const std::string name = qualified.substr(6);
  // Symbolic ints among several results have a C++ type of their own.
  if (schema.returns().size() > 1)
    for (const c10::Argument& item : schema.returns())
      if (item.real_type()->kind() == c10::TypeKind::SymIntType) return std::nullopt;
  std::vector<std::string> outs, inputs;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& parameter = schema.arguments()[i];
    const c10::TypeKind kind = parameter.real_type()->kind();
    if (kind == c10::TypeKind::StorageType || kind == c10::TypeKind::StreamObjType)
      return std::nullopt;
    if (parameter.is_out())
      outs.push_back(texts[i]);
    else if (i < count)
      inputs.push_back(texts[i]);
  }
  if (!is_regular(name, inputs, !outs.empty())) return std::nullopt;
  if (!outs.empty()) return "at::" + name + "_out(" + joined(outs) + ", " + joined(inputs) + ")";
  // Symbolic sizes are plain ones in C++.
  if (name.starts_with("sym_") && !inputs.empty())
    return inputs[0] + "." + name.substr(4) + "(" + joined(inputs, 1) + ")";
  if (is_method_only(name)) {
    if (inputs.empty()) return std::nullopt;
    return inputs[0] + "." + name + "(" + joined(inputs, 1) + ")";
  }
  return "at::" + name + "(" + joined(inputs) + ")";
}

std::string dispatcher_call(const c10::FunctionSchema& schema, const Expr& result,
                            const std::vector<std::string>& texts) {
  std::string results;
  if (result.type == Type::kTuple)
    for (Type item : result.items) results += (results.empty() ? "" : ", ") + type_name(item);
  else if (result.type != Type::kNone)
    results = type_name(result.type);
  std::string out = "call<" + results + ">(" + string_literal(schema.name()) + ", " +
                    string_literal(schema.overload_name()) + ", {";
  for (std::size_t i = 0; i < texts.size(); ++i)
    out += (i ? ", " : "") + ("c10::IValue(" + texts[i] + ")");
  return out + "})";
}

bool has_cpp_types(const Expr& result) {
  return result.type != Type::kMixed &&
         std::find(result.items.begin(), result.items.end(), Type::kMixed) == result.items.end();
}

Expr try_overload(const Overload& overload, std::span<const Argument> args,
                  std::span<const KwArg> kwargs, const NodeExpr& node, bool wrap_numbers,
                  Helpers& helpers) {
  const c10::FunctionSchema& schema = overload.handle.schema();
  const auto slots = arrange(schema, args, kwargs);
  if (!slots) return {};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < slots->size(); ++i) {
    auto text = convert((*slots)[i].value, schema.arguments()[i], node, wrap_numbers);
    if (!text) return {};
    texts.push_back(std::move(*text));
  }
  Expr result = result_of(schema);
  if (!has_cpp_types(result)) return {};
  for (const std::string& text : texts)
    helpers.scalar_ops |= text.find("wrapped_scalar_tensor") != std::string::npos;
  if (auto direct = direct_call(schema, texts, written_count(schema, *slots))) {
    result.text = std::move(*direct);
    return result;
  }
  helpers.dispatcher = true;
  result.text = dispatcher_call(schema, result, texts);
  return result;
}

}  // namespace

Expr operator_call(const OpInfo& info, std::span<const Argument> args,
                   std::span<const KwArg> kwargs, const NodeExpr& node, Helpers& helpers) {
  for (bool wrap_numbers : {false, true})
    for (const Overload& overload : info.overloads)
      if (Expr call = try_overload(overload, args, kwargs, node, wrap_numbers, helpers);
          !call.text.empty())
        return call;
  return {};
}

std::string helpers_source(const Helpers& helpers) {
  std::string out;
  if (helpers.dispatcher)
    out += R"(
// Calls an operator by its name; several results come as a tuple.
template <typename... Results>
auto call(const char* name, const char* overload, std::vector<c10::IValue> stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).callBoxed(&stack);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (sizeof...(Results) == 1)
      return (stack[I].template to<Results>(), ...);
    else
      return std::tuple<Results...>(stack[I].template to<Results>()...);
  }(std::index_sequence_for<Results...>());
}
)";
  if (helpers.values)
    out += R"(
c10::IValue tuple(std::vector<c10::IValue> items) {
  return c10::ivalue::Tuple::create(std::move(items));
}
c10::IValue list(std::vector<c10::IValue> items) {
  c10::impl::GenericList made(c10::AnyType::get());
  for (c10::IValue& item : items) made.push_back(std::move(item));
  return made;
}
c10::IValue dict(std::vector<std::pair<c10::IValue, c10::IValue>> items) {
  c10::TypePtr key = items.empty() ? c10::TypePtr(c10::StringType::get()) : items[0].first.type();
  c10::impl::GenericDict made(key, c10::AnyType::get());
  for (auto& [k, value] : items) made.insert(std::move(k), std::move(value));
  return made;
}
)";
  if (helpers.integers)
    out += R"(
// Python's division: towards minus infinity.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  TORCH_CHECK(b != 0, "division by zero");
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }
)";
  return out;
}

}  // namespace fx::cpp
