#include "fx/ops/function.h"

#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {
namespace {

FunctionKind kind_of(std::string_view name) {
  if (name.find("::") != std::string_view::npos) return FunctionKind::kOperator;
  if (name.starts_with("torch.")) return FunctionKind::kTorch;
  for (std::string_view prefix : {"operator.", "builtins.", "math."})
    if (name.starts_with(prefix)) return FunctionKind::kBuiltin;
  return FunctionKind::kWrapped;
}

std::string canonical(std::string_view name) {
  bool bad = name.empty();
  for (char c : name) bad |= static_cast<unsigned char>(c) <= ' ';
  if (bad)
    throw GraphError(
        ErrorCode::kBadTarget,
        "a function name must be non-empty and free of white space, found " + str_repr(name));
  if (name.starts_with("_operator.")) name.remove_prefix(1);
  if (kind_of(name) == FunctionKind::kOperator && name.ends_with(".default"))
    name.remove_suffix(std::string_view(".default").size());
  return std::string(name);
}

}  // namespace

Function::Function(std::string name, FunctionKind kind) : name_(std::move(name)), kind_(kind) {
  std::string_view rest = name_;
  if (kind_ == FunctionKind::kOperator) {
    rest.remove_prefix(rest.find("::") + 2);
    if (auto dot = rest.find('.'); dot != std::string_view::npos) {
      overload_ = rest.substr(dot + 1);
      rest = rest.substr(0, dot);
    }
  } else if (auto dot = rest.rfind('.'); dot != std::string_view::npos) {
    rest.remove_prefix(dot + 1);
  }
  base_name_ = rest;
  std::string candidate(base_name_);
  if (!overload_.empty()) candidate += "_" + std::string(overload_);
  candidate_ = snake_case(candidate);
}

struct FunctionTable {
  std::shared_mutex mutex;
  std::deque<std::unique_ptr<Function>> functions;
  std::unordered_map<std::string_view, const Function*> index;

  const Function* get(std::string_view name) {
    {
      std::shared_lock lock(mutex);
      if (auto it = index.find(name); it != index.end()) return it->second;
    }
    std::string full = canonical(name);
    std::unique_lock lock(mutex);
    if (auto it = index.find(full); it != index.end()) return it->second;
    FunctionKind kind = kind_of(full);
    functions.emplace_back(new Function(std::move(full), kind));
    const Function* made = functions.back().get();
    index.emplace(made->name(), made);
    return made;
  }
};

const Function* Function::get(std::string_view name) {
  static auto* table = new FunctionTable;  // immortal: functions are compared by address for ever
  return table->get(name);
}

}  // namespace fx
