#include "fx/io/saved_classes.h"

#include <torch/nn/modules.h>

#include <typeindex>
#include <unordered_map>

#include "fx/graph/module_access.h"
#include "fx/graph/module_types.h"
#include "fx/io/module_options.h"
#include "fx/io/shown.h"

namespace fx::io {
namespace {

namespace nn = torch::nn;
using ModulePtr = std::shared_ptr<nn::Module>;

// Some module of the class; its options are replaced.
template <typename Impl>
std::shared_ptr<Impl> any_module() {
  using Int = std::int64_t;
  using Ints = std::vector<std::int64_t>;
  if constexpr (std::is_default_constructible_v<Impl>)
    return std::make_shared<Impl>();
  else if constexpr (std::is_constructible_v<Impl, Int>)
    return std::make_shared<Impl>(Int{1});
  else if constexpr (std::is_constructible_v<Impl, Int, Int>)
    return std::make_shared<Impl>(Int{1}, Int{1});
  else if constexpr (std::is_constructible_v<Impl, Int, Int, Int>)
    return std::make_shared<Impl>(Int{1}, Int{1}, Int{1});
  else if constexpr (std::is_constructible_v<Impl, Ints>)
    return std::make_shared<Impl>(Ints{1});
  else
    return std::make_shared<Impl>(Int{1}, Ints{1});
}

// Sets to one what decides on the size of parameters and nothing else. What decides on their number
// or is needed to set the module up stays, as far as the tensors of the file bear it out.
template <typename Options>
void shrink(Options& options, const JsonValue& json, const StateSize& state) {
  if constexpr (requires { options.in_features(); }) options.in_features(1);
  if constexpr (requires { options.in1_features(); }) options.in1_features(1).in2_features(1);
  if constexpr (requires { options.out_features(); }) options.out_features(1);
  if constexpr (requires { options.num_embeddings(); })
    options.num_embeddings(1).embedding_dim(1).padding_idx(std::nullopt);
  if constexpr (requires { options.num_features(); }) options.num_features(1);
  if constexpr (requires { options.num_channels(); }) options.num_channels(1).num_groups(1);
  if constexpr (requires { options.normalized_shape(); }) options.normalized_shape({1});
  if constexpr (requires { options.num_parameters(); }) options.num_parameters(1);
  if constexpr (requires { options.in_channels(); }) {
    options.in_channels(1).out_channels(1).groups(1);
    std::int64_t elements = 1;
    for (const std::int64_t size : *options.kernel_size())
      if (size < 0 || __builtin_mul_overflow(elements, size, &elements) ||
          elements > state.elements)
        json.fail("the kernel is larger than the weight");
  }
  if constexpr (requires { options.hidden_size(); }) {
    options.input_size(1).hidden_size(2);
    if constexpr (requires { options.proj_size(); })
      if (options.proj_size() != 0) options.proj_size(1);
    if constexpr (requires { options.num_layers(); })
      if (options.num_layers() < 1 || options.num_layers() > state.tensors)
        json.fail("num_layers does not fit the parameters");
  }
  if constexpr (requires { options.embed_dim(); }) {
    const bool same =
        options.kdim() == options.embed_dim() && options.vdim() == options.embed_dim();
    options.embed_dim(1).num_heads(1).kdim(same ? 1 : 2).vdim(1);
  }
}

// What classes keep apart from their options.
template <typename Impl>
void derive(Impl& module, const JsonValue& json) {
  if constexpr (requires { module.options_base.input_size(); }) {
    auto& base = module.options_base;
    const auto& options = module.options;
    base.input_size(options.input_size()).hidden_size(options.hidden_size()).bias(options.bias());
    if constexpr (requires { base.num_layers(); })
      base.num_layers(options.num_layers())
          .batch_first(options.batch_first())
          .dropout(options.dropout())
          .bidirectional(options.bidirectional());
    if constexpr (requires { options.proj_size(); }) base.proj_size(options.proj_size());
    if constexpr (requires {
                    base.mode();
                    options.nonlinearity();
                  }) {
      if (std::holds_alternative<torch::enumtype::kReLU>(options.nonlinearity()))
        base.mode(torch::kRNN_RELU);
      else
        base.mode(torch::kRNN_TANH);
    }
  }
  if constexpr (requires { module.head_dim; }) {
    const auto& options = module.options;
    if (options.num_heads() < 1 || options.embed_dim() % options.num_heads() != 0)
      json.fail("embed_dim is no multiple of num_heads");
    module.head_dim = options.embed_dim() / options.num_heads();
    module.out_proj->options.in_features(options.embed_dim()).out_features(options.embed_dim());
  }
}

// reset() leaves tensors alone that the options do without.
template <typename Impl>
void forget_tensors(Impl& module) {
  detail::parameters(module).clear();
  detail::buffers(module).clear();
  detail::children(module).clear();
#define FORGET(member) \
  if constexpr (requires { module.member = at::Tensor(); }) module.member = at::Tensor();
  FORGET(weight)
  FORGET(bias)
  FORGET(running_mean)
  FORGET(running_var)
  FORGET(num_batches_tracked)
  FORGET(bias_ih)
  FORGET(bias_hh)
  FORGET(in_proj_weight)
  FORGET(in_proj_bias)
  FORGET(bias_k)
  FORGET(bias_v)
  FORGET(q_proj_weight)
  FORGET(k_proj_weight)
  FORGET(v_proj_weight)
#undef FORGET
}

// Overloads for each class of the table.
#define OPTION(name) AS(name, name)
#define AS(python, cpp) read_option(json, #cpp, module.options.cpp());
#define FX_PYTHON_MODULE(Class, options)                                       \
  [[maybe_unused]] void read_options([[maybe_unused]] nn::Class##Impl& module, \
                                     [[maybe_unused]] const JsonValue& json) { \
    options                                                                    \
  }
#include "fx/graph/module_python_types.def"
#undef FX_PYTHON_MODULE
#undef AS
#define AS(python, cpp) \
  json.key(#cpp);       \
  write_option(json, module.options.cpp());
#define FX_PYTHON_MODULE(Class, options)                             \
  void write_options([[maybe_unused]] const nn::Class##Impl& module, \
                     [[maybe_unused]] JsonWriter& json) {            \
    options                                                          \
  }
#include "fx/graph/module_python_types.def"
#undef FX_PYTHON_MODULE
#undef AS
#undef OPTION

template <typename Impl>
void write_class(const nn::Module& module, JsonWriter& json) {
  json.begin_object();
  write_options(dynamic_cast<const Impl&>(module), json);
  json.end_object();
}

template <typename Impl>
ModulePtr make_class(const JsonValue& json, const StateSize& state) {
  const auto module = any_module<Impl>();
  if constexpr (requires { module->options; }) {
    read_options(*module, json);
    const auto options = module->options;
    shrink(module->options, json, state);
    derive(*module, json);
    forget_tensors(*module);
    module->reset();
    module->options = options;
    derive(*module, json);
  }
  return module;
}

using Append = void (*)(nn::SequentialImpl& to, const std::string& name, const ModulePtr& module);

template <typename Impl>
void append_class(nn::SequentialImpl& to, const std::string& name, const ModulePtr& module) {
  to.push_back(name, nn::AnyModule(std::dynamic_pointer_cast<Impl>(module)));
}

class Classes {
 public:
  Classes() {
#define FX_PYTHON_MODULE(Class, options) add<nn::Class##Impl>("torch.nn." #Class);
#include "fx/graph/module_python_types.def"
#undef FX_PYTHON_MODULE
    append_.emplace(typeid(GraphModule), &append_class<GraphModule>);
  }

  const SavedClass* find(std::type_index type) const {
    const auto found = by_type_.find(type);
    return found == by_type_.end() ? nullptr : &found->second;
  }
  const SavedClass* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  Append find_append(const nn::Module& module) const {
    const auto found = append_.find(typeid(module));
    return found == append_.end() ? nullptr : found->second;
  }

 private:
  template <typename Impl>
  void add(const char* name) {
    const auto [entry, added] =
        by_type_.emplace(typeid(Impl), SavedClass{name, &write_class<Impl>, &make_class<Impl>});
    by_name_.emplace(name, &entry->second);
    append_.emplace(typeid(Impl), &append_class<Impl>);
  }

  std::unordered_map<std::type_index, SavedClass> by_type_;
  std::unordered_map<std::string_view, const SavedClass*> by_name_;
  std::unordered_map<std::type_index, Append> append_;
};

const Classes& classes() {
  static const auto* instance = new Classes;
  return *instance;
}

}  // namespace

const SavedClass* find_saved_class(const nn::Module& module) {
  return classes().find(std::type_index(typeid(module)));
}

const SavedClass* find_saved_class(std::string_view name) { return classes().find(name); }

bool is_saved_container(const nn::Module& module) {
  const auto& type = typeid(module);
  return type == typeid(nn::Module) || type == typeid(nn::SequentialImpl) ||
         type == typeid(nn::ModuleListImpl) || type == typeid(nn::ModuleDictImpl);
}

std::string sequential_problem(const nn::Module& entry) {
  if (classes().find_append(entry)) return {};
  return "a Sequential in a file holds modules of torch.nn and graphs, and here a " +
         module_type_name(entry);
}

ModulePtr make_saved_container(std::string_view name, const SavedChildren& children,
                               std::string& problem) {
  if (name == "torch.nn.Module") {
    auto made = std::make_shared<nn::Module>();
    for (const auto& [key, child] : children) made->register_module(key, child);
    return made;
  }
  if (name == "torch.nn.Sequential") {
    auto made = std::make_shared<nn::SequentialImpl>();
    for (const auto& [key, child] : children) {
      problem = sequential_problem(*child);
      if (!problem.empty()) return made;
      classes().find_append (*child)(*made, key, child);
    }
    return made;
  }
  if (name == "torch.nn.ModuleList") {
    auto made = std::make_shared<nn::ModuleListImpl>();
    for (const auto& [key, child] : children) {
      if (key != std::to_string(made->size()))
        problem = "the entries of a ModuleList are numbered, found " + shown(key);
      made->push_back(child);
    }
    return made;
  }
  if (name != "torch.nn.ModuleDict") return nullptr;
  auto made = std::make_shared<nn::ModuleDictImpl>();
  made->update(children);
  return made;
}

// LibTorch's LSTM on CPUs takes the sizes of its weights on trust.
std::string lstm_problem(nn::Module& module) {
  const auto* lstm = dynamic_cast<const nn::LSTMImpl*>(&module);
  if (!lstm) return {};
  const nn::LSTMOptions& options = lstm->options;
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (options.hidden_size() > kMost || options.proj_size() > kMost)
    return "a size of the options is too large";
  const std::int64_t hidden = options.hidden_size(), directions = options.bidirectional() ? 2 : 1;
  const std::int64_t state = options.proj_size() > 0 ? options.proj_size() : hidden;
  for (const auto& item : detail::parameters(module)) {
    const std::string& name = item.key();
    std::vector<std::int64_t> wanted;
    if (name.starts_with("weight_ih"))
      wanted = {4 * hidden,
                name.starts_with("weight_ih_l0") ? options.input_size() : state * directions};
    else if (name.starts_with("weight_hh"))
      wanted = {4 * hidden, state};
    else if (name.starts_with("weight_hr"))
      wanted = {state, hidden};
    else
      wanted = {4 * hidden};
    if (item.value().sizes() != at::IntArrayRef(wanted))
      return "the sizes of " + shown(name) + " do not fit the options";
  }
  return {};
}

std::string adopt_tensors(nn::Module& to, const nn::Module& from) {
  std::string problem;
  auto adopt = [&](detail::TensorDict& mine, const detail::TensorDict& theirs, const char* what) {
    for (const auto& item : theirs)
      if (!mine.contains(item.key())) problem = std::string("no ") + what + " " + shown(item.key());
    for (auto& item : mine) {
      const at::Tensor* tensor = theirs.find(item.key());
      if (!tensor || tensor->defined() != item.value().defined()) {
        problem = std::string("the ") + what + " " + shown(item.key()) + " is " +
                  (item.value().defined() ? "missing" : "none that the options give it");
        return;
      }
      if (!tensor->defined()) continue;
      item.value().set_requires_grad(false);
      item.value().set_data(tensor->detach());
      item.value().set_requires_grad(tensor->requires_grad());
    }
  };
  adopt(detail::parameters(to), detail::parameters(from), "parameter");
  if (problem.empty()) adopt(detail::buffers(to), detail::buffers(from), "buffer");
  if (problem.empty()) problem = lstm_problem(to);
  if (detail::children(to).size() != detail::children(from).size())
    return "it has " + std::to_string(detail::children(from).size()) + " submodules, " +
           std::to_string(detail::children(to).size()) + " are wanted";
  for (auto& child : detail::children(to)) {
    const ModulePtr* other = detail::children(from).find(child.key());
    if (!problem.empty()) return problem;
    if (!other || !*other || !child.value())
      return "the submodule " + shown(child.key()) + " is missing";
    problem = adopt_tensors(*child.value(), **other);
  }
  return problem;
}

}  // namespace fx::io
