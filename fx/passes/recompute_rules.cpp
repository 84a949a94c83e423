#include "fx/passes/recompute_rules.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "fx/ops/effects.h"
#include "fx/ops/op_info.h"

namespace fx {
namespace {

enum class Cost : std::uint8_t { kCheap, kHeavy, kUnknown };

Cost cost_in_table(const Node& node) {
#define FX_CHEAP(name) \
  if (node.calls(name)) return Cost::kCheap;
#define FX_HEAVY(name) \
  if (node.calls(name)) return Cost::kHeavy;
#include "fx/passes/recompute_ops.def"
#undef FX_CHEAP
#undef FX_HEAVY
  return Cost::kUnknown;
}

bool is_pointwise(const Node& node) {
  const OpInfo& info = OpInfo::of(*node.target().function());
  return !info.overloads.empty() && std::ranges::all_of(info.overloads, [](const Overload& each) {
    return each.handle.hasTag(at::Tag::pointwise);
  });
}

bool is_random(const Node& node) {
  return effects_of(*node.target().function(),
                    [&](std::string_view key) { return node.has_kwarg(key); })
      .random;
}

}  // namespace

RecomputeRules::RecomputeRules(const Graph& joint, const JointNodes& nodes, bool aggressive)
    : nodes_(nodes),
      banned_(joint.id_bound()),
      cheap_(joint.id_bound()),
      random_(joint.id_bound()),
      position_(joint.id_bound()) {
  std::uint32_t position = 0;
  for (const Node& node : joint.nodes()) {
    position_[node.id()] = position++;
    if (node.op() != Opcode::kCallFunction) continue;
    random_[node.id()] = node.is_impure() && is_random(node);
    cheap_[node.id()] =
        !node.is_impure() && (nodes_.is_view(node) || node.calls("operator.getitem") ||
                              is_pointwise(node) || cost_in_table(node) == Cost::kCheap);
  }
  for (const Node& node : joint.nodes())
    if (node.op() == Opcode::kCallFunction && nodes_.is_forward(node) &&
        must_not_run_again(node, aggressive))
      ban(node);
  if (aggressive) return;
  ban_uses_far_apart(joint);
  ban_long_chains(joint);
}

std::int64_t RecomputeRules::weight(const Node& node) const {
  constexpr double kPerStep = 1.1;
  constexpr std::int32_t kMostSteps = 100;
  constexpr double kMost = 1e14;  // so that thousands sum up to less than FlowNetwork::kUnlimited
  const bool reaches_memory =
      node.op() != Opcode::kCallFunction ||
      std::ranges::any_of(node.users(), [&](const Node* user) { return !is_fusible(node, *user); });
  const double steps = std::clamp(nodes_.distance_to_backward(node), 1, kMostSteps);
  const double weight = static_cast<double>(nodes_.bytes(node)) * std::pow(kPerStep, steps) *
                        (reaches_memory ? 1 : 2);
  return static_cast<std::int64_t>(std::min(weight, kMost));
}

bool RecomputeRules::is_fusible(const Node& producer, const Node& user) const {
  const auto fits = [&](const Node& node) { return cheap_[node.id()] || random_[node.id()]; };
  return user.calls("aten::cat") || (fits(producer) && fits(user));
}

bool RecomputeRules::is_written_out_by_backward(const Node& node) const {
  if (nodes_.is_view(node)) return false;
  std::vector<const Node*> seen{&node};  // the node and views of it
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (const Node* user : seen[i]->users()) {
      if (!user->is_output() && !nodes_.is_forward(*user) && !is_fusible(*seen[i], *user))
        return true;
      if (!user->is_output() && nodes_.is_view(*user)) seen.push_back(user);
    }
  return false;
}

bool RecomputeRules::shrinks(const Node& node) const {
  constexpr std::int64_t kTimes = 4;
  std::int64_t operands = 0;
  for (const Argument& argument : node.args())
    if (const Node* operand = argument.node_or_null()) operands += nodes_.bytes(*operand);
  return nodes_.bytes(node) * kTimes < operands;
}

bool RecomputeRules::must_not_run_again(const Node& node, bool aggressive) const {
  if (node.is_impure()) return true;
  if (node.calls("operator.getitem")) return false;
  if (aggressive) return cost_in_table(node) == Cost::kHeavy;
  return !cheap_[node.id()] || is_written_out_by_backward(node) || shrinks(node);
}

// The position of the first node of the forward, up to `last`, on a way from `users` whose operand
// does not fuse into it; `last` if there is none.
std::uint32_t RecomputeRules::first_unfusible_use(const std::vector<const Node*>& users,
                                                  std::uint32_t last) const {
  std::set<std::tuple<std::uint32_t, bool, const Node*>> waiting;
  for (const Node* user : users) waiting.emplace(position_[user->id()], true, user);
  while (!waiting.empty()) {
    const auto [position, fuses, node] = *waiting.begin();
    waiting.erase(waiting.begin());
    if (!fuses) return position;
    for (const Node* user : node->users())
      if (!user->is_output() && nodes_.is_forward(*user) && position_[user->id()] <= last)
        waiting.emplace(position_[user->id()], is_fusible(*node, *user), user);
  }
  return last;
}

void RecomputeRules::ban_uses_far_apart(const Graph& joint) {
  for (const Node& node : joint.nodes()) {
    if (node.is_output() || !nodes_.is_forward(node)) continue;
    std::vector<const Node*> users;
    std::uint32_t last = 0;
    for (const Node* user : node.users())
      if (!user->is_output() && nodes_.is_forward(*user)) {
        users.push_back(user);
        last = std::max(last, position_[user->id()]);
      }
    if (users.size() < 2) continue;
    const std::uint32_t first = first_unfusible_use(users, last);
    for (const Node* user : users)
      if (position_[user->id()] > first && is_fusible(node, *user)) ban(*user);
  }
}

void RecomputeRules::ban_long_chains(const Graph& joint) {
  constexpr std::uint32_t kLongest = 100;
  std::vector<bool> visited(joint.id_bound());
  for (const Node& start : joint.nodes()) {
    if (start.is_output() || !nodes_.is_forward(start)) continue;
    std::set<std::pair<std::uint32_t, const Node*>> waiting{{position_[start.id()], &start}};
    while (!waiting.empty()) {
      const auto [position, node] = *waiting.begin();
      waiting.erase(waiting.begin());
      if (visited[node->id()]) continue;
      visited[node->id()] = true;
      if (position > position_[start.id()] + kLongest && waiting.empty()) {
        ban(*node);
        break;
      }
      for (const Node* user : node->users())
        if (!user->is_output() && nodes_.is_forward(*user) && is_fusible(*node, *user) &&
            !is_banned(*user))
          waiting.emplace(position_[user->id()], user);
    }
  }
}

}  // namespace fx
