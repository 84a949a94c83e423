#include "fx/ops/effects.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

#include "fx/ops/higher_order.h"
#include "fx/ops/op_info.h"

namespace fx {
namespace {

struct HiddenEffect {
  std::string_view name;
  bool Effects::* effect;
  std::string_view flag;
  std::size_t flag_index;
};

constexpr HiddenEffect kHiddenEffects[] = {
#define FX_HIDDEN_EFFECT(name, effect, flag, index) {name, &Effects::effect, flag, index},
#include "fx/ops/hidden_effects.def"
#undef FX_HIDDEN_EFFECT
};

constexpr std::string_view kSideEffects[] = {
#define FX_SIDE_EFFECT(name) name,
#include "fx/ops/side_effects.def"
#undef FX_SIDE_EFFECT
};
static_assert(std::is_sorted(std::begin(kSideEffects), std::end(kSideEffects)));

struct MarkedFunctions {
  std::shared_mutex mutex;
  std::unordered_set<const Function*> functions;
};

MarkedFunctions& marked() {
  static auto* instance = new MarkedFunctions;
  return *instance;
}

bool is_marked(const Function& function) {
  std::shared_lock lock(marked().mutex);
  return marked().functions.contains(&function);
}

// "aten::add" of "aten::add.Tensor".
std::string_view without_overload(std::string_view name) {
  auto colon = name.find("::");
  auto dot = name.find('.', colon == std::string_view::npos ? 0 : colon);
  return colon == std::string_view::npos ? name : name.substr(0, dot);
}

// An overload that only writes `out` matters only when the call passes that keyword.
Effects of_overloads(const OpInfo& info, const HasKwarg& has_kwarg) {
  Effects effects;
  for (const Overload& overload : info.overloads) {
    effects.random |= overload.random;
    if (!overload.mutates) continue;
    bool selected = info.overloads.size() == 1 || !overload.writes_out;
    if (!selected)
      for (const ArgRule& rule : overload.rules)
        selected |= rule.written && rule.keyword_only && has_kwarg(rule.name);
    effects.mutates |= selected;
  }
  return effects;
}

void add_hidden(Effects& effects, std::string_view operator_name) {
  const auto* row =
      std::lower_bound(std::begin(kHiddenEffects), std::end(kHiddenEffects), operator_name,
                       [](const HiddenEffect& r, std::string_view name) { return r.name < name; });
  if (row == std::end(kHiddenEffects) || row->name != operator_name) return;
  // A call that writes anyway (out=, the in-place form) does so whatever the flag says.
  if (effects.mutates && row->effect != &Effects::mutates) return;
  effects.*(row->effect) = true;
  effects.unless_false_name = row->flag;
  effects.unless_false_index = row->flag_index;
}

}  // namespace

Effects effects_of(const Function& function, const HasKwarg& has_kwarg) {
  Effects effects;
  if (std::binary_search(std::begin(kSideEffects), std::end(kSideEffects),
                         without_overload(function.name())) ||
      (function.kind() != FunctionKind::kOperator && is_marked(function))) {
    effects.other = true;
    return effects;
  }
  if (function.kind() == FunctionKind::kBuiltin || function.kind() == FunctionKind::kWrapped)
    return effects;
  const OpInfo& info = OpInfo::of(function);
  if (info.overloads.empty()) {
    // torch.tensor and friends have no operator and no effect; an unknown operator may do anything.
    // Those of higher-order operators are those of their graphs: Node::is_impure asks them.
    effects.other =
        function.kind() == FunctionKind::kOperator ||
        (function.name().starts_with(kHigherOrderPrefix) && find_higher_order(function) == nullptr);
    return effects;
  }
  effects = of_overloads(info, has_kwarg);
  add_hidden(effects, function.kind() == FunctionKind::kTorch
                          ? std::string_view(operator_name_of_torch_function(function))
                          : without_overload(function.name()));
  return effects;
}

Effects effects_of_method(std::string_view name, const HasKwarg& has_kwarg) {
  Effects effects = of_overloads(OpInfo::of_method(name), has_kwarg);
  // Python's in-place methods, as far as no operator stands for them: those of +=, *= ... and x[i]
  // = y.
  if (name == "__setitem__" ||
      (name.starts_with("__i") && name.ends_with("__") && name != "__invert__" &&
       name != "__index__" && name != "__int__" && name != "__iter__"))
    effects.mutates = true;
  return effects;
}

void has_side_effect(const Function& function) {
  std::unique_lock lock(marked().mutex);
  marked().functions.insert(&function);
}

}  // namespace fx
