#pragma once

#include <torch/nn/module.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fx/graph/graph.h"
#include "fx/graph/input_guard.h"
#include "fx/ops/value.h"

namespace fx {

namespace detail {
class ModuleCopies;
}
class Executable;  // run/executable.h: what recompile() builds

/// How structured inputs and outputs map to the flat ones of the graph: a tree of tuples, lists,
/// dicts and named tuples over leaves (torch.utils._pytree.TreeSpec).
struct TreeSpec {
  enum class Kind : std::uint8_t { kLeaf, kNone, kTuple, kList, kDict, kNamedTuple };
  Kind kind = Kind::kLeaf;
  std::vector<std::string> keys;  ///< of a dict or named tuple
  std::string type_name;          ///< of a named tuple
  std::vector<TreeSpec> children;

  /// Number of leaves below.
  std::size_t num_leaves() const;
  friend bool operator==(const TreeSpec&, const TreeSpec&) = default;
};

/// A torch::nn::Module that runs a graph (torch.fx.GraphModule).
///
/// It owns the attributes that its graph reads: parameters, buffers, submodules and constants,
/// under the names they had in the module they come from, shared with it, not copied; so its
/// state_dict keys are those of the original. The graph may be edited at any time; calls run the
/// program of the last recompile() (construction recompiles), the Interpreter always the graph as
/// it stands.
///
/// Threads: any number may call one GraphModule that nobody edits or recompiles.
class GraphModule : public torch::nn::Module, public GraphOwner {
 public:
  /// Which attributes of the root a new GraphModule takes over.
  enum class Share : std::uint8_t {
    kReferenced,  ///< those its graph refers to, as torch.fx does
    kAll,         ///< every parameter and buffer, so that the state_dict stays what it was
  };

  /// Tensors that are no part of the root's state, by attribute path.
  using Constants = std::vector<std::pair<std::string, at::Tensor>>;

  /// Takes attributes over from `root` (shared, not cloned) and its train or eval flag, and becomes
  /// the owner of `graph`. A graph has one owner: the last GraphModule made.
  /// @throws GraphError kMissingAttribute naming node and path.
  GraphModule(const torch::nn::Module& root, std::shared_ptr<Graph> graph,
              std::string class_name = "GraphModule", Share share = Share::kReferenced,
              const Constants& constants = {});
  /// Without a root: attributes are added by set_parameter and so on before they are referred to.
  explicit GraphModule(std::shared_ptr<Graph> graph = std::make_shared<Graph>(),
                       std::string class_name = "GraphModule");
  ~GraphModule() override;

  Graph& graph() noexcept { return *graph_; }
  const Graph& graph() const noexcept { return *graph_; }
  const std::shared_ptr<Graph>& graph_ptr() const noexcept { return graph_; }
  /// Replaces the graph and recompiles.
  void set_graph(std::shared_ptr<Graph> graph);
  const std::string& class_name() const noexcept { return class_name_; }
  void set_class_name(std::string name) { class_name_ = std::move(name); }

  /// Builds the executable form of the graph; also of nested GraphModules. O(nodes). A broken graph
  /// compiles; running it fails with the node named. Edits take effect in calls only after this.
  void recompile();
  /// Whether the graph changed since the program was built, or a lazy recompile waits for a call.
  bool needs_recompile() const noexcept;
  /// Of a lazy module, recompile() only notes that there is something to build; the next call, from
  /// any thread, builds it once, of the graph as it then stands. Of use where many edits each
  /// recompile. Switching it off builds what waits. (torch.fx: _LazyGraphModule)
  void set_lazy_recompile(bool lazy);
  bool lazy_recompile() const noexcept { return lazy_recompile_; }
  /// recompile() at once, also of a lazy module. (torch.fx: force_recompile, real_recompile)
  void force_recompile();

  /// Runs the program: one value for each placeholder, in order; missing ones take their default.
  /// With in_spec, structured inputs are flattened first, and with out_spec outputs are restored.
  /// @throws RunError kMissingInput, kExtraInput, kUnknownInput, and for a failing node kNodeFailed
  ///   with the original exception nested.
  Value forward(Values inputs, KwValues kwargs = {});
  template <typename... Inputs>
    requires(!(std::is_same_v<std::decay_t<Inputs>, Values> || ...))
  Value operator()(Inputs&&... inputs) {
    return forward(Values{Value(std::forward<Inputs>(inputs))...});
  }
  Value operator()(Values inputs, KwValues kwargs = {}) {
    return forward(std::move(inputs), std::move(kwargs));
  }

  /// A deep copy that shares nothing with this module: graph, meta, parameters, buffers and
  /// submodules are copied. What was one tensor or module, or shared memory, does so in the copy;
  /// tensors of submodules with behaviour, which clone themselves, share memory only.
  /// @throws GraphError kNotCopyable for a submodule without clone().
  std::shared_ptr<GraphModule> deep_copy() const;
  /// The same for torch::nn::Module's interface.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override;

  /// torch::nn::Module's to(), which also moves the constants; of these the dtype changes only
  /// where it is a floating one. Constants are replaced, not written to: others may hold them.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;

  // --- attributes by dotted path
  // ------------------------------------------------------------------
  /// Adds or replaces; makes intermediate modules. @throws GraphError kBadName
  void set_parameter(std::string_view path, at::Tensor tensor);
  /// @param persistent false keeps the buffer out of state_dict().
  void set_buffer(std::string_view path, at::Tensor tensor, bool persistent = true);
  /// A tensor that is no part of the state (a lifted constant).
  void set_constant(std::string_view path, at::Tensor tensor);
  void set_submodule(std::string_view path, std::shared_ptr<torch::nn::Module> module);
  /// Takes the parameter, buffer, constant or submodule at `path` over from `root`, shared, not
  /// copied; as the constructor does for the attributes that nodes name.
  /// @throws GraphError kMissingAttribute, naming `node` if there is one.
  void share_attribute(const torch::nn::Module& root, std::string_view path,
                       const Node* node = nullptr);
  /// torch.fx's add_submodule: false when a path atom exists and is no module.
  bool add_submodule(std::string_view path, std::shared_ptr<torch::nn::Module> module);
  /// False when there is no module at that path.
  bool delete_submodule(std::string_view path);
  /// Deletes submodules that neither call_module nor get_attr refers to (children of used ones
  /// stay).
  void delete_all_unused_submodules();
  /// Deletes a parameter, buffer or constant of this module or of a plain container below it. False
  /// when there is none, or when it belongs to a module with behaviour of its own, which may be
  /// shared with the module this one was made from.
  bool delete_tensor(std::string_view path);
  /// Deletes the tensors and submodules that no node refers to, directly or through a called
  /// module. Whether there were any. O(nodes + attributes).
  bool delete_unused_attributes();
  /// A fresh attribute path "prefixN" that is not taken.
  std::string fresh_attribute(std::string_view prefix) const;

  /// Tensors by path that are no part of the state.
  const std::map<std::string, at::Tensor, std::less<>>& constants() const noexcept {
    return constants_;
  }
  /// The tensor at a path, or an undefined one.
  at::Tensor find_tensor(std::string_view path) const;
  /// @throws RunError kMissingAttr: "Node referenced nonexistent target a.b", up to the failing
  /// atom.
  Value fetch_attr(std::string_view path) const;
  /// The submodule at a path, or null.
  std::shared_ptr<torch::nn::Module> find_submodule(std::string_view path) const;
  /// Parameters and persistent buffers by qualified name, in registration order.
  std::vector<std::pair<std::string, at::Tensor>> state_dict() const;
  /// Copies values in; every key must be there with the same shape when `strict`.
  /// @throws GraphError kMissingAttribute listing missing and unexpected keys, RunError
  /// kShapeMismatch
  void load_state_dict(const std::vector<std::pair<std::string, at::Tensor>>& state,
                       bool strict = true);

  // --- structured inputs and outputs
  // ----------------------------------------------------------------
  const std::optional<TreeSpec>& in_spec() const noexcept { return in_spec_; }
  const std::optional<TreeSpec>& out_spec() const noexcept { return out_spec_; }
  /// in_spec is a tuple of (args tuple, kwargs dict), as torch.export writes it.
  void set_specs(std::optional<TreeSpec> in_spec, std::optional<TreeSpec> out_spec);

  /// What calls are checked against; captures set it, an edit that lifts a restriction may clear
  /// it.
  const std::vector<InputGuard>& input_guards() const noexcept { return input_guards_; }
  void set_input_guards(std::vector<InputGuard> guards) { input_guards_ = std::move(guards); }

  /// Inputs (targets) and attributes (paths) of a functional graph that the program writes. The
  /// graph gives them their new contents at its end, or returns these, so that in a call they may
  /// share memory with no other input or attribute: what reads that one would not see the write.
  /// functionalize() and the signatures of exported programs set it; calls are checked
  /// (kSharedMemory); modules made from this one keep it.
  const std::vector<std::string>& mutations() const noexcept { return mutations_; }
  void set_mutations(std::vector<std::string> names) { mutations_ = std::move(names); }

  // --- text
  // ----------------------------------------------------------------------------------------
  /// C++ source of a function that does what the graph does, on LibTorch alone.
  std::string code() const;
  /// Python source of a torch.nn.Module class whose forward is the graph, as torch.fx prints it.
  std::string python_code() const;
  /// Free data on the module; deep-copied with it.
  Meta& meta() noexcept { return meta_; }
  const Meta& meta() const noexcept { return meta_; }

  // GraphOwner
  AttrKind attr_kind(std::string_view path) const override;
  bool module_is_impure(std::string_view path, bool impure_random) const override;
  Graph* nested_graph(std::string_view path) const override;
  std::string call_problem(const Node& node) const override;

  void pretty_print(std::ostream& out) const override;

 private:
  friend class ModuleSnapshot;
  friend class detail::ModuleCopies;
  std::shared_ptr<GraphModule> copy_with(detail::ModuleCopies& copies) const;
  void adopt_graph(std::shared_ptr<Graph> graph);
  class StateSharer;
  void share_state(const torch::nn::Module& root, const Graph& graph);
  void move_constants(std::optional<torch::Device> device, std::optional<torch::Dtype> dtype,
                      bool non_blocking);
  torch::nn::Module& make_parents(std::string_view path, std::string* leaf);
  void build_waiting();

  std::shared_ptr<Graph> graph_;
  std::string class_name_;
  std::shared_ptr<const Executable> executable_;
  std::uint64_t compiled_version_ = 0;
  bool lazy_recompile_ = false;
  std::atomic<bool> build_waits_ = false;  // executable_ is of an older graph, or null
  std::mutex build_mutex_;                 // held while a waiting build is done
  std::map<std::string, at::Tensor, std::less<>> constants_;
  std::map<std::string, bool, std::less<>> non_persistent_;  // buffer paths outside the state_dict
  std::optional<TreeSpec> in_spec_;
  std::optional<TreeSpec> out_spec_;
  std::vector<InputGuard> input_guards_;
  std::vector<std::string> mutations_;
  Meta meta_;
};

/// The concrete value of an argument, as far as it is known without running the graph: a constant
/// itself, the tensor of a get_attr node; nothing for any other node.
std::optional<Value> concrete_value(const GraphModule& module, const Argument& argument);

/// A module as a value: what get_attr of a submodule gives (bodies of higher-order operators).
struct ModuleValue : torch::CustomClassHolder {
  explicit ModuleValue(std::shared_ptr<torch::nn::Module> m) : module(std::move(m)) {}
  std::shared_ptr<torch::nn::Module> module;
};

/// Flattens `value` by `spec`. @throws RunError kWrongType saying what was wanted at which path.
void flatten(const TreeSpec& spec, const Value& value, Values& leaves);
/// The inverse; takes leaves from `position` on.
Value unflatten(const TreeSpec& spec, const Values& leaves, std::size_t& position);

}  // namespace fx
