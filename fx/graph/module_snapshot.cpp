#include "fx/graph/module_snapshot.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/graph/namespace.h"

namespace fx {

// --- graph
// -----------------------------------------------------------------------------------------

GraphSnapshot::GraphSnapshot(Graph& graph, Keep keep)
    : graph_(&graph),
      keep_(keep),
      version_(graph.version_),
      insert_point_(graph.insert_point_),
      insert_after_(graph.insert_after_) {
  nodes_.reserve(graph.size());
  args_.reserve(2 * graph.size());
  for (Node& node : graph.nodes()) {
    if (keep == Keep::kForRestore) {
      if (node.meta_) metas_.emplace_back(nodes_.size(), *node.meta_);
      users_.insert(users_.end(), node.users().begin(), node.users().end());
    }
    nodes_.push_back({&node, node.name_, node.target_, node.type_,
                      static_cast<std::uint32_t>(node.num_args()),
                      static_cast<std::uint32_t>(node.kwargs_.size()), node.num_users_, node.op_});
    args_.insert(args_.end(), node.args().begin(), node.args().end());
    kwargs_.insert(kwargs_.end(), node.kwargs_.begin(), node.kwargs_.end());
  }
}

bool GraphSnapshot::differs() const {
  if (graph_->version_ == version_) return false;
  if (graph_->size() != nodes_.size()) return true;
  auto args = args_.begin();
  auto kwargs = kwargs_.begin();
  auto state = nodes_.begin();
  for (const Node& node : graph_->nodes()) {
    if (state->node != &node || state->name != node.name_ || state->op != node.op_ ||
        !(state->target == node.target_) || !(state->type == node.type_) ||
        state->num_args != node.num_args() || state->num_kwargs != node.kwargs_.size())
      return true;
    if (!std::equal(node.args().begin(), node.args().end(), args) ||
        !std::equal(node.kwargs_.begin(), node.kwargs_.end(), kwargs))
      return true;
    args += state->num_args;
    kwargs += state->num_kwargs;
    ++state;
  }
  return false;
}

void GraphSnapshot::restore() {
  FX_ASSERT(keep_ == Keep::kForRestore, "this snapshot was made for comparison only");
  Graph& graph = *graph_;
  // 1. Take everything apart that is in the graph now.
  for (Node* node : graph.nodes().to_vector()) {
    node->unlink_inputs();
    node->args_.clear();
    node->kwargs_.clear();
    if (node->name_->owner == node) node->name_->owner = nullptr;
    node->erased_ = true;
  }
  graph.root_->prev_ = graph.root_->next_ = graph.root_;
  graph.size_ = 0;
  // 2. Nodes in their old order, with what they were.
  auto args = args_.begin();
  auto kwargs = kwargs_.begin();
  for (const NodeState& state : nodes_) {
    Node& node = *state.node;
    node.erased_ = false;
    node.op_ = state.op;
    node.target_ = state.target;
    node.type_ = state.type;
    node.name_ = state.name;
    node.name_->owner = &node;
    node.meta_.reset();
    graph.insert_before(*graph.root_, node);
    node.args_.assign(std::span<const Argument>(args, args + state.num_args));
    node.kwargs_.assign(kwargs, kwargs + state.num_kwargs);
    args += state.num_args;
    kwargs += state.num_kwargs;
  }
  for (const auto& [index, meta] : metas_) nodes_[index].node->meta_ = std::make_unique<Meta>(meta);
  // 3. Edges, then the users of each node in their old order. Users in other graphs (a broken
  // graph) have kept their edges and come first.
  for (const NodeState& state : nodes_) state.node->link_inputs();
  auto users = users_.begin();
  for (const NodeState& state : nodes_) {
    state.node->order_users({users, users + state.num_users});
    users += state.num_users;
  }
  graph.insert_point_ = insert_point_;
  graph.insert_after_ = insert_after_;
  ++graph.version_;
}

// --- module
// ----------------------------------------------------------------------------------------

namespace {

template <typename T>
bool same_entries(const torch::OrderedDict<std::string, T>& a,
                  const torch::OrderedDict<std::string, T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].key() != b[i].key()) return false;
    if constexpr (std::is_same_v<T, at::Tensor>) {
      if (!a[i].value().is_same(b[i].value())) return false;
    } else {
      if (a[i].value() != b[i].value()) return false;
    }
  }
  return true;
}

bool same_constants(const std::map<std::string, at::Tensor, std::less<>>& a,
                    const std::map<std::string, at::Tensor, std::less<>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.is_same(y.second);
  });
}

}  // namespace

ModuleSnapshot::ModuleSnapshot(GraphModule& module, Keep keep) : keep_(keep) {
  add(module, nullptr);
}

void ModuleSnapshot::add(torch::nn::Module& module, std::shared_ptr<torch::nn::Module> keep_alive) {
  if (!seen_.insert(&module).second) return;
  modules_.push_back({std::move(keep_alive), &module, detail::parameters(module),
                      detail::buffers(module), detail::children(module)});
  if (auto* graph_module = dynamic_cast<GraphModule*>(&module)) {
    GraphModuleState state{graph_module,
                           graph_module->graph_,
                           std::nullopt,
                           graph_module->class_name_,
                           graph_module->executable_,
                           graph_module->needs_recompile(),
                           graph_module->build_waits_,
                           graph_module->constants_,
                           graph_module->non_persistent_,
                           graph_module->in_spec_,
                           graph_module->out_spec_,
                           {}};
    if (keep_ == Keep::kForRestore) state.meta = graph_module->meta_;
    state.content.emplace(*state.graph, keep_);
    graph_modules_.push_back(std::move(state));
  }
  for (const auto& child : detail::children(module))
    if (child.value()) add(*child.value(), child.value());
}

bool ModuleSnapshot::differs() const {
  for (const ModuleState& state : modules_)
    if (!same_entries(state.parameters, detail::parameters(*state.module)) ||
        !same_entries(state.buffers, detail::buffers(*state.module)) ||
        !same_entries(state.children, detail::children(*state.module)))
      return true;
  for (const GraphModuleState& state : graph_modules_) {
    const GraphModule& module = *state.module;
    if (module.graph_ != state.graph || state.content->differs() ||
        !same_constants(module.constants_, state.constants) ||
        module.non_persistent_ != state.non_persistent || module.in_spec_ != state.in_spec ||
        module.out_spec_ != state.out_spec)
      return true;
  }
  return false;
}

void ModuleSnapshot::restore() {
  for (const ModuleState& state : modules_) {
    detail::parameters(*state.module) = state.parameters;
    detail::buffers(*state.module) = state.buffers;
    detail::children(*state.module) = state.children;
  }
  for (GraphModuleState& state : graph_modules_) {
    GraphModule& module = *state.module;
    if (module.graph_ != state.graph) module.adopt_graph(state.graph);
    state.content->restore();
    module.class_name_ = state.class_name;
    module.executable_ = state.executable;
    module.build_waits_ = state.build_waits;
    if (!state.needs_recompile) module.compiled_version_ = state.graph->version();
    module.constants_ = state.constants;
    module.non_persistent_ = state.non_persistent;
    module.in_spec_ = state.in_spec;
    module.out_spec_ = state.out_spec;
    module.meta_ = state.meta;
  }
}

}  // namespace fx
