#include "fx/graph/node.h"

#include <algorithm>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/graph.h"
#include "fx/graph/namespace.h"
#include "fx/graph/node_hooks.h"
#include "fx/graph/subgraphs.h"
#include "fx/graph/unique_inputs.h"
#include "fx/ops/effects.h"

namespace fx {

using detail::UseEdge;

// --- argument storage
// ------------------------------------------------------------------------------

Argument* Node::ArgList::reserve(std::size_t size) {
  clear();
  if (size > kInline) heap_ = std::make_unique<Argument[]>(size);
  size_ = static_cast<std::uint32_t>(size);
  return data();
}

void Node::ArgList::assign(std::span<const Argument> items) {
  std::copy(items.begin(), items.end(), reserve(items.size()));
}

void Node::ArgList::assign(Args&& items) {
  std::move(items.begin(), items.end(), reserve(items.size()));
}

void Node::ArgList::clear() noexcept {
  heap_.reset();
  for (Argument& slot : inline_) slot = Argument();
  size_ = 0;
}

// --- edges
// -----------------------------------------------------------------------------------------

void Node::check_kwargs(std::span<const KwArg> kwargs) {
  if (kwargs.size() < 2) return;
  std::vector<const void*> keys;
  keys.reserve(kwargs.size());
  for (const KwArg& kwarg : kwargs) keys.push_back(kwarg.key.id());
  std::sort(keys.begin(), keys.end());
  auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return;
  for (const KwArg& kwarg : kwargs)
    if (kwarg.key.id() == *twice)
      throw GraphError(ErrorCode::kDuplicateKwarg,
                       "the keyword argument " + str_repr(kwarg.key.str()) + " is given twice");
}

void Node::append_edge(UseEdge& edge) noexcept {
  Node& producer = *edge.producer;
  edge.prev = producer.last_use_;
  edge.next = nullptr;
  (producer.last_use_ ? producer.last_use_->next : producer.first_use_) = &edge;
  producer.last_use_ = &edge;
  ++producer.num_users_;
  if (producer.graph_ != graph_) [[unlikely]]
    producer.graph_->foreign_edges_ = graph_->foreign_edges_ = true;
}

void Node::remove_edge(UseEdge& edge) noexcept {
  Node& producer = *edge.producer;
  (edge.prev ? edge.prev->next : producer.first_use_) = edge.next;
  (edge.next ? edge.next->prev : producer.last_use_) = edge.prev;
  --producer.num_users_;
}

void Node::link_inputs() {
  const detail::UniqueInputs inputs(args_.view(), kwargs_);
  num_edges_ = static_cast<std::uint32_t>(inputs.view().size());
  if (num_edges_ > kInlineEdges) heap_edges_ = std::make_unique<UseEdge[]>(num_edges_);
  std::size_t i = 0;
  for (UseEdge& edge : edges()) {
    edge.producer = inputs.view()[i++];
    edge.user = this;
    append_edge(edge);
  }
}

void Node::unlink_inputs() noexcept {
  for (UseEdge& edge : edges()) remove_edge(edge);
  num_edges_ = 0;
  heap_edges_.reset();
}

bool Node::move_uses(Node& old, Node& replacement) noexcept {
  UseEdge* of_old = nullptr;
  for (UseEdge& edge : edges()) {
    if (edge.producer == &replacement) return false;
    if (edge.producer == &old) of_old = &edge;
  }
  if (!of_old) return false;
  // As after unlink_inputs and link_inputs, this node is the latest user of all its inputs.
  for (UseEdge& edge : edges()) {
    if (&edge != of_old && !edge.next) continue;
    remove_edge(edge);
    if (&edge == of_old) edge.producer = &replacement;
    append_edge(edge);
  }
  return true;
}

void Node::order_users(std::span<Node* const> users) noexcept {
  for (Node* user : users) {
    for (UseEdge& edge : user->edges()) {
      if (edge.producer != this) continue;
      if (!edge.next) break;  // the last already
      (edge.prev ? edge.prev->next : first_use_) = edge.next;
      edge.next->prev = edge.prev;
      edge.prev = last_use_;
      edge.next = nullptr;
      last_use_->next = &edge;
      last_use_ = &edge;
      break;
    }
  }
}

bool UserRange::contains(const Node& node) const {
  return std::find(begin(), end(), &node) != end();
}

std::vector<Node*> Node::all_input_nodes() const {
  std::vector<Node*> inputs;
  inputs.reserve(num_edges_);
  for (const UseEdge& edge : edges()) inputs.push_back(edge.producer);
  return inputs;
}

bool Node::uses(const Node& producer) const noexcept {
  return std::any_of(edges().begin(), edges().end(),
                     [&](const UseEdge& edge) { return edge.producer == &producer; });
}

// --- reading
// ---------------------------------------------------------------------------------------

std::string_view Node::name() const noexcept { return name_ ? name_->text : "<unnamed>"; }

bool Node::calls(std::string_view name) const noexcept {
  const Function* function = target_.function();
  if (op_ != Opcode::kCallFunction || !function) return false;
  if (function->name() == name) return true;
  if (function->kind() != FunctionKind::kOperator) return false;
  if (function->overload_name().empty())
    return name.ends_with(".default") && function->name() == name.substr(0, name.size() - 8);
  std::string_view full = function->name();
  return full.substr(0, full.size() - function->overload_name().size() - 1) == name;
}

const Argument& Node::arg(std::int64_t index) const {
  const auto size = static_cast<std::int64_t>(args_.size());
  const std::int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size)
    throw GraphError(ErrorCode::kIndexOutOfRange, "node " + std::string(name()) + " has " +
                                                      std::to_string(size) +
                                                      " positional arguments, index " +
                                                      std::to_string(index) + " is out of range");
  return args_.view()[static_cast<std::size_t>(at)];
}

const Argument* Node::find_kwarg(std::string_view key) const noexcept {
  for (const KwArg& kwarg : kwargs_)
    if (kwarg.key == key) return &kwarg.value;
  return nullptr;
}

const Argument& Node::kwarg(std::string_view key) const {
  if (const Argument* found = find_kwarg(key)) return *found;
  throw GraphError(ErrorCode::kUnknownKwarg, "node " + std::string(name()) +
                                                 " has no keyword argument " + str_repr(key) +
                                                 ", it has " + repr(kwargs()));
}

const Meta& Node::meta() const noexcept {
  static const Meta empty;
  return meta_ ? *meta_ : empty;
}

Meta& Node::meta() {
  if (!meta_) meta_ = std::make_unique<Meta>();
  return *meta_;
}

std::string Node::stack_trace() const {
  const auto* text = meta().get<std::string>("stack_trace");
  return text ? *text : std::string();
}

// --- editing
// ---------------------------------------------------------------------------------------

namespace {

void check_target(Opcode op, const Target& target) {
  if (static_cast<std::size_t>(op) > static_cast<std::size_t>(Opcode::kOutput))
    throw GraphError(ErrorCode::kBadOpcode,
                     "op " + std::to_string(static_cast<int>(op)) + " is not in the legal opcodes");
  const bool wants_function = op == Opcode::kCallFunction;
  if (wants_function == target.is_function()) return;
  throw GraphError(ErrorCode::kBadTarget, "the target " + str_repr(target.str()) + " of a " +
                                              std::string(opcode_name(op)) + " node is a " +
                                              (target.is_function() ? "function" : "string") +
                                              " but a " + (wants_function ? "function" : "string") +
                                              " is expected");
}

}  // namespace

void Node::set_target(Target target) { set_op(op_, target); }

void Node::set_target(std::string_view name) {
  set_op(op_, op_ == Opcode::kCallFunction ? Target::function(name) : Target::string(name));
}

void Node::set_op(Opcode op, Target target) {
  check_target(op, target);
  op_ = op;
  target_ = target;
  ++graph_->version_;
}

void Node::set_type(std::string_view type) {
  const Symbol symbol(type);
  if (symbol == type_) return;
  type_ = symbol;
  ++graph_->version_;
}

void Node::set_args(Args args) {
  unlink_inputs();
  args_.assign(std::move(args));
  link_inputs();
  ++graph_->version_;
}

void Node::set_kwargs(Kwargs kwargs) {
  check_kwargs(kwargs);
  unlink_inputs();
  kwargs_ = std::move(kwargs);
  link_inputs();
  ++graph_->version_;
}

void Node::set_args_kwargs(Args args, Kwargs kwargs) {
  check_kwargs(kwargs);
  unlink_inputs();
  args_.assign(std::move(args));
  kwargs_ = std::move(kwargs);
  link_inputs();
  ++graph_->version_;
}

void Node::update_arg(std::int64_t index, Argument value) {
  const Argument& slot = arg(index);  // checks the index
  unlink_inputs();
  const_cast<Argument&>(slot) = std::move(value);
  link_inputs();
  ++graph_->version_;
}

void Node::update_arg(std::string_view key, Argument value) {
  kwarg(key);  // checks the key
  update_kwarg(key, std::move(value));
}

void Node::insert_arg(std::int64_t index, Argument value) {
  if (index < 0 || index > static_cast<std::int64_t>(args_.size()))
    throw GraphError(ErrorCode::kIndexOutOfRange,
                     "insert_arg index must be between 0 and " + std::to_string(args_.size()) +
                         " for node " + std::string(name()) + ", found " + std::to_string(index));
  Args args(args_.view().begin(), args_.view().end());
  args.insert(args.begin() + index, std::move(value));
  set_args(std::move(args));
}

void Node::update_kwarg(std::string_view key, Argument value) {
  Kwargs kwargs = kwargs_;
  auto at = std::find_if(kwargs.begin(), kwargs.end(), [&](auto& k) { return k.key == key; });
  if (at != kwargs.end())
    at->value = std::move(value);
  else
    kwargs.emplace_back(key, std::move(value));
  set_kwargs(std::move(kwargs));
}

void Node::replace_input_with(Node& old, const Argument& replacement) {
  auto replace = [&](Argument& slot) {
    if (slot.node_or_null() == &old)
      slot = replacement;
    else if (slot.is_aggregate() && slot.has_nodes())
      slot =
          slot.map_nodes([&](Node& node) { return &node == &old ? replacement : Argument(node); });
  };
  Node* node = replacement.node_or_null();
  if (detail::NodeHooks* hooks = detail::find_hooks(*graph_))
    hooks->replace(old, node ? std::string(node->name()) : repr(replacement), *this);
  const bool moved = node && node != &old && move_uses(old, *node);
  if (!moved) unlink_inputs();
  for (Argument& slot : args_.mutable_view()) replace(slot);
  for (KwArg& kwarg : kwargs_) replace(kwarg.value);
  if (!moved) link_inputs();
  ++graph_->version_;
}

std::vector<Node*> Node::replace_all_uses_with(Node& replacement,
                                               const std::function<bool(Node&)>& filter,
                                               bool propagate_meta) {
  graph_->check_member(replacement, "replacement");
  if (propagate_meta) {
    if (replacement.meta_ && !replacement.meta_->empty())
      throw GraphError(ErrorCode::kMetaNotEmpty,
                       "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                       "replace_with " +
                           std::string(replacement.name()) + " already has .meta keys");
    if (meta_) replacement.meta() = *meta_;
  }
  std::vector<Node*> changed = users().to_vector();
  if (filter) std::erase_if(changed, [&](Node* user) { return !filter(*user); });
  if (&replacement == this) return changed;
  const Argument value(replacement);
  for (Node* user : changed) user->replace_input_with(*this, value);
  return changed;
}

std::string_view Node::rename(std::string_view candidate) {
  if (candidate == name()) return name();
  detail::NameEntry* made = graph_->names_->create(candidate);
  if (detail::NodeHooks* hooks = detail::find_hooks(*graph_))
    for (Node* user : users().to_vector()) hooks->replace(*this, made->text, *user);
  if (name_ && name_->owner == this) name_->owner = nullptr;
  name_ = made;
  made->owner = this;
  ++graph_->version_;
  return name();
}

// --- position
// --------------------------------------------------------------------------------------

Node* Node::next() const noexcept {
  Node* n = next_;
  while (n->erased_) n = n->next_;
  return n == graph_->root_ ? nullptr : n;
}

Node* Node::prev() const noexcept {
  Node* n = prev_;
  while (n->erased_) n = n->prev_;
  return n == graph_->root_ ? nullptr : n;
}

void Node::prepend(Node& node) {
  if (node.graph_ != graph_)
    throw GraphError(ErrorCode::kForeignNode, "Attempting to move a Node into a different Graph: " +
                                                  std::string(node.name()));
  graph_->check_member(*this, "position");
  graph_->check_member(node, "node");
  if (&node == this || node.next_ == this) return;
  graph_->unlink(node);
  graph_->insert_before(*this, node);
  ++graph_->version_;
}

void Node::append(Node& node) {
  if (node.graph_ != graph_)
    throw GraphError(ErrorCode::kForeignNode, "Attempting to move a Node into a different Graph: " +
                                                  std::string(node.name()));
  graph_->check_member(*this, "position");
  graph_->check_member(node, "node");
  if (&node == this || next_ == &node) return;
  graph_->unlink(node);
  graph_->insert_before(*next_, node);
  ++graph_->version_;
}

// --- effects
// ---------------------------------------------------------------------------------------

bool Node::is_impure(bool impure_random) const {
  switch (op_) {
    case Opcode::kPlaceholder:
    case Opcode::kOutput:
      return true;
    case Opcode::kGetAttr:
      return false;
    case Opcode::kCallModule:
      // Nothing is known of a module without its owner: keep the call.
      return !graph_->owner() || graph_->owner()->module_is_impure(target_.str(), impure_random);
    case Opcode::kCallMethod:
    case Opcode::kCallFunction:
      break;
  }
  if (op_ == Opcode::kCallFunction && find_higher_order(*target_.function()) != nullptr)
    return subgraphs_are_impure(*this, impure_random);
  auto has_kwarg_named = [&](std::string_view key) { return has_kwarg(key); };
  const Effects effects = op_ == Opcode::kCallMethod
                              ? effects_of_method(target_.str(), has_kwarg_named)
                              : effects_of(*target_.function(), has_kwarg_named);
  if (!effects.mutates && !effects.other && !(effects.random && impure_random)) return false;
  if (effects.unless_false_name.empty()) return true;
  // Effects that a flag argument switches on, such as `training` of batch_norm.
  const Argument* flag = find_kwarg(effects.unless_false_name);
  if (!flag && effects.unless_false_index < num_args())
    flag = &args_.view()[effects.unless_false_index];
  return !flag || flag->kind() != Argument::Kind::kBool || flag->to_bool();
}

}  // namespace fx
