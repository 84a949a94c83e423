#include "fx/graph/module_types.h"

#include <torch/nn/modules.h>

#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "fx/graph/graph_module.h"
#include "fx/graph/module_call.h"

namespace fx {
namespace {

enum class OwnEffect { kNone, kStatistics, kRandomInTraining, kRandom };

bool tracks_statistics(const torch::nn::Module& module) {
  for (const auto& buffer : module.named_buffers(/*recurse=*/false))
    if (buffer.key() == "running_mean" && buffer.value().defined()) return true;
  return false;
}

// The module's own effect; effects of children are asked one by one.
bool is_impure_now(const torch::nn::Module& module, OwnEffect own, bool impure_random) {
  switch (own) {
    case OwnEffect::kNone:
      break;
    case OwnEffect::kStatistics:
      if (module.is_training() && tracks_statistics(module)) return true;
      break;
    case OwnEffect::kRandomInTraining:
      if (module.is_training() && impure_random) return true;
      break;
    case OwnEffect::kRandom:
      if (impure_random) return true;
      break;
  }
  for (const auto& child : module.children()) {
    const ModuleType* type = find_module_type(*child);
    if (!type || !type->is_impure || type->is_impure(*child, impure_random)) return true;
  }
  return false;
}

template <typename Impl>
ModuleType builtin_type(const char* short_name, OwnEffect own, const char* names) {
  ModuleType type;
  type.short_name = short_name;
  type.name = std::string("torch.nn.") + short_name;
  type.is_leaf = true;
  set_forward(type, &Impl::forward, names);
  if constexpr (requires(const Impl& m) { bool(m.options.inplace()); })
    type.works_in_place = [](const torch::nn::Module& module) {
      const auto* impl = dynamic_cast<const Impl*>(&module);
      return impl && impl->options.inplace();
    };
  type.is_impure = [own, in_place = type.works_in_place](const torch::nn::Module& module,
                                                         bool impure_random) {
    return (in_place && in_place(module)) || is_impure_now(module, own, impure_random);
  };
  return type;
}

ModuleType container_type(const char* short_name) {
  ModuleType type;
  type.short_name = short_name;
  type.name = std::string("torch.nn.") + short_name;
  type.is_impure = [](const torch::nn::Module& module, bool impure_random) {
    return is_impure_now(module, OwnEffect::kNone, impure_random);
  };
  return type;
}

// Readers take no lock: they see an immutable snapshot. Entries and replaced snapshots are kept, so
// that pointers to them stay valid; registering is rare.
class TypeTable {
 public:
  TypeTable() {
    snapshots_.push_back(std::make_unique<Map>());
#define FX_NN_MODULE(Class, own, names) \
  add(typeid(torch::nn::Class##Impl),   \
      builtin_type<torch::nn::Class##Impl>(#Class, OwnEffect::own, names));
#include "fx/graph/module_types.def"
#undef FX_NN_MODULE
    ModuleType sequential = container_type("Sequential");
    sequential.call = [](torch::nn::Module& module, Values args, KwValues kwargs) {
      for (const auto& child : module.children())
        args = {call_module(*child, std::move(args), std::exchange(kwargs, {}))};
      return args.empty() ? Value() : std::move(args[0]);
    };
    add(typeid(torch::nn::SequentialImpl), std::move(sequential));
    add(typeid(torch::nn::ModuleListImpl), container_type("ModuleList"));
    add(typeid(torch::nn::ModuleDictImpl), container_type("ModuleDict"));
    // Intermediate modules of GraphModule paths: no forward, no effect of their own.
    add(typeid(torch::nn::Module), container_type("Module"));
  }

  const ModuleType* find(std::type_index index) const {
    const Map& map = *current_.load(std::memory_order_acquire);
    auto found = map.find(index);
    return found == map.end() ? nullptr : found->second;
  }

  void replace(std::type_index index, ModuleType type) {
    std::lock_guard lock(mutex_);
    snapshots_.push_back(std::make_unique<Map>(*current_.load(std::memory_order_relaxed)));
    add(index, std::move(type));
  }

 private:
  using Map = std::unordered_map<std::type_index, const ModuleType*>;

  // Into the newest snapshot, which nobody reads yet, and publishes it.
  void add(std::type_index index, ModuleType type) {
    entries_.push_back(std::make_unique<const ModuleType>(std::move(type)));
    (*snapshots_.back())[index] = entries_.back().get();
    current_.store(snapshots_.back().get(), std::memory_order_release);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<const ModuleType>> entries_;
  std::vector<std::unique_ptr<Map>> snapshots_;
  std::atomic<const Map*> current_{nullptr};
};

TypeTable& table() {
  static auto* instance = new TypeTable;
  return *instance;
}

}  // namespace

const ModuleType* find_module_type(const torch::nn::Module& module) {
  return table().find(typeid(module));
}

void register_module_type(std::type_index type, ModuleType entry) {
  table().replace(type, std::move(entry));
}

std::string module_type_name(const torch::nn::Module& module) {
  if (const ModuleType* type = find_module_type(module)) return type->name;
  if (const auto* graph_module = dynamic_cast<const GraphModule*>(&module))
    return graph_module->class_name();
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(typeid(module).name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? demangled.get() : typeid(module).name();
  if (name.ends_with("Impl")) name.resize(name.size() - 4);
  for (std::size_t at; (at = name.find("::")) != std::string::npos;) name.replace(at, 2, ".");
  return name;
}

Value call_module(torch::nn::Module& module, Values args, KwValues kwargs) {
  if (auto* graph_module = dynamic_cast<GraphModule*>(&module))
    return graph_module->forward(std::move(args), std::move(kwargs));
  const ModuleType* type = find_module_type(module);
  if (!type || !type->call)
    throw GraphError(ErrorCode::kUnknownModuleType, "cannot call a module of class " +
                                                        module_type_name(module) +
                                                        ": its forward is not known at run time");
  return type->call(module, std::move(args), std::move(kwargs));
}

std::string call_problem(std::string_view type_name, const std::vector<ModuleParameter>& parameters,
                         std::size_t num_args, const std::vector<Symbol>& keywords) {
  std::string takes =
      std::to_string(parameters.size()) + (parameters.size() == 1 ? " argument (" : " arguments (");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    takes += (i ? ", " : "") + (parameters[i].name.empty() ? "?" : parameters[i].name);
  takes += ")";
  const std::string forward = std::string(type_name) + ".forward() ";
  const std::string found = ", found " + std::to_string(num_args + keywords.size());
  if (num_args > parameters.size()) return forward + "takes " + takes + found;
  std::vector<bool> given(parameters.size());
  std::fill_n(given.begin(), num_args, true);
  for (const Symbol keyword : keywords) {
    const auto at = std::ranges::find(parameters, keyword.str(), &ModuleParameter::name);
    if (at == parameters.end())
      return forward + "has no argument " + str_repr(keyword.str()) + ", it takes " + takes;
    const auto index = static_cast<std::size_t>(at - parameters.begin());
    if (given[index])
      return forward + "got multiple values for argument " + str_repr(keyword.str());
    given[index] = true;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].required && !given[i])
      return forward + "misses argument " + str_repr(parameters[i].name) + ": it takes " + takes +
             found;
  return {};
}

namespace detail {

std::vector<ModuleParameter> parse_parameters(std::string_view names, std::size_t count) {
  std::vector<ModuleParameter> parameters(count, ModuleParameter{.name = {}, .required = false});
  for (ModuleParameter& parameter : parameters) {
    if (names.empty()) break;
    std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    parameter.required = !name.ends_with('?');
    if (!parameter.required) name.remove_suffix(1);
    parameter.name = name;
  }
  return parameters;
}

std::vector<std::optional<Value>> arrange_arguments(std::string_view type_name,
                                                    const std::vector<ModuleParameter>& parameters,
                                                    Values args, KwValues kwargs) {
  // The common call by position needs no second look.
  const bool complete = kwargs.empty() && args.size() == parameters.size();
  if (!complete) {
    std::vector<Symbol> keywords;
    for (const KwValue& kwarg : kwargs) keywords.push_back(kwarg.key);
    const std::string problem = call_problem(type_name, parameters, args.size(), keywords);
    if (!problem.empty()) throw RunError(ErrorCode::kNoMatchingOverload, problem);
  }
  std::vector<std::optional<Value>> values(parameters.size());
  for (std::size_t i = 0; i < args.size(); ++i) values[i] = std::move(args[i]);
  for (KwValue& kwarg : kwargs) {
    const auto at = std::ranges::find(parameters, kwarg.key.str(), &ModuleParameter::name);
    values[static_cast<std::size_t>(at - parameters.begin())] = std::move(kwarg.value);
  }
  return values;
}

}  // namespace detail
}  // namespace fx
