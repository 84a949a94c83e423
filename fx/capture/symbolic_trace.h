#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fx/base/error.h"
#include "fx/capture/proxy_tensor.h"
#include "fx/capture/sequential.h"
#include "fx/capture/signature.h"
#include "fx/capture/tracer.h"
#include "fx/graph/module_types.h"

namespace fx {
namespace detail {

/// Names for `count` inputs: the given ones, then x, y, z, w, arg4, ...
/// @throws TraceError kConcreteArgs when more names are given than there are inputs.
std::vector<std::string> default_input_names(std::size_t count, const TraceOptions& options);

/// The value fixed for input `name`, after recording that the input must equal it.
/// @throws TraceError kConcreteArgs when there is none.
const Argument& concrete_value(const TraceOptions& options, const std::string& name,
                               const Proxy& input, std::string_view type);

/// @throws TraceError kConcreteArgs for a concrete argument that names no input.
void check_concrete_args(const TraceOptions& options, const std::vector<std::string>& names);

/// Traces a GraphModule as a root: its placeholders keep names, defaults and types.
/// @throws TraceError kConcreteArgs for options that would change its inputs.
std::shared_ptr<Graph> trace_graph_module(Tracer& tracer, const GraphModule& root,
                                          const TraceOptions& options);

/// The GraphModule of a finished trace.
std::shared_ptr<GraphModule> make_graph_module(const Tracer& tracer, const torch::nn::Module& root,
                                               std::shared_ptr<Graph> graph,
                                               std::string class_name);

/// Whether input `name` is fixed to None; records that it has to be.
bool is_fixed_to_none(const TraceOptions& options, const std::string& name, const Proxy& input);

/// One leaf of an input of the traced callable: a proxy, a proxy tensor, or the concrete value.
template <typename T>
T make_input(const Proxy& proxy, const std::string& name, const TraceOptions& options) {
  if constexpr (std::is_same_v<T, Proxy>) {
    return proxy;
  } else if constexpr (std::is_same_v<T, at::Tensor> ||
                       std::is_same_v<T, std::optional<at::Tensor>>) {
    T made{};
    if (!is_fixed_to_none(options, name, proxy)) made = static_cast<at::Tensor>(proxy);
    return made;
  } else if constexpr (std::is_same_v<T, bool>) {
    return concrete_value(options, name, proxy, "bool").to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(concrete_value(options, name, proxy, "int").to_int());
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(concrete_value(options, name, proxy, "float").to_double());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return concrete_value(options, name, proxy, "str").to_string();
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    std::vector<std::int64_t> ints;
    for (const Argument& item : concrete_value(options, name, proxy, "list of ints").items())
      ints.push_back(item.to_int());
    return ints;
  } else {
    static_assert(std::is_same_v<T, Proxy>,
                  "symbolic_trace: parameters must be tensors, proxies, numbers, bools or strings");
  }
}

/// The inputs of a traced callable: one tree for each parameter, over the names of the leaves,
/// which are the placeholders.
struct InputTrees {
  std::vector<TreeSpec> trees;
  std::vector<std::string> leaves;
  bool structured = false;

  /// Adds a parameter: its leaves are name_1, name_2, ... unless it is one leaf itself.
  void add(const std::string& name, TreeSpec tree);
  /// What the GraphModule takes, as GraphModule::set_specs wants it; nothing when it is flat.
  std::optional<TreeSpec> in_spec() const;
};

/// The structure given for parameter `name`, which is a `container`.
/// @throws TraceError kConcreteArgs when there is none.
const TreeSpec& given_structure(const TraceOptions& options, const std::string& name,
                                std::string_view container);
/// @throws TraceError kConcreteArgs
void check_kind(const TreeSpec& tree, TreeSpec::Kind wanted, const std::string& name);

/// Sets what is left to set once the graph is there: defaults of inputs that are fixed to None,
/// metadata. @throws TraceError kConcreteArgs for metadata of an input that is not there.
void finish_inputs(Graph& graph, const TraceOptions& options,
                   const std::vector<std::string>& names);

template <typename T>
struct InputType {
  static constexpr bool kIsLeaf = true;
  static TreeSpec tree(const TraceOptions&, const std::string&) { return {}; }
};
template <typename... T>
struct InputType<std::tuple<T...>> {
  static constexpr bool kIsLeaf = false;
  static TreeSpec tree(const TraceOptions& options, const std::string& name) {
    TreeSpec spec;
    spec.kind = TreeSpec::Kind::kTuple;
    spec.children = {InputType<T>::tree(options, name)...};
    return spec;
  }
};
template <typename A, typename B>
struct InputType<std::pair<A, B>> : InputType<std::tuple<A, B>> {};
template <typename T>
struct InputType<std::vector<T>> {
  static constexpr bool kIsLeaf = std::is_same_v<T, std::int64_t>;
  static TreeSpec tree(const TraceOptions& options, const std::string& name) {
    if constexpr (kIsLeaf) return {};
    const TreeSpec& spec = given_structure(options, name, "std::vector");
    check_kind(spec, TreeSpec::Kind::kList, name);
    return spec;
  }
};
template <typename T>
struct InputType<std::map<std::string, T>> {
  static constexpr bool kIsLeaf = false;
  static TreeSpec tree(const TraceOptions& options, const std::string& name) {
    const TreeSpec& spec = given_structure(options, name, "std::map");
    check_kind(spec, TreeSpec::Kind::kDict, name);
    return spec;
  }
};

/// Takes the leaves of one parameter off the inputs and builds what the callable gets.
class InputBuilder {
 public:
  InputBuilder(const std::vector<Proxy>& inputs, const std::vector<std::string>& names,
               const TraceOptions& options)
      : inputs_(inputs), names_(names), options_(options) {}

  template <typename T>
  T build(const TreeSpec& tree) {
    return Builder<T>::build(*this, tree);
  }

 private:
  template <typename T>
  struct Builder {
    static T build(InputBuilder& from, const TreeSpec& tree) {
      check_kind(tree, TreeSpec::Kind::kLeaf, from.names_[from.next_]);
      const std::size_t at = from.next_++;
      return make_input<T>(from.inputs_[at], from.names_[at], from.options_);
    }
  };
  template <typename... T>
  struct Builder<std::tuple<T...>> {
    static std::tuple<T...> build(InputBuilder& from, const TreeSpec& tree) {
      return build_items(from, tree, std::index_sequence_for<T...>());
    }
    template <std::size_t... I>
    static std::tuple<T...> build_items(InputBuilder& from, const TreeSpec& tree,
                                        std::index_sequence<I...>) {
      return std::tuple<T...>{from.build<T>(tree.children.at(I))...};  // braces: in order
    }
  };
  template <typename A, typename B>
  struct Builder<std::pair<A, B>> {
    static std::pair<A, B> build(InputBuilder& from, const TreeSpec& tree) {
      A first = from.build<A>(tree.children.at(0));
      return {std::move(first), from.build<B>(tree.children.at(1))};
    }
  };
  template <typename T>
    requires(!std::is_same_v<T, std::int64_t>)
  struct Builder<std::vector<T>> {
    static std::vector<T> build(InputBuilder& from, const TreeSpec& tree) {
      check_kind(tree, TreeSpec::Kind::kList, from.names_.at(from.next_));
      std::vector<T> items;
      for (const TreeSpec& child : tree.children) items.push_back(from.build<T>(child));
      return items;
    }
  };
  template <typename T>
  struct Builder<std::map<std::string, T>> {
    static std::map<std::string, T> build(InputBuilder& from, const TreeSpec& tree) {
      check_kind(tree, TreeSpec::Kind::kDict, from.names_.at(from.next_));
      std::map<std::string, T> items;
      for (std::size_t i = 0; i < tree.children.size(); ++i)
        items.emplace(tree.keys[i], from.build<T>(tree.children[i]));
      return items;
    }
  };

  const std::vector<Proxy>& inputs_;
  const std::vector<std::string>& names_;
  const TraceOptions& options_;
  std::size_t next_ = 0;
};

/// Trees for parameters of the types Params.
template <typename Params>
InputTrees input_trees(const TraceOptions& options) {
  constexpr std::size_t kArity = std::tuple_size_v<Params>;
  const auto names = default_input_names(kArity, options);
  InputTrees trees;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (trees.add(names[I], InputType<std::tuple_element_t<I, Params>>::tree(options, names[I])), ...);
  }(std::make_index_sequence<kArity>());
  return trees;
}

template <typename Fn, typename... Args>
TraceArg invoke_traced(Fn& fn, Args&&... args) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Args...>>) {
    fn(std::forward<Args>(args)...);
    return {};
  } else {
    return TraceArg(fn(std::forward<Args>(args)...));
  }
}

template <typename Fn, typename Params, std::size_t... I>
TraceArg call_with_params(Fn& fn, const std::vector<Proxy>& inputs, const InputTrees& trees,
                          const TraceOptions& options, std::index_sequence<I...>) {
  InputBuilder builder(inputs, trees.leaves, options);
  // Lvalues: forward may take its parameters by reference.
  std::tuple<std::tuple_element_t<I, Params>...> params{
      builder.build<std::tuple_element_t<I, Params>>(trees.trees[I])...};
  return invoke_traced(fn, std::get<I>(params)...);
}

template <typename Fn, std::size_t... I>
TraceArg call_with_proxies(Fn& fn, std::vector<Proxy>& inputs, std::index_sequence<I...>) {
  return invoke_traced(fn, inputs[I]...);
}

/// Traces `fn`, whose parameter types are the tuple Params, or all proxies when that is void.
template <typename Params, typename Fn>
std::shared_ptr<Graph> trace_callable(Tracer& tracer, const torch::nn::Module& root, Fn& fn,
                                      const TraceOptions& options) {
  if constexpr (std::is_void_v<Params>) {
    constexpr std::size_t kArity = arity<Fn&, Proxy>();
    static_assert(kArity <= kMaxArity,
                  "symbolic_trace: the callable takes neither proxies nor a known signature");
    const auto names = default_input_names(kArity, options);
    check_concrete_args(options, names);
    auto graph = tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
      return call_with_proxies(fn, inputs, std::make_index_sequence<kArity>());
    });
    finish_inputs(*graph, options, names);
    return graph;
  } else {
    const InputTrees trees = input_trees<Params>(options);
    check_concrete_args(options, trees.leaves);
    auto graph = tracer.trace_with(root, trees.leaves, [&](std::vector<Proxy>& inputs) {
      return call_with_params<Fn, Params>(fn, inputs, trees, options,
                                          std::make_index_sequence<std::tuple_size_v<Params>>());
    });
    finish_inputs(*graph, options, trees.leaves);
    return graph;
  }
}

/// The in_spec for a callable with these parameters, if one of them has structure.
template <typename Params>
std::optional<TreeSpec> in_spec_of(const TraceOptions& options) {
  if constexpr (std::is_void_v<Params>)
    return std::nullopt;
  else
    return input_trees<Params>(options).in_spec();
}

template <typename T>
concept ModulePointer = requires(const T& t) {
  { *t } -> std::convertible_to<const torch::nn::Module&>;
  t.operator->();
};

}  // namespace detail

/// Runs `tracer` on a module, a (smart) pointer or holder of one, or a callable; the graph of
/// torch.fx's `Tracer.trace`. Use tracer.constants() for the tensors it met.
template <typename Root>
std::shared_ptr<Graph> trace(Tracer& tracer, Root&& root, const TraceOptions& options = {}) {
  using R = std::remove_cvref_t<Root>;
  if constexpr (std::is_same_v<R, torch::nn::SequentialImpl>) {
    // Its forward takes anything: one input, named as in Python, goes through the children.
    R& module = const_cast<R&>(root);
    const auto names = options.input_names.empty() ? std::vector<std::string>{"input"}
                                                   : detail::default_input_names(1, options);
    detail::check_concrete_args(options, names);
    return tracer.trace_with(root, names, [&](std::vector<Proxy>& inputs) {
      return detail::trace_sequential(tracer, module, inputs[0]);
    });
  } else if constexpr (std::derived_from<R, GraphModule>) {
    return detail::trace_graph_module(tracer, root, options);
  } else if constexpr (detail::ModuleClass<R>) {
    R& module = const_cast<R&>(root);
    auto forward = [&module](auto&&... args) -> decltype(module.forward(
                                                 std::forward<decltype(args)>(args)...)) {
      return module.forward(std::forward<decltype(args)>(args)...);
    };
    return detail::trace_callable<typename detail::ForwardSignature<R>::Params>(tracer, root,
                                                                                forward, options);
  } else if constexpr (detail::ModulePointer<R>) {
    return trace(tracer, *root, options);
  } else {
    static const torch::nn::Module kNoModule;
    return detail::trace_callable<typename detail::CallableSignature<std::decay_t<Root>>::Params>(
        tracer, kNoModule, root, options);
  }
}

/// Traces `function`, a callable or a member function of `root`, in the attribute space of a
/// module: other methods than forward (torch.fx's traced_func_name), or code around a module.
template <typename Module, typename Function>
std::shared_ptr<Graph> trace_method(Tracer& tracer, const Module& root, Function function,
                                    const TraceOptions& options = {}) {
  if constexpr (std::is_member_function_pointer_v<Function>) {
    auto& module = const_cast<Module&>(root);
    auto call = [&module, function](auto&&... args) -> decltype((module.*function)(
                                                        std::forward<decltype(args)>(args)...)) {
      return (module.*function)(std::forward<decltype(args)>(args)...);
    };
    return detail::trace_callable<typename detail::MemberSignature<Function>::Params>(
        tracer, root, call, options);
  } else {
    return detail::trace_callable<typename detail::CallableSignature<Function>::Params>(
        tracer, root, function, options);
  }
}

/// Traces with an own tracer and gives a GraphModule that shares the root's state.
template <typename Root>
std::shared_ptr<GraphModule> symbolic_trace(Tracer& tracer, Root&& root,
                                            const TraceOptions& options = {}) {
  using R = std::remove_cvref_t<Root>;
  if constexpr (!detail::ModuleClass<R> && detail::ModulePointer<R>) {
    return symbolic_trace(tracer, *root, options);
  } else {
    auto graph = trace(tracer, root, options);
    std::shared_ptr<GraphModule> made;
    if constexpr (std::derived_from<R, GraphModule>) {
      made = detail::make_graph_module(
          tracer, root, std::move(graph),
          options.class_name.empty() ? root.class_name() : options.class_name);
      made->set_specs(root.in_spec(), root.out_spec());
    } else if constexpr (detail::ModuleClass<R>) {
      made = detail::make_graph_module(
          tracer, root, std::move(graph),
          options.class_name.empty() ? module_type_name(root) : options.class_name);
      made->set_specs(detail::in_spec_of<typename detail::ForwardSignature<R>::Params>(options),
                      std::nullopt);
    } else {
      static const torch::nn::Module kNoModule;
      made = detail::make_graph_module(
          tracer, kNoModule, std::move(graph),
          options.class_name.empty() ? "GraphModule" : options.class_name);
      made->set_specs(
          detail::in_spec_of<typename detail::CallableSignature<std::decay_t<Root>>::Params>(
              options),
          std::nullopt);
    }
    return made;
  }
}

/// Captures a program as a graph by running it once on proxies (torch.fx.symbolic_trace).
///
/// `root` is a torch::nn::Module whose forward takes `auto`, fx::Proxy or at::Tensor parameters, a
/// holder or pointer of one, or any callable. Nothing is computed and no input is needed, so the
/// graph holds for every shape. Generic code (`auto forward(auto x)`) records Python's operators
/// and torch functions; code on at::Tensor records ATen operators. Modules held by fx::nn holders
/// become call_module nodes.
/// @throws TraceError for what proxies cannot answer, with the node and the way out.
template <typename Root>
  requires(!std::derived_from<std::remove_cvref_t<Root>, Tracer>)
std::shared_ptr<GraphModule> symbolic_trace(Root&& root, const TraceOptions& options = {}) {
  Tracer tracer;
  return symbolic_trace(tracer, std::forward<Root>(root), options);
}

}  // namespace fx
