#include "fx/passes/graph_transform_observer.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/dot.h"
#include "fx/graph/node_source.h"

namespace fx {
namespace {

std::atomic<int> pass_count{0};

using Sources = std::vector<NodeSource>;

Sources* sources_of(Node& node) { return node.meta().get<Sources>("from_node"); }

// A record that a node is new, until it is known what it stands for.
bool is_plain_creation(const NodeSource& source, const std::string& pass_name) {
  return source.name.empty() && source.pass_name == pass_name &&
         source.actions == std::vector{NodeSourceAction::kCreate};
}

void record_creation(Node& node, const std::string& pass_name) {
  NodeSource source;
  source.pass_name = pass_name;
  source.actions = {NodeSourceAction::kCreate};
  if (Sources* sources = sources_of(node))
    sources->push_back(std::move(source));
  else
    node.meta().set("from_node", Sources{std::move(source)});
}

void record_replacement(Node& old, Node& node, const std::string& pass_name, bool is_new) {
  Sources* known = sources_of(node);
  Sources sources = known ? *known : Sources();
  // Once, not for each user.
  if (std::ranges::any_of(sources, [&](const NodeSource& s) { return s.name == old.name(); }))
    return;
  std::erase_if(sources, [&](const NodeSource& s) { return is_plain_creation(s, pass_name); });
  std::vector<NodeSourceAction> actions{NodeSourceAction::kReplace};
  if (is_new) actions.push_back(NodeSourceAction::kCreate);
  sources.emplace_back(old, pass_name, std::move(actions));
  node.meta().set("from_node", std::move(sources));
}

void write_picture(const Graph& graph, const std::set<std::string>& marked,
                   const std::string& title, const std::string& path) {
  DotOptions options{.title = title};
  options.color = [&](const Node& node) {
    return std::string(marked.contains(std::string(node.name())) ? "yellow" : "grey");
  };
  options.skip = [](const Node& node) { return node.op() == Opcode::kGetAttr; };
  std::ofstream out(path);
  out << to_dot(graph, options);
  if (!out.flush())
    throw ImportError(ErrorCode::kWriteFailed, "cannot write the picture " + str_repr(path));
}

}  // namespace

GraphTransformObserver::GraphTransformObserver(GraphModule& module, std::string pass_name,
                                               GraphTransformObserverOptions options)
    : module_(module), options_(std::move(options)), state_(std::make_shared<State>()) {
  state_->pass_name = std::move(pass_name);
  if (!options_.log_folder.empty()) {
    number_ = ++pass_count;
    input_ = module.graph().clone();
  }
  Graph& graph = module.graph();
  hooks_.emplace_back(register_create_node_hook(graph, [state = state_](Node& node) {
    if (!state->active) return;
    state->created.emplace(node.name());
    record_creation(node, state->pass_name);
  }));
  hooks_.emplace_back(register_erase_node_hook(graph, [state = state_](Node& node) {
    if (state->active) state->erased.emplace(node.name());
  }));
  hooks_.emplace_back(register_replace_node_hook(
      graph, [state = state_](Node& old, std::string_view replacement, Node&) {
        if (!state->active) return;
        Node* node = old.graph().find_node(replacement);
        if (node && node != &old)
          record_replacement(old, *node, state->pass_name,
                             state->created.contains(std::string(replacement)));
      }));
}

GraphTransformObserver::~GraphTransformObserver() {
  try {
    finish();
  } catch (const std::exception&) {
    // Pictures are no reason to end the program.
  }
}

void GraphTransformObserver::finish() {
  if (!state_->active) return;
  state_->active = false;
  hooks_.clear();
  if (!input_ || (state_->created.empty() && state_->erased.empty())) return;
  const std::string& name = state_->pass_name;
  const std::string prefix = options_.log_folder + "/pass_" + std::to_string(number_) + "_" + name;
  write_picture(*input_, state_->erased, name, prefix + "_input_graph.dot");
  write_picture(module_.graph(), state_->created, name, prefix + "_output_graph.dot");
}

int GraphTransformObserver::get_current_pass_count() noexcept { return pass_count; }

}  // namespace fx
