#include "fx/interpret/env.h"

#include "fx/base/error.h"
#include "fx/base/text.h"

namespace fx {

Env::Env(std::initializer_list<std::pair<Node*, Value>> values) {
  for (const auto& [node, value] : values) set(*node, value);
}

Env::Env(Env&& other) noexcept
    : slots_(std::exchange(other.slots_, {})), size_(std::exchange(other.size_, 0)) {}

Env& Env::operator=(Env&& other) noexcept {
  slots_ = std::exchange(other.slots_, {});
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Env::Slot& Env::slot_for(Node& node) {
  const std::uint32_t id = node.id();
  if (id >= slots_.size()) [[unlikely]]
    slots_.resize(node.graph().id_bound());
  Slot& slot = slots_[id];
  if (slot.node == &node) return slot;
  const std::uint32_t last = slots_[0].previous;
  const Node* known = slot.node ? slot.node : last ? slots_[last].node : nullptr;
  if (known && &known->graph() != &node.graph()) [[unlikely]]
    throw GraphError(ErrorCode::kForeignNode,
                     "the node " + std::string(node.name()) +
                         " is not of the graph whose values this environment holds");
  slot.node = &node;
  slot.previous = last;
  slot.next = 0;
  slots_[last].next = id;
  slots_[0].previous = id;
  ++size_;
  return slot;
}

void Env::set(Node& node, Value value) { slot_for(node).value = std::move(value); }

Value& Env::operator[](Node& node) { return slot_for(node).value; }

const Value* Env::find(std::string_view name) const noexcept {
  if (empty()) return nullptr;
  const Node* node = slots_[slots_[0].next].node->graph().find_node(name);
  return node ? find(*node) : nullptr;
}

const Value& Env::at(const Node& node) const {
  if (const Value* value = find(node)) return *value;
  throw RunError(ErrorCode::kMissingValue,
                 "there is no value of the node " + std::string(node.name()));
}

const Value& Env::at(std::string_view name) const {
  if (const Value* value = find(name)) return *value;
  throw RunError(ErrorCode::kMissingValue, "there is no value of a node " + str_repr(name));
}

bool Env::erase(const Node& node) noexcept {
  if (!find(node)) return false;
  Slot& slot = slots_[node.id()];
  slots_[slot.previous].next = slot.next;
  slots_[slot.next].previous = slot.previous;
  slot.node = nullptr;
  --size_;
  // Last, since destroying a value may run code that reads this environment.
  Value dying = std::move(slot.value);
  return true;
}

void Env::clear() noexcept {
  while (!empty()) erase(*slots_[slots_[0].next].node);
}

std::vector<std::string> Env::names() const {
  std::vector<std::string> names;
  for (auto [node, value] : *this) names.emplace_back(node.name());
  return names;
}

}  // namespace fx
