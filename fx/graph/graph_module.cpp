#include "fx/graph/graph_module.h"

#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <ostream>
#include <typeinfo>
#include <unordered_set>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/argument_value.h"
#include "fx/graph/lazy_recompile.h"
#include "fx/graph/module_access.h"
#include "fx/graph/module_copies.h"
#include "fx/graph/module_types.h"
#include "fx/graph/node_hooks.h"
#include "fx/ops/higher_order.h"

namespace fx {
namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// Calls fn(atom, is_last) for each atom of a dotted path until fn returns false.
// @throws GraphError kBadName for an empty atom.
template <typename Fn>
void for_each_atom(std::string_view path, Fn&& fn) {
  std::string_view rest = path;
  for (;;) {
    const auto dot = rest.find('.');
    const std::string_view atom = rest.substr(0, dot);
    if (atom.empty()) throw GraphError(ErrorCode::kBadName, "bad attribute path " + str_repr(path));
    const bool last = dot == std::string_view::npos;
    if (!fn(std::string(atom), last) || last) return;
    rest.remove_prefix(dot + 1);
  }
}

struct Found {
  GraphOwner::AttrKind kind = GraphOwner::AttrKind::kMissing;
  at::Tensor tensor;
  ModulePtr module;
  std::string_view missing;  // the path up to the atom that does not exist
};

// Walks from `root` down; `root` itself cannot be named.
Found find_attribute(const torch::nn::Module& root, std::string_view path) {
  using Kind = GraphOwner::AttrKind;
  Found found;
  const torch::nn::Module* at = &root;
  if (path.empty()) return found;
  std::size_t walked = 0;  // characters of the path
  for_each_atom(path, [&](const std::string& atom, bool last) {
    walked += (walked ? 1 : 0) + atom.size();
    found.missing = path.substr(0, walked);
    if (const ModulePtr* child = detail::children(*at).find(atom); child && *child) {
      if (last) {
        found.kind = Kind::kModule;
        found.module = *child;
      }
      at = child->get();
      return true;
    }
    if (!last) return false;
    if (const at::Tensor* tensor = detail::parameters(*at).find(atom)) {
      found.kind = Kind::kParameter;
      found.tensor = *tensor;
    } else if (const at::Tensor* buffer = detail::buffers(*at).find(atom)) {
      found.kind = Kind::kBuffer;
      found.tensor = *buffer;
    }
    return true;
  });
  return found;
}

}  // namespace

// --- construction
// ----------------------------------------------------------------------------------

namespace {
thread_local bool t_makes_lazy = false;
}

UseLazyRecompile::UseLazyRecompile(bool lazy) noexcept : before_(t_makes_lazy) {
  t_makes_lazy = lazy;
}
UseLazyRecompile::~UseLazyRecompile() { t_makes_lazy = before_; }
bool UseLazyRecompile::active() noexcept { return t_makes_lazy; }

GraphModule::GraphModule(std::shared_ptr<Graph> graph, std::string class_name)
    : class_name_(std::move(class_name)), lazy_recompile_(UseLazyRecompile::active()) {
  adopt_graph(std::move(graph));
  recompile();
}

GraphModule::GraphModule(const torch::nn::Module& root, std::shared_ptr<Graph> graph,
                         std::string class_name, Share share, const Constants& constants)
    : class_name_(std::move(class_name)), lazy_recompile_(UseLazyRecompile::active()) {
  FX_ASSERT(graph != nullptr, "a GraphModule needs a graph");
  for (const auto& [path, tensor] : constants) set_constant(path, tensor);
  if (share == Share::kAll) share_state(root, *graph);
  // Called modules first: they bring the attributes below them along.
  for (const Node& node : graph->nodes())
    if (node.op() == Opcode::kCallModule) share_attribute(root, node.target().str(), &node);
  for (const Node& node : graph->nodes())
    if (node.op() == Opcode::kGetAttr) share_attribute(root, node.target().str(), &node);
  if (const auto* other = dynamic_cast<const GraphModule*>(&root)) mutations_ = other->mutations_;
  detail::training(*this) = root.is_training();
  adopt_graph(std::move(graph));
  recompile();
}

GraphModule::~GraphModule() {
  if (graph_ && graph_->owner() == this) graph_->set_owner(nullptr);
}

void GraphModule::adopt_graph(std::shared_ptr<Graph> graph) {
  FX_ASSERT(graph != nullptr, "a GraphModule needs a graph");
  if (graph_ && graph_->owner() == this) graph_->set_owner(nullptr);
  graph_ = std::move(graph);
  graph_->set_owner(this);
}

void GraphModule::set_graph(std::shared_ptr<Graph> graph) {
  adopt_graph(std::move(graph));
  recompile();
}

// Copies the tree of modules as far as it holds parameters, buffers or called modules, in its
// order, so that state_dict() lists the same keys in the same order. Called modules are shared,
// whole, the others become plain ones.
class GraphModule::StateSharer {
 public:
  StateSharer(GraphModule& to, const torch::nn::Module& root, const Graph& graph)
      : to_(to), root_(dynamic_cast<const GraphModule*>(&root)) {
    for (const Node& node : graph.nodes())
      if (node.op() == Opcode::kCallModule)
        if (ModulePtr module = find_attribute(root, node.target().str()).module)
          called_.insert(module.get());
  }

  // What `from` holds goes to `made`, which is created when there is something.
  void share(const torch::nn::Module& from, torch::nn::Module*& at, ModulePtr& made) {
    auto to = [&]() -> torch::nn::Module& {
      if (!at) {
        made = std::make_shared<torch::nn::Module>();
        at = made.get();
      }
      return *at;
    };
    const std::size_t length = path_.size();
    auto enter = [&](const std::string& name) {
      if (length) path_ += '.';
      path_ += name;
      return to_.constants_.empty() || !to_.constants_.contains(path_);
    };
    for (const auto& item : detail::parameters(from)) {
      if (item.value().defined() && enter(item.key()))
        detail::assign(detail::parameters(to()), item.key(), item.value());
      path_.resize(length);
    }
    for (const auto& item : detail::buffers(from)) {
      if (item.value().defined() && enter(item.key())) {
        detail::assign(detail::buffers(to()), item.key(), item.value());
        if (root_ && root_->non_persistent_.contains(path_)) to_.non_persistent_[path_] = true;
      }
      path_.resize(length);
    }
    for (const auto& item : detail::children(from)) {
      if (item.value() && enter(item.key())) {
        ModulePtr child = called_.contains(item.value().get()) ? item.value() : nullptr;
        if (torch::nn::Module* child_at = nullptr; !child) share(*item.value(), child_at, child);
        if (child) detail::assign(detail::children(to()), item.key(), std::move(child));
      }
      path_.resize(length);
    }
  }

 private:
  GraphModule& to_;
  const GraphModule* root_;  // the same as `root`, or null
  std::unordered_set<const torch::nn::Module*> called_;
  std::string path_;
};

void GraphModule::share_state(const torch::nn::Module& root, const Graph& graph) {
  torch::nn::Module* at = this;
  ModulePtr none;
  StateSharer(*this, root, graph).share(root, at, none);
}

void GraphModule::share_attribute(const torch::nn::Module& root, std::string_view path,
                                  const Node* node) {
  if (constants_.contains(path)) return;
  const Found found = find_attribute(root, path);
  switch (found.kind) {
    case AttrKind::kModule: {
      // A plain intermediate of ours may already stand there and hold a part of it.
      if (find_submodule(path) != found.module) set_submodule(path, found.module);
      return;
    }
    case AttrKind::kParameter:
      if (!find_tensor(path).is_same(found.tensor)) set_parameter(path, found.tensor);
      return;
    case AttrKind::kBuffer: {
      const auto* other = dynamic_cast<const GraphModule*>(&root);
      const bool persistent = !other || !other->non_persistent_.contains(path);
      if (!find_tensor(path).is_same(found.tensor)) set_buffer(path, found.tensor, persistent);
      return;
    }
    case AttrKind::kConstant:
    case AttrKind::kMissing:
      break;
  }
  if (const auto* other = dynamic_cast<const GraphModule*>(&root))
    if (auto constant = other->constants_.find(path); constant != other->constants_.end())
      return set_constant(path, constant->second);
  throw GraphError(ErrorCode::kMissingAttribute,
                   (node ? "Node " + std::string(node->name()) + " referenced target "
                         : "the root has no attribute ") +
                       std::string(path) + " but that target was not provided in root!");
}

// --- attributes
// ------------------------------------------------------------------------------------

torch::nn::Module& GraphModule::make_parents(std::string_view path, std::string* leaf) {
  torch::nn::Module* at = this;
  for_each_atom(path, [&](const std::string& atom, bool last) {
    if (last) {
      *leaf = atom;
      return true;
    }
    auto& children = detail::children(*at);
    if (!children.find(atom)) children.insert(atom, std::make_shared<torch::nn::Module>());
    at = children.find(atom)->get();
    return true;
  });
  return *at;
}

void GraphModule::set_parameter(std::string_view path, at::Tensor tensor) {
  std::string leaf;
  detail::assign(detail::parameters(make_parents(path, &leaf)), leaf, std::move(tensor));
}

void GraphModule::set_buffer(std::string_view path, at::Tensor tensor, bool persistent) {
  std::string leaf;
  detail::assign(detail::buffers(make_parents(path, &leaf)), leaf, std::move(tensor));
  if (persistent)
    non_persistent_.erase(std::string(path));
  else
    non_persistent_[std::string(path)] = true;
}

void GraphModule::set_constant(std::string_view path, at::Tensor tensor) {
  for_each_atom(path, [](const std::string&, bool) { return true; });  // checks the path
  constants_[std::string(path)] = std::move(tensor);
}

void GraphModule::set_submodule(std::string_view path, ModulePtr module) {
  std::string leaf;
  detail::assign(detail::children(make_parents(path, &leaf)), leaf, std::move(module));
}

bool GraphModule::add_submodule(std::string_view path, ModulePtr module) {
  bool blocked = false;
  const torch::nn::Module* at = this;
  for_each_atom(path, [&](const std::string& atom, bool last) {
    if (detail::parameters(*at).find(atom) || detail::buffers(*at).find(atom)) blocked = true;
    const ModulePtr* child = detail::children(*at).find(atom);
    if (blocked || last || !child) return false;
    at = child->get();
    return true;
  });
  if (blocked) return false;
  set_submodule(path, std::move(module));
  return true;
}

// LibTorch's Sequential keeps its modules a second time, and is cloned by both lists: one without a
// child is another one, whose modules it shares.
static std::shared_ptr<torch::nn::Module> without_child(const torch::nn::SequentialImpl& sequence,
                                                        const std::string& name) {
  auto out = std::make_shared<torch::nn::SequentialImpl>();
  out->train(sequence.is_training());  // while it is empty: those below keep their modes
  const std::vector<std::string> names = sequence.named_children().keys();
  std::size_t i = 0;
  for (const torch::nn::AnyModule& module : sequence) {
    if (i < names.size() && names[i] != name) out->push_back(names[i], module);
    ++i;
  }
  return out;
}

bool GraphModule::delete_submodule(std::string_view path) {
  torch::nn::Module* at = this;
  ModulePtr* slot = nullptr;  // that holds `at`
  bool deleted = false;
  for_each_atom(path, [&](const std::string& atom, bool last) {
    ModulePtr* child = detail::children(*at).find(atom);
    if (!child) return false;
    if (last) {
      if (const auto* sequence = dynamic_cast<const torch::nn::SequentialImpl*>(at))
        *slot = without_child(*sequence, atom);
      else
        detail::children(*at).erase(atom);
      deleted = true;
    } else {
      slot = child;
      at = child->get();
    }
    return true;
  });
  return deleted;
}

void GraphModule::delete_all_unused_submodules() {
  std::vector<std::string> used;  // with all parents; children of called modules are kept by prefix
  std::vector<std::string> called;  // or graphs, which are the ones to say what they use
  for (const Node& node : graph_->nodes()) {
    if (node.op() != Opcode::kCallModule && node.op() != Opcode::kGetAttr) continue;
    const std::string& path = node.target().str();
    for (std::size_t dot = 0; dot != std::string::npos;) {
      dot = path.find('.', dot + 1);
      const std::string& at = used.emplace_back(path.substr(0, dot));
      const bool is_graph = dynamic_cast<const GraphModule*>(find_submodule(at).get()) != nullptr;
      if (is_graph || (dot == std::string::npos && node.op() == Opcode::kCallModule))
        called.push_back(at + ".");
    }
  }
  std::sort(used.begin(), used.end());
  std::vector<std::string> unused;
  for (const auto& item : named_modules("", /*include_self=*/false)) {
    const bool keep = std::binary_search(used.begin(), used.end(), item.key()) ||
                      std::any_of(called.begin(), called.end(), [&](const std::string& prefix) {
                        return item.key().starts_with(prefix);
                      });
    if (!keep) unused.push_back(item.key());
  }
  for (const std::string& path : unused) delete_submodule(path);
}

bool GraphModule::delete_tensor(std::string_view path) {
  if (auto constant = constants_.find(path); constant != constants_.end()) {
    constants_.erase(constant);
    return true;
  }
  torch::nn::Module* at = this;
  bool deleted = false;
  for_each_atom(path, [&](const std::string& atom, bool last) {
    if (!last) {
      ModulePtr* child = detail::children(*at).find(atom);
      if (!child || !*child || !detail::is_plain(**child)) return false;
      at = child->get();
      return true;
    }
    for (detail::TensorDict* dict : {&detail::parameters(*at), &detail::buffers(*at)})
      if (dict->find(atom)) {
        dict->erase(atom);
        deleted = true;
      }
    return true;
  });
  if (deleted) non_persistent_.erase(std::string(path));
  return deleted;
}

bool GraphModule::delete_unused_attributes() {
  const std::size_t modules_before = modules(/*include_self=*/false).size();
  delete_all_unused_submodules();
  bool deleted = modules(/*include_self=*/false).size() != modules_before;
  std::unordered_set<std::string_view> used;
  for (const Node& node : graph_->nodes())
    if (node.op() == Opcode::kCallModule || node.op() == Opcode::kGetAttr)
      used.insert(node.target().str());
  auto is_used = [&](std::string_view path) {
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos;
         dot = path.find('.', dot + 1))
      if (used.contains(path.substr(0, dot))) return true;
    return used.contains(path);
  };
  std::vector<std::string> unused;
  for (const auto& item : named_parameters())
    if (!is_used(item.key())) unused.push_back(item.key());
  for (const auto& item : named_buffers())
    if (!is_used(item.key())) unused.push_back(item.key());
  for (const auto& [path, tensor] : constants_)
    if (!is_used(path)) unused.push_back(path);
  for (const std::string& path : unused) deleted |= delete_tensor(path);
  return deleted;
}

std::string GraphModule::fresh_attribute(std::string_view prefix) const {
  for (std::size_t i = 0;; ++i) {
    std::string path = std::string(prefix) + std::to_string(i);
    if (attr_kind(path) == AttrKind::kMissing) return path;
  }
}

at::Tensor GraphModule::find_tensor(std::string_view path) const {
  if (auto constant = constants_.find(path); constant != constants_.end()) return constant->second;
  return find_attribute(*this, path).tensor;
}

ModulePtr GraphModule::find_submodule(std::string_view path) const {
  return find_attribute(*this, path).module;
}

Value GraphModule::fetch_attr(std::string_view path) const {
  if (auto constant = constants_.find(path); constant != constants_.end()) return constant->second;
  Found found = find_attribute(*this, path);
  switch (found.kind) {
    case AttrKind::kParameter:
    case AttrKind::kBuffer:
      return found.tensor;
    case AttrKind::kModule:
      return Value::make_capsule(c10::make_intrusive<ModuleValue>(std::move(found.module)));
    default:
      throw RunError(ErrorCode::kMissingAttr,
                     "Node referenced nonexistent target " +
                         std::string(found.missing.empty() ? path : found.missing));
  }
}

GraphOwner::AttrKind GraphModule::attr_kind(std::string_view path) const {
  if (constants_.contains(path)) return AttrKind::kConstant;
  return find_attribute(*this, path).kind;
}

bool GraphModule::module_is_impure(std::string_view path, bool impure_random) const {
  const ModulePtr module = find_submodule(path);
  if (!module) return true;
  if (const auto* nested = dynamic_cast<const GraphModule*>(module.get())) {
    for (const Node& node : nested->graph().nodes())
      if (!node.is_placeholder() && !node.is_output() && node.is_impure(impure_random)) return true;
    return false;
  }
  const ModuleType* type = find_module_type(*module);
  return !type || !type->is_impure || type->is_impure(*module, impure_random);
}

std::string GraphModule::call_problem(const Node& node) const {
  const ModulePtr module = find_submodule(node.target().str());
  if (!module) return {};
  std::vector<Symbol> keywords;
  for (const KwArg& kwarg : node.kwargs()) keywords.push_back(kwarg.key);
  if (const auto* nested = dynamic_cast<const GraphModule*>(module.get())) {
    if (nested->in_spec()) return {};
    std::vector<ModuleParameter> parameters;
    for (const Node* input : nested->graph().placeholders()) {
      if (input->target().str().starts_with('*')) return {};
      parameters.push_back({.name = input->target().str(), .required = input->num_args() == 0});
    }
    return fx::call_problem(nested->class_name(), parameters, node.num_args(), keywords);
  }
  const ModuleType* type = find_module_type(*module);
  if (!type || !type->parameters) return {};
  return fx::call_problem(type->name, *type->parameters, node.num_args(), keywords);
}

Graph* GraphModule::nested_graph(std::string_view path) const {
  auto* nested = dynamic_cast<GraphModule*>(find_submodule(path).get());
  return nested ? &nested->graph() : nullptr;
}

// --- state
// -----------------------------------------------------------------------------------------

std::vector<std::pair<std::string, at::Tensor>> GraphModule::state_dict() const {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (const auto& item : named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : named_buffers())
    if (!non_persistent_.contains(item.key())) state.emplace_back(item.key(), item.value());
  return state;
}

void GraphModule::load_state_dict(const std::vector<std::pair<std::string, at::Tensor>>& state,
                                  bool strict) {
  std::map<std::string, at::Tensor> mine;
  for (auto& [key, tensor] : state_dict()) mine[key] = tensor;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  std::string unexpected, wrong;
  for (const auto& [key, tensor] : state) {
    auto found = mine.find(key);
    if (found == mine.end()) {
      unexpected += " " + key;
      continue;
    }
    if (found->second.sizes() != tensor.sizes())
      wrong += " " + key + " (" + describe(found->second) + ", found " + describe(tensor) + ")";
    copies.emplace_back(found->second, tensor);
    mine.erase(found);
  }
  std::string missing;
  for (const auto& [key, tensor] : mine) missing += " " + key;
  if (!wrong.empty())
    throw RunError(ErrorCode::kShapeMismatch, "load_state_dict: shapes differ for" + wrong);
  if (strict && (!missing.empty() || !unexpected.empty()))
    throw GraphError(
        ErrorCode::kMissingAttribute,
        "load_state_dict:" + (missing.empty() ? "" : " missing keys:" + missing + ";") +
            (unexpected.empty() ? "" : " unexpected keys:" + unexpected));
  at::NoGradGuard no_grad;
  for (auto& [to, from] : copies) to.copy_(from);
}

// --- copies
// ----------------------------------------------------------------------------------------

std::shared_ptr<GraphModule> GraphModule::deep_copy() const {
  return detail::ModuleCopies().of(*this);
}

ModulePtr GraphModule::clone(const std::optional<torch::Device>& device) const {
  return detail::ModuleCopies(device).of(*this);
}

std::shared_ptr<GraphModule> GraphModule::copy_with(detail::ModuleCopies& copies) const {
  auto copy = std::make_shared<GraphModule>(std::make_shared<Graph>(), class_name_);
  copies.copy_members(*this, *copy);
  for (const auto& [path, tensor] : constants_) copy->constants_[path] = copies.of(tensor);
  copy->non_persistent_ = non_persistent_;
  copy->in_spec_ = in_spec_;
  copy->out_spec_ = out_spec_;
  copy->input_guards_ = input_guards_;
  copy->mutations_ = mutations_;
  copy->meta_ = meta_;
  // What points to this module points to the copy.
  for (const auto& [key, value] : meta_) {
    if (const auto* self = std::any_cast<GraphModule*>(&value); self && *self == this)
      copy->meta_.set(key, static_cast<GraphModule*>(copy.get()));
    if (const auto* self = std::any_cast<std::weak_ptr<GraphModule>>(&value);
        self && self->lock().get() == this)
      copy->meta_.set(key, std::weak_ptr<GraphModule>(copy));
  }
  detail::training(*copy) = is_training();
  copy->lazy_recompile_ = lazy_recompile_ || UseLazyRecompile::active();
  copy->set_graph(graph_->clone());
  detail::carry_hooks(*graph_, copy->graph());
  if (detail::NodeHooks* hooks = detail::find_hooks(copy->graph())) hooks->deep_copy(*copy);
  return copy;
}

void GraphModule::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  torch::nn::Module::to(device, dtype, non_blocking);
  move_constants(device, dtype, non_blocking);
}

void GraphModule::to(torch::Dtype dtype, bool non_blocking) {
  torch::nn::Module::to(dtype, non_blocking);
  move_constants(std::nullopt, dtype, non_blocking);
}

void GraphModule::to(torch::Device device, bool non_blocking) {
  torch::nn::Module::to(device, non_blocking);
  move_constants(device, std::nullopt, non_blocking);
}

void GraphModule::move_constants(std::optional<torch::Device> device,
                                 std::optional<torch::Dtype> dtype, bool non_blocking) {
  std::map<const c10::TensorImpl*, at::Tensor> moved;  // one constant under two paths stays one
  for (auto& [path, tensor] : constants_) {
    if (!tensor.defined()) continue;
    at::Tensor& to = moved[tensor.unsafeGetTensorImpl()];
    if (!to.defined()) {
      const bool is_cast = dtype && (tensor.is_floating_point() || tensor.is_complex());
      to = tensor.to(device.value_or(tensor.device()), is_cast ? *dtype : tensor.scalar_type(),
                     non_blocking);
    }
    tensor = to;
  }
}

void GraphModule::set_specs(std::optional<TreeSpec> in_spec, std::optional<TreeSpec> out_spec) {
  in_spec_ = std::move(in_spec);
  out_spec_ = std::move(out_spec);
}

std::optional<Value> concrete_value(const GraphModule& module, const Argument& argument) {
  if (const Node* node = argument.node_or_null()) {
    if (node->op() != Opcode::kGetAttr) return std::nullopt;
    at::Tensor tensor = module.find_tensor(node->target().str());
    return tensor.defined() ? std::optional<Value>(std::move(tensor)) : std::nullopt;
  }
  if (argument.has_nodes()) return std::nullopt;
  return value_of(argument);
}

// --- graphs as arguments of higher-order operators
// ----------------------------------------------------------------------------------------

namespace {

Value call_graph(const Value& graph, Values inputs) {
  const auto holder = graph.toCapsule();
  const auto* value = dynamic_cast<const ModuleValue*>(holder.get());
  if (value == nullptr)
    throw RunError(ErrorCode::kWrongType,
                   "a " + describe(graph) + " stands where a graph is wanted");
  return call_module(*value->module, std::move(inputs));
}

[[maybe_unused]] const bool kKnowsGraphs = (set_graph_caller(call_graph), true);

}  // namespace

void GraphModule::pretty_print(std::ostream& out) const { out << class_name_; }

}  // namespace fx
