#include "fx/analysis/call_aliases.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "fx/ops/effects.h"
#include "fx/ops/hidden_aliases.h"
#include "fx/ops/op_info.h"

namespace fx {
namespace {

// Built-ins whose result shares nothing with tensor arguments.
constexpr std::string_view kFreshBuiltins[] = {
    "builtins.abs",     "builtins.float",  "builtins.int", "builtins.len",      "operator.abs",
    "operator.add",     "operator.and_",   "operator.eq",  "operator.floordiv", "operator.ge",
    "operator.gt",      "operator.invert", "operator.le",  "operator.lshift",   "operator.lt",
    "operator.matmul",  "operator.mod",    "operator.mul", "operator.ne",       "operator.neg",
    "operator.not_",    "operator.or_",    "operator.pow", "operator.rshift",   "operator.sub",
    "operator.truediv", "operator.xor"};
static_assert(std::is_sorted(std::begin(kFreshBuiltins), std::end(kFreshBuiltins)));

// Methods without an operator that return no tensor.
constexpr std::string_view kNumberMethods[] = {
    "dim",      "element_size", "get_device", "is_contiguous", "item",  "ndimension",
    "nelement", "numel",        "size",       "stride",        "tolist"};
static_assert(std::is_sorted(std::begin(kNumberMethods), std::end(kNumberMethods)));

template <std::size_t N>
bool contains(const std::string_view (&sorted)[N], std::string_view name) {
  return std::binary_search(std::begin(sorted), std::end(sorted), name);
}

using AliasSets = std::unordered_set<c10::Symbol>;

// Alias sets of an annotation and of the elements of a list: {a} of `Tensor(a)[]`.
void add_sets(const c10::AliasInfo* info, AliasSets& sets) {
  if (!info) return;
  sets.insert(info->beforeSets().begin(), info->beforeSets().end());
  sets.insert(info->afterSets().begin(), info->afterSets().end());
  for (const c10::AliasInfo& inner : info->containedTypes()) add_sets(&inner, sets);
}

void add_overload(CallAliases& call, const Overload& overload, bool hidden_alias,
                  bool hidden_write) {
  const c10::FunctionSchema& schema = overload.handle.schema();
  AliasSets returned;
  for (const c10::Argument& result : schema.returns()) {
    add_sets(result.alias_info(), returned);
    call.returns_list |= result.type()->kind() == c10::TypeKind::ListType;
  }
  call.returns_list |= schema.returns().size() > 1;
  call.returns_any |= hidden_alias && returned.empty();
  for (std::size_t i = 0; i < overload.rules.size(); ++i) {
    const ArgRule& rule = overload.rules[i];
    AliasSets mine;
    add_sets(schema.arguments()[i].alias_info(), mine);
    CallAliases::Arg arg;
    arg.returned =
        std::any_of(mine.begin(), mine.end(), [&](auto set) { return returned.contains(set); });
    arg.written = rule.written;
    arg.written_by_flag = hidden_write && rule.name.starts_with("running_");
    auto merge = [&arg](CallAliases::Arg& into) {
      into.returned |= arg.returned;
      into.written |= arg.written;
      into.written_by_flag |= arg.written_by_flag;
    };
    if (!rule.keyword_only) {
      if (call.positional.size() <= i) call.positional.resize(i + 1);
      merge(call.positional[i]);
    }
    auto known = std::find_if(call.named.begin(), call.named.end(),
                              [&](const auto& entry) { return entry.first == rule.name; });
    if (known == call.named.end()) known = call.named.insert(known, {rule.name, {}});
    merge(known->second);
  }
}

std::string_view without_overload(std::string_view name) {
  const auto dot = name.find('.', name.find("::"));
  return name.substr(0, dot);
}

CallAliases first_argument(bool written) {
  CallAliases call;
  call.positional.push_back({.returned = true, .written = written});
  return call;
}

CallAliases of_overloads(const OpInfo& info, std::string_view operator_name, bool hidden_write) {
  CallAliases call;
  const bool hidden_alias = has_hidden_alias(operator_name);
  for (const Overload& overload : info.overloads)
    add_overload(call, overload, hidden_alias, hidden_write);
  return call;
}

CallAliases of_function(const Function& function) {
  const std::string& name = function.name();
  const Effects effects = effects_of(function, [](std::string_view) { return false; });
  switch (function.kind()) {
    case FunctionKind::kBuiltin: {
      if (name == "operator.setitem") {
        CallAliases call = first_argument(/*written=*/true);
        call.returns_any = true;  // a list keeps the value itself
        return call;
      }
      if (effects.other) {
        CallAliases call = first_argument(/*written=*/true);
        call.returns_any = true;
        return call;
      }
      CallAliases call;
      call.returns_any = !contains(kFreshBuiltins, name) && !name.starts_with("math.");
      call.list_arithmetic = name == "operator.add" || name == "operator.mul";
      return call;
    }
    case FunctionKind::kWrapped: {
      CallAliases call;
      call.returns_any = true;
      call.writes_all = effects.any();
      return call;
    }
    case FunctionKind::kTorch:
    case FunctionKind::kOperator:
      break;
  }
  const OpInfo& info = OpInfo::of(function);
  if (info.overloads.empty()) {
    CallAliases call;
    call.returns_any = name != "torch.tensor";
    // Assertions look and do not touch; of all others nothing is known.
    call.writes_all = effects.any() && !name.starts_with("torch._assert");
    return call;
  }
  const bool hidden_write = effects.mutates && !effects.unless_false_name.empty();
  return function.kind() == FunctionKind::kTorch
             ? of_overloads(info, operator_name_of_torch_function(function), hidden_write)
             : of_overloads(info, without_overload(name), hidden_write);
}

CallAliases of_method(std::string_view name) {
  CallAliases call;
  if (contains(kNumberMethods, name)) return call;
  const OpInfo& info = OpInfo::of_method(name);
  if (!info.overloads.empty()) call = of_overloads(info, "aten::" + std::string(name), false);
  const Effects effects = effects_of_method(name, [](std::string_view) { return false; });
  const bool writes_known = std::any_of(call.positional.begin(), call.positional.end(),
                                        [](auto& a) { return a.written; });
  if (effects.mutates && !writes_known) return of_function(*Function::get("operator.setitem"));
  // float(), cpu(), data ... may return the tensor itself.
  if (info.overloads.empty()) call.returns_any = true;
  return call;
}

}  // namespace

CallAliases::Arg CallAliases::at(std::string_view name) const noexcept {
  for (const auto& [key, arg] : named)
    if (key == name || (name == "input" && key == "self")) return arg;
  return {};
}

const CallAliases& CallAliasTable::of(const Node& call) {
  auto [entry, is_new] = known_.try_emplace(call.target().id());
  if (is_new)
    entry->second = call.op() == Opcode::kCallMethod ? of_method(call.target().str())
                                                     : of_function(*call.target().function());
  return entry->second;
}

}  // namespace fx
