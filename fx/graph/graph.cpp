#include "fx/graph/graph.h"

#include <algorithm>
#include <new>
#include <utility>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/namespace.h"
#include "fx/graph/node_hooks.h"
#include "fx/graph/order_list.h"

namespace fx {

// Raw storage: nodes are constructed one by one and never move.
struct Graph::Slab {
  static constexpr std::size_t kNodes = 128;
  alignas(Node) std::byte bytes[kNodes * sizeof(Node)];
  Node* at(std::size_t i) { return std::launder(reinterpret_cast<Node*>(bytes) + i); }
};

namespace {

// What torch.fx's Graph._target_to_str gives: the base of the node's name.
std::string candidate_name(const Target& target) {
  if (const Function* function = target.function()) return function->candidate_name();
  std::string_view text = target.str();
  if (text.starts_with("__") && text.ends_with("__"))
    text = text.size() > 4 ? text.substr(2, text.size() - 4) : std::string_view();
  return snake_case(text);
}

}  // namespace

Graph::Graph() : names_(std::make_unique<Namespace>()) {
  root_ = allocate();
  root_->prev_ = root_->next_ = root_;
  insert_point_ = root_;
}

Graph::~Graph() {
  auto for_each_node = [&](auto&& fn) {
    for (std::size_t s = 0; s < slabs_.size(); ++s) {
      const std::size_t used = s + 1 == slabs_.size() ? slab_used_ : Slab::kNodes;
      for (std::size_t i = 0; i < used; ++i) fn(*slabs_[s]->at(i));
    }
  };
  if (foreign_edges_) {
    // Another graph may hold arguments that point here, or edges of ours may hang in its nodes.
    for_each_node([](Node& node) { node.unlink_inputs(); });
    for_each_node([](Node& node) {
      for (Node* user : node.users().to_vector())
        user->replace_input_with(
            node, Argument("<node of a destroyed graph: " + std::string(node.name()) + ">"));
    });
  }
  for_each_node([](Node& node) { node.~Node(); });
}

Node* Graph::allocate() {
  if (slabs_.empty() || slab_used_ == Slab::kNodes) {
    slabs_.push_back(std::make_unique_for_overwrite<Slab>());
    slab_used_ = 0;
  }
  Node* node = new (slabs_.back()->bytes + sizeof(Node) * slab_used_) Node();
  ++slab_used_;
  node->graph_ = this;
  node->id_ = next_id_++;
  return node;
}

// --- the list
// --------------------------------------------------------------------------------------

namespace detail {
struct NodeLinks {
  static Node* prev(Node& node) { return node.prev_; }
  static Node* next(Node& node) { return node.next_; }
  static std::uint64_t& order(Node& node) { return node.order_; }
};
}  // namespace detail

void Graph::insert_before(Node& position, Node& node) noexcept {
  node.prev_ = position.prev_;
  node.next_ = &position;
  position.prev_->next_ = &node;
  position.prev_ = &node;
  detail::OrderList<Node, detail::NodeLinks>::label(node, *root_);
  ++size_;
}

// Leaves the node's own links alone: iterators that stand on it continue from them.
void Graph::unlink(Node& node) noexcept {
  node.prev_->next_ = node.next_;
  node.next_->prev_ = node.prev_;
  --size_;
}

std::vector<Node*> NodeRange::to_vector() const {
  std::vector<Node*> out;
  out.reserve(size_);
  for (Node& node : *this) out.push_back(&node);
  return out;
}

void Graph::check_member(const Node& node, std::string_view what) const {
  if (node.graph_ != this)
    throw GraphError(ErrorCode::kForeignNode,
                     "the " + std::string(what) + " " + std::string(node.name()) +
                         " is not in this graph, it belongs to another one");
  if (node.erased_)
    throw GraphError(ErrorCode::kErasedNode, "the " + std::string(what) + " " +
                                                 std::string(node.name()) +
                                                 " has been erased from its graph");
}

// --- building
// --------------------------------------------------------------------------------------

namespace {

void check_create(Opcode op, const Target& target) {
  if (op > Opcode::kOutput)
    throw GraphError(ErrorCode::kBadOpcode,
                     "op " + std::to_string(static_cast<int>(op)) + " is not in the legal opcodes");
  if ((op == Opcode::kCallFunction) == target.is_function()) return;
  throw GraphError(ErrorCode::kBadTarget,
                   "the target " + str_repr(target.str()) + " of a new " +
                       std::string(opcode_name(op)) + " node is a " +
                       (target.is_function() ? "function but a string is expected"
                                             : "string but a function is expected"));
}

}  // namespace

Node& Graph::create_node(Opcode op, Target target, Args args, Kwargs kwargs, std::string_view name,
                         std::string_view type) {
  check_create(op, target);
  Node::check_kwargs(kwargs);
  Node* node = allocate();
  node->op_ = op;
  node->target_ = target;
  if (!type.empty()) node->type_ = Symbol(type);
  if (!name.empty())
    node->name_ = names_->create(name);
  else if (const Function* function = target.function())
    node->name_ = names_->create(function->candidate_name());
  else
    node->name_ = names_->create(candidate_name(target));
  node->name_->owner = node;
  node->args_.assign(std::move(args));
  node->kwargs_ = std::move(kwargs);
  node->link_inputs();
  if (detail::NodeHooks* hooks = detail::find_hooks(*this)) {
    // As an erased node does, it knows the way to its neighbours without being in the list.
    Node* position = insert_after_ ? insert_point_->next_ : insert_point_;
    node->prev_ = position->prev_;
    node->next_ = position;
    try {
      hooks->create(*node);
    } catch (...) {
      node->unlink_inputs();
      node->args_.clear();
      node->kwargs_.clear();
      node->name_->owner = nullptr;
      node->erased_ = true;
      throw;
    }
  }
  insert_before(insert_after_ ? *insert_point_->next_ : *insert_point_, *node);
  ++version_;
  return *node;
}

Node& Graph::create_node(std::string_view op, std::string_view target, Args args, Kwargs kwargs,
                         std::string_view name, std::string_view type) {
  std::optional<Opcode> opcode = opcode_from_name(op);
  if (!opcode)
    throw GraphError(ErrorCode::kBadOpcode, "op " + str_repr(op) + " is not in the legal opcodes");
  Target made =
      *opcode == Opcode::kCallFunction ? Target::function(target) : Target::string(target);
  return create_node(*opcode, made, std::move(args), std::move(kwargs), name, type);
}

Node& Graph::placeholder(std::string_view name, std::string_view type) {
  return create_node(Opcode::kPlaceholder, Target::string(name), {}, {}, {}, type);
}

Node& Graph::placeholder_with_default(std::string_view name, Argument default_value,
                                      std::string_view type) {
  return create_node(Opcode::kPlaceholder, Target::string(name), {std::move(default_value)}, {}, {},
                     type);
}

Node& Graph::get_attr(std::string_view path, std::string_view type) {
  if (owner_ && owner_->attr_kind(path) == GraphOwner::AttrKind::kMissing)
    throw GraphError(ErrorCode::kMissingAttribute,
                     "get_attr of " + str_repr(path) + ": the owning module has no such attribute");
  return create_node(Opcode::kGetAttr, Target::string(path), {}, {}, {}, type);
}

Node& Graph::call_function(Target function, Args args, Kwargs kwargs, std::string_view name,
                           std::string_view type) {
  return create_node(Opcode::kCallFunction, function, std::move(args), std::move(kwargs), name,
                     type);
}

Node& Graph::call_method(std::string_view method, Args args, Kwargs kwargs, std::string_view type) {
  return create_node(Opcode::kCallMethod, Target::string(method), std::move(args),
                     std::move(kwargs), {}, type);
}

Node& Graph::call_module(std::string_view path, Args args, Kwargs kwargs, std::string_view type) {
  if (owner_ && owner_->attr_kind(path) != GraphOwner::AttrKind::kModule)
    throw GraphError(ErrorCode::kMissingAttribute, "call_module of " + str_repr(path) +
                                                       ": the owning module has no such submodule");
  return create_node(Opcode::kCallModule, Target::string(path), std::move(args), std::move(kwargs),
                     {}, type);
}

Node& Graph::output(Argument result, std::string_view type) {
  static const Target kOutputTarget = Target::string("output");
  return create_node(Opcode::kOutput, kOutputTarget, {std::move(result)}, {}, {}, type);
}

// --- insertion point
// -------------------------------------------------------------------------------

InsertPointGuard::InsertPointGuard(InsertPointGuard&& other) noexcept
    : graph_(std::exchange(other.graph_, nullptr)),
      previous_(other.previous_),
      previous_after_(other.previous_after_) {}

InsertPointGuard::~InsertPointGuard() {
  if (!graph_) return;
  while (previous_->erased_) {
    previous_ = previous_->next_;
    previous_after_ = false;
  }
  graph_->insert_point_ = previous_;
  graph_->insert_after_ = previous_after_;
}

CodeTransformerGuard::CodeTransformerGuard(CodeTransformerGuard&& other) noexcept
    : graph_(std::exchange(other.graph_, nullptr)), previous_(std::move(other.previous_)) {}

CodeTransformerGuard::~CodeTransformerGuard() {
  if (graph_) graph_->code_transformer_ = std::move(previous_);
}

CodeTransformerGuard Graph::on_generate_code(
    const std::function<CodeTransformer(CodeTransformer current)>& make_transformer) {
  CodeTransformer made = make_transformer(code_transformer_);
  return {*this, std::exchange(code_transformer_, std::move(made))};
}

std::vector<std::string> Graph::transformed_body(std::vector<std::string> lines,
                                                 CodeLanguage language) const {
  return code_transformer_ ? code_transformer_(std::move(lines), language) : lines;
}

InsertPointGuard Graph::set_insert_point(Node* node, bool after) {
  InsertPointGuard guard(*this, insert_point_, insert_after_);
  insert_point_ = node;
  insert_after_ = after;
  return guard;
}

InsertPointGuard Graph::inserting_before(Node& node) {
  check_member(node, "node to insert before,");
  return set_insert_point(&node, false);
}

InsertPointGuard Graph::inserting_after(Node& node) {
  check_member(node, "node to insert after,");
  return set_insert_point(&node, true);
}

InsertPointGuard Graph::inserting_at_start() { return set_insert_point(root_, true); }
InsertPointGuard Graph::inserting_at_end() { return set_insert_point(root_, false); }

// --- copying
// ---------------------------------------------------------------------------------------

Node& Graph::node_copy(const Node& node, const std::function<Argument(Node&)>& map) {
  Args args(node.args().begin(), node.args().end());
  Kwargs kwargs(node.kwargs().begin(), node.kwargs().end());
  if (map) {
    for (Argument& arg : args) arg = arg.map_nodes(map);
    for (KwArg& kwarg : kwargs) kwarg.value = kwarg.value.map_nodes(map);
  }
  Node& copy =
      create_node(node.op(), node.target(), std::move(args), std::move(kwargs), node.name(), {});
  copy.type_ = node.type_;
  if (node.meta_) copy.meta() = *node.meta_;
  return copy;
}

Argument Graph::graph_copy(const Graph& source, ValueMap& map) {
  auto mapped = [&](Node& input) -> Argument {
    auto found = map.find(&input);
    if (found == map.end())
      throw GraphError(ErrorCode::kCopyUnmapped, "graph_copy met a use of " +
                                                     std::string(input.name()) +
                                                     " before its definition was copied");
    return found->second;
  };
  // A list of its own: the copies would be met again when a graph is copied into itself.
  for (Node* original : source.nodes().to_vector()) {
    Node& node = *original;
    if (map.contains(&node)) continue;
    if (node.is_output()) return node.num_args() ? node.arg(0).map_nodes(mapped) : Argument();
    map.emplace(&node, node_copy(node, mapped));
  }
  return {};
}

namespace {

[[noreturn]] void throw_unmapped(const Node& input) {
  throw GraphError(ErrorCode::kCopyUnmapped, "cannot copy the graph: " + std::string(input.name()) +
                                                 " is used before it is defined");
}

}  // namespace

// Copies a node of another graph whose inputs have copies here: by id, null where there is none
// (yet).
void Graph::append_copy(const Node& node, const std::vector<Node*>& copies) {
  Node& copy = *allocate();
  auto mapped = [&](Node& input) -> Node& {
    Node* found = input.graph_ == node.graph_ ? copies[input.id_] : nullptr;
    if (!found) throw_unmapped(input);
    return *found;
  };
  auto map = [&](const Argument& argument) {
    if (Node* input = argument.node_or_null()) return Argument(mapped(*input));
    return argument.map_nodes([&](Node& input) { return Argument(mapped(input)); });
  };
  copy.op_ = node.op_;
  copy.target_ = node.target_;
  copy.type_ = node.type_;
  const std::span<const Argument> args = node.args();
  std::ranges::transform(args, copy.args_.reset(args.size()).begin(), map);
  copy.kwargs_.reserve(node.kwargs_.size());
  for (const KwArg& kwarg : node.kwargs_) copy.kwargs_.emplace_back(kwarg.key, map(kwarg.value));
  if (node.meta_) copy.meta_ = std::make_unique<Meta>(*node.meta_);
  copy.name_ = names_->create(node.name());
  copy.name_->owner = &copy;
  // Different inputs have different copies: the edges are the same, in the same order.
  if (node.num_edges_ > Node::kInlineEdges)
    copy.heap_edges_ = std::make_unique<detail::UseEdge[]>(node.num_edges_);
  copy.num_edges_ = node.num_edges_;
  for (std::size_t i = 0; i < node.num_edges_; ++i) {
    detail::UseEdge& edge = copy.edges()[i];
    edge.producer = &mapped(*node.edges()[i].producer);
    edge.user = &copy;
    copy.append_edge(edge);
  }
  insert_before(*root_, copy);
  ++version_;
}

std::shared_ptr<Graph> Graph::clone(ValueMap* map) const {
  auto copy = std::make_shared<Graph>();
  copy->code_transformer_ = code_transformer_;
  if (map && !map->empty()) {
    // Values that the caller has given win over copies.
    auto mapped = [&](Node& input) -> Argument {
      auto found = map->find(&input);
      if (found == map->end()) throw_unmapped(input);
      return found->second;
    };
    for (Node& node : nodes()) map->emplace(&node, copy->node_copy(node, mapped));
    return copy;
  }
  std::vector<Node*> copies(next_id_, nullptr);
  for (Node& node : nodes()) {
    copy->append_copy(node, copies);
    copies[node.id_] = copy->root_->prev_;
  }
  if (map) {
    map->reserve(size_);
    for (Node& node : nodes()) map->emplace(&node, *copies[node.id_]);
  }
  return copy;
}

// --- erasing
// ---------------------------------------------------------------------------------------

void Graph::erase_node(Node& node) {
  check_member(node, "node to erase,");
  if (node.num_users_ > 0) {
    std::string users;
    for (Node* user : node.users())
      users += (users.empty() ? "" : ", ") + std::string(user->name());
    throw GraphError(ErrorCode::kEraseWithUsers, "Tried to erase Node " + std::string(node.name()) +
                                                     " but it still had " +
                                                     std::to_string(node.num_users_) +
                                                     (node.num_users_ == 1 ? " user" : " users") +
                                                     " in the graph: {" + users + "}!");
  }
  if (detail::NodeHooks* hooks = detail::find_hooks(*this)) hooks->erase(node);
  node.unlink_inputs();
  node.args_.clear();
  node.kwargs_.clear();
  if (insert_point_ == &node) {
    insert_point_ = node.next_;
    insert_after_ = false;
  }
  unlink(node);
  node.erased_ = true;
  if (node.name_->owner == &node) node.name_->owner = nullptr;
  node.meta_.reset();
  ++version_;
}

bool Graph::eliminate_dead_code(const std::function<bool(const Node&)>& is_impure) {
  lint();
  bool changed = false;
  for (auto it = nodes().rbegin(); it != nodes().rend(); ++it) {
    Node& node = *it;
    if (node.num_users_ > 0) continue;
    const bool keep =
        is_impure ? node.is_placeholder() || node.is_output() || is_impure(node) : node.is_impure();
    if (keep) continue;
    erase_node(node);
    changed = true;
  }
  if (owner_) {
    for (Node& node : nodes())
      if (node.op() == Opcode::kGetAttr)
        if (Graph* nested = owner_->nested_graph(node.target().str()); nested && nested != this)
          changed |= nested->eliminate_dead_code();
  }
  return changed;
}

// --- asking
// ----------------------------------------------------------------------------------------

Node& Graph::output_node() const {
  if (size_ > 0 && root_->prev_->is_output()) return *root_->prev_;
  throw GraphError(ErrorCode::kNoOutput,
                   size_ == 0 ? "the graph is empty, wanted an output node at its end"
                              : "the last node of the graph is " + root_->prev_->format_node() +
                                    ", wanted an output node");
}

std::vector<Node*> Graph::find_nodes(Opcode op, std::optional<Target> target) const {
  std::vector<Node*> found;
  for (Node& node : nodes())
    if (node.op() == op && (!target || node.target() == *target)) found.push_back(&node);
  return found;
}

std::vector<Node*> Graph::find_calls(std::string_view name) const {
  std::vector<Node*> found;
  for (Node& node : nodes())
    if (node.calls(name)) found.push_back(&node);
  return found;
}

Node* Graph::find_node(std::string_view name) const noexcept {
  const detail::NameEntry* entry = names_->find(name);
  return entry ? entry->owner : nullptr;
}

std::vector<Node*> Graph::placeholders() const { return find_nodes(Opcode::kPlaceholder); }

}  // namespace fx
