#include "fx/passes/named_arguments.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>

#include "fx/base/error.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/tensor_meta.h"
#include "fx/ops/call.h"
#include "fx/ops/op_info.h"

namespace fx {
namespace {

bool is_named(const ArgRule& rule, Symbol key) {
  return key == rule.name || (rule.name == "self" && key == "input");
}

// Whether the number and the names of the arguments fit; types are not compared.
bool fits(const Overload& overload, const Node& node) {
  if (node.num_args() > overload.num_positional) return false;
  std::size_t known = 0;
  for (std::size_t i = 0; i < overload.rules.size(); ++i) {
    const ArgRule& rule = overload.rules[i];
    const bool by_position = i < node.num_args() && !rule.keyword_only;
    const bool by_name = std::ranges::any_of(
        node.kwargs(), [&](const KwArg& kwarg) { return is_named(rule, kwarg.key); });
    if (by_position && by_name) return false;
    if (!by_position && !by_name && !rule.has_default) return false;
    known += by_name;
  }
  return known == node.kwargs().size();
}

// Literals of the wrong kind tell overloads apart: conv2d's padding may be ints or a text.
bool literals_fit(const Overload& overload, const Node& node) {
  for (std::size_t i = 0; i < node.num_args(); ++i) {
    const Argument& arg = node.args()[i];
    const Conversion wanted = overload.rules[i].conversion;
    const bool is_text = arg.kind() == Argument::Kind::kString;
    if (is_text != (wanted == Conversion::kString) && !arg.is_node() && !arg.is_none())
      return false;
  }
  return true;
}

bool agree(const Overload& a, const Overload& b) {
  if (a.rules.size() != b.rules.size() || a.num_positional != b.num_positional) return false;
  for (std::size_t i = 0; i < a.rules.size(); ++i) {
    const ArgRule& x = a.rules[i];
    const ArgRule& y = b.rules[i];
    if (x.name != y.name || x.has_default != y.has_default) return false;
    if (x.has_default && x.default_value != y.default_value) return false;
  }
  return true;
}

// A value of the kind that shape_prop saw `node` give.
std::optional<Value> sample_of(const Node& node) {
  const auto* type = node.meta().get<std::string>("type");
  if (!type) return std::nullopt;
  if (*type == "int") return Value(std::int64_t{1});
  if (*type == "float") return Value(1.0);
  if (*type == "bool") return Value(true);
  const TensorMeta* meta = tensor_meta(node);
  if (*type != "Tensor" || !meta) return std::nullopt;
  return Value(at::empty({0}, at::TensorOptions().dtype(meta->dtype).device(at::kMeta)));
}

// The overload that a run would choose, if the kinds of all arguments are known.
const Overload* overload_by_types(const OpInfo& info, const Node& node) {
  bool is_known = true;
  auto read = [&](Node& input) {
    std::optional<Value> sample = sample_of(input);
    is_known = is_known && sample;
    return sample.value_or(Value());
  };
  Values args;
  for (const Argument& arg : node.args()) args.push_back(value_of(arg, read));
  KwValues kwargs;
  for (const KwArg& kwarg : node.kwargs())
    kwargs.push_back({kwarg.key, value_of(kwarg.value, read)});
  if (!is_known) return nullptr;
  try {
    torch::jit::Stack stack;
    return &select_and_bind(info, node.target().str(), args, kwargs, stack);
  } catch (const std::exception&) {
    return nullptr;
  }
}

std::optional<Argument> default_of(const ArgRule& rule) {
  if (!rule.has_default) return std::nullopt;
  try {
    return argument_of(rule.default_value, [](const Value&) -> Argument {
      throw RunError(ErrorCode::kWrongType, "a default that no argument can hold");
    });
  } catch (const RunError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<NamedArguments> NamedArguments::of(const Node& node) {
  const OpInfo* info = nullptr;
  if (node.op() == Opcode::kCallFunction && node.target().is_function())
    info = &OpInfo::of(*node.target().function());
  else if (node.op() == Opcode::kCallMethod)
    info =
        is_operator_method(node.target().str()) ? &OpInfo::of_method(node.target().str()) : nullptr;
  if (!info) return std::nullopt;
  const Overload* chosen = nullptr;
  for (const Overload& overload : info->overloads) {
    if (!fits(overload, node)) continue;
    if (info->overloads.size() > 1 && !literals_fit(overload, node)) continue;
    if (chosen && !agree(*chosen, overload)) {
      chosen = overload_by_types(*info, node);
      break;
    }
    if (!chosen) chosen = &overload;
  }
  if (!chosen) return std::nullopt;

  NamedArguments out;
  out.num_positional_ = chosen->num_positional;
  for (std::size_t i = 0; i < chosen->rules.size(); ++i) {
    const ArgRule& rule = chosen->rules[i];
    out.names_.push_back(rule.name);
    if (i < node.num_args() && !rule.keyword_only) {
      out.values_.push_back(node.args()[i]);
      continue;
    }
    const auto kwarg = std::ranges::find_if(
        node.kwargs(), [&](const KwArg& entry) { return is_named(rule, entry.key); });
    std::optional<Argument> value =
        kwarg != node.kwargs().end() ? std::optional(kwarg->value) : default_of(rule);
    if (!value) return std::nullopt;
    out.values_.push_back(std::move(*value));
  }
  return out;
}

const Argument* NamedArguments::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < names_.size(); ++i)
    if (names_[i] == name) return &values_[i];
  return nullptr;
}

std::optional<std::size_t> NamedArguments::position(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < num_positional_; ++i)
    if (names_[i] == name) return i;
  return std::nullopt;
}

Kwargs NamedArguments::keywords() const {
  Kwargs keywords;
  keywords.reserve(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i) keywords.emplace_back(names_[i], values_[i]);
  return keywords;
}

std::optional<Kwargs> normalized_arguments(const Node& node) {
  const std::optional<NamedArguments> named = NamedArguments::of(node);
  if (!named) return std::nullopt;
  return named->keywords();
}

}  // namespace fx
