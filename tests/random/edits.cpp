#include "tests/random/edits.h"

#include <algorithm>
#include <array>
#include <span>

#include "fx/base/error.h"
#include "fx/graph/text.h"

namespace fx::fuzz {
namespace {

std::string name_of(const Node& node) { return std::string(node.name()); }

// What stands before all nodes that it reads, or behind a reader, is out of order.
bool fits_before(const Node& node, const Node& place) {
  for (const Node* input : node.all_input_nodes())
    if (!input->comes_before(place)) return false;
  for (const Node* user : node.users())
    if (user != &place && !place.comes_before(*user)) return false;
  return true;
}

}  // namespace

Node* Editor::pick(auto&& wanted) {
  std::vector<Node*> fit;
  for (Node& node : graph_->nodes())
    if (wanted(node)) fit.push_back(&node);
  return fit.empty() ? nullptr : choices_.pick(fit);
}

// By the strict rules inputs and outputs stay where they are.
bool Editor::is_fixed(const Node& node) const {
  return options_.strict && (node.is_placeholder() || node.is_output());
}

Node* Editor::pick_place() {
  return pick([&](const Node& node) { return !options_.strict || !node.is_placeholder(); });
}

Argument Editor::value(const Node& before, int depth) {
  if (choices_.chance(60))
    if (Node* node = pick([&](const Node& other) { return other.comes_before(before); }))
      return *node;
  if (depth < 3 && choices_.chance(40)) {
    std::vector<Argument> items;
    for (std::size_t i = choices_.below(3); i > 0; --i) items.push_back(value(before, depth + 1));
    switch (choices_.below(4)) {
      case 0:
        return Argument::list(std::move(items));
      case 1:
        return Argument::tuple(std::move(items));
      case 2:
        return Argument::slice(value(before, 3), {}, 1);
      default: {
        std::vector<DictItem> dict;
        for (Argument& item : items) dict.emplace_back("k" + std::to_string(dict.size()), item);
        return Argument::dict(std::move(dict));
      }
    }
  }
  return choices_.pick<Argument>({Argument(), 1, -2.5, true, "text", c10::kFloat});
}

Args Editor::values(const Node& before) {
  Args args;
  for (std::size_t i = choices_.below(4); i > 0; --i) args.push_back(value(before));
  return args;
}

// --- edits that keep the meaning -----------------------------------------------------------------

std::string Editor::rename() {
  Node* node = pick([](const Node&) { return true; });
  if (!node) return {};
  const std::string old = name_of(*node);
  node->rename(choices_.pick({"x", "add", "for", "a b", "x_1", "1", "", "relu_"}));
  return "rename " + old + " to " + name_of(*node);
}

std::string Editor::annotate() {
  Node* node = pick([](const Node&) { return true; });
  if (!node) return {};
  node->set_type(choices_.pick({"", "Tensor", "List[int]"}));
  if (choices_.chance(50)) node->meta().set("note", std::string("of the editor"));
  return "annotate " + name_of(*node);
}

std::string Editor::insert_alias() {
  // Of a tensor for certain: what a tensor operator reads as its first argument, or the inputs.
  Node* node = pick([&](const Node& other) {
    return other.op() == Opcode::kCallFunction && other.target().str().starts_with("aten::neg");
  });
  if (!node) return {};
  const InsertPointGuard guard = graph_->inserting_after(*node);
  Node& alias = graph_->call_function("aten::alias", {*node});
  node->replace_all_uses_with(alias, [&](const Node& user) { return &user != &alias; });
  return "alias of " + name_of(*node);
}

std::string Editor::copy_for_some_users() {
  Node* node = pick([](const Node& other) {
    return !other.is_placeholder() && !other.is_output() && other.num_users() > 0;
  });
  if (!node) return {};
  const InsertPointGuard guard = graph_->inserting_after(*node);
  Node& copied = graph_->node_copy(*node, [](Node& input) { return Argument(input); });
  node->replace_all_uses_with(copied, [&](const Node&) { return choices_.chance(50); });
  return "copy " + name_of(*node) + " for some of its users";
}

std::string Editor::move() {
  Node* place = pick_place();
  if (!place) return {};
  Node* node = pick([&](const Node& other) {
    return &other != place && !is_fixed(other) && fits_before(other, *place);
  });
  if (!node || (!options_.strict && node->is_placeholder() && choices_.chance(50))) return {};
  if (place->prev() && place->prev() != node && !is_fixed(*place->prev()) && choices_.chance(50) &&
      fits_before(*node, *place))
    place->prev()->append(*node);
  else
    place->prepend(*node);
  return "move " + name_of(*node) + " before " + name_of(*place);
}

std::string Editor::erase_unused() {
  Node* node = pick([&](const Node& other) {
    return other.num_users() == 0 && !is_fixed(other) &&
           (!options_.keep_meaning || !other.is_impure());
  });
  if (!node) return {};
  const std::string name = name_of(*node);
  graph_->erase_node(*node);
  return "erase " + name;
}

std::string Editor::eliminate_dead_code() {
  if (!choices_.chance(10)) return {};
  if (options_.keep_meaning)
    graph_->eliminate_dead_code();
  else
    graph_->eliminate_dead_code(
        [](const Node& node) { return node.is_placeholder() || node.is_output(); });
  return "eliminate_dead_code";
}

// Goes on with a copy; the old graph is destroyed.
std::string Editor::clone() {
  GraphOwner* owner = graph_->owner();
  if (owner || !choices_.chance(20)) return {};
  graph_ = graph_->clone();
  return "clone";
}

// --- the others ----------------------------------------------------------------------------------

std::string Editor::insert() {
  Node* place = pick_place();
  if (!place) return {};
  const bool after = !place->is_output() && choices_.chance(50);
  const InsertPointGuard guard =
      after ? graph_->inserting_after(*place) : graph_->inserting_before(*place);
  Args args = values(*place);
  Kwargs kwargs;
  if (choices_.chance(30)) kwargs.emplace_back("other", value(*place));
  Node& node = choices_.chance(50)
                   ? graph_->call_function("operator.add", std::move(args), std::move(kwargs))
                   : graph_->create_node(Opcode::kCallMethod, Target::string("relu"),
                                         std::move(args), std::move(kwargs), "n");
  return "insert " + name_of(node);
}

std::string Editor::replace_uses() {
  Node* node = pick([](const Node& other) { return other.num_users() > 0; });
  if (!node) return {};
  Node* other = pick(
      [&](const Node& earlier) { return !earlier.is_output() && earlier.comes_before(*node); });
  if (!other) return {};
  const bool all = choices_.chance(50);
  node->replace_all_uses_with(*other, [&](const Node&) { return all || choices_.chance(50); });
  return "replace uses of " + name_of(*node) + " by " + name_of(*other);
}

std::string Editor::replace_input() {
  Node* user = pick([](const Node& other) { return !other.all_input_nodes().empty(); });
  if (!user) return {};
  Node* input = choices_.pick(user->all_input_nodes());
  user->replace_input_with(*input, value(*user));
  return "replace input " + name_of(*input) + " of " + name_of(*user);
}

std::string Editor::change_args() {
  Node* node = pick([&](const Node& other) {
    return other.op() == Opcode::kCallFunction || other.op() == Opcode::kCallMethod;
  });
  if (!node) return {};
  const auto count = static_cast<std::int64_t>(node->num_args());
  const std::size_t how = choices_.below(3);
  if (how == 0) {
    node->set_args(values(*node));
  } else if (how == 1) {
    if (count == 0) return {};
    const std::int64_t index = choices_.between(-count, count - 1);
    node->update_arg(index, value(*node));
  } else {
    const std::int64_t index = choices_.between(0, count);
    node->insert_arg(index, value(*node));
  }
  return "change the arguments of " + name_of(*node);
}

std::string Editor::change_kwargs() {
  Node* node = pick([&](const Node& other) {
    return other.op() == Opcode::kCallFunction || other.op() == Opcode::kCallMethod;
  });
  if (!node) return {};
  if (choices_.chance(50)) {
    const char* key = choices_.pick({"alpha", "dim", "other"});
    node->update_kwarg(key, value(*node));
  } else {
    Args args = values(*node);
    Kwargs kwargs = {{"a", value(*node)}};
    kwargs.emplace_back("b", value(*node));
    node->set_args_kwargs(std::move(args), std::move(kwargs));
  }
  return "change the keywords of " + name_of(*node);
}

std::string Editor::copy() {
  Node* node = pick([&](const Node& other) { return !is_fixed(other); });
  if (!node) return {};
  const InsertPointGuard guard = graph_->inserting_after(*node);
  graph_->node_copy(*node, [](Node& input) { return Argument(input); });
  return "copy " + name_of(*node);
}

// Puts a small graph in, its inputs mapped to values of this one.
std::string Editor::copy_graph() {
  Node* place = pick_place();
  if (!place) return {};
  Graph source;
  Node& x = source.placeholder("x");
  Node& y = source.placeholder("y");
  Node& sum = source.call_function("operator.add", {x, y});
  source.output(source.call_function("operator.mul", {sum, Argument::list({sum, x})}));
  ValueMap map;
  map[&x] = value(*place);
  map[&y] = value(*place);
  const InsertPointGuard guard = graph_->inserting_before(*place);
  const Argument result = graph_->graph_copy(source, map);
  if (choices_.chance(50) && !place->is_placeholder() && !is_fixed(*place))
    place->insert_arg(0, result);
  return "copy a graph before " + name_of(*place);
}

std::string Editor::retarget() {
  Node* node = pick([&](const Node& other) {
    return other.op() == Opcode::kCallFunction || other.op() == Opcode::kCallMethod;
  });
  if (!node) return {};
  if (choices_.chance(50))
    node->set_op(Opcode::kCallMethod, Target::string("relu"));
  else
    node->set_op(Opcode::kCallFunction, Target::function("torch.relu"));
  return "retarget " + name_of(*node);
}

std::string Editor::step() {
  static constexpr std::array kKeeping = {
      &Editor::rename,       &Editor::annotate,     &Editor::insert_alias,
      &Editor::move,         &Editor::move,         &Editor::copy_for_some_users,
      &Editor::erase_unused, &Editor::erase_unused, &Editor::eliminate_dead_code,
      &Editor::clone};
  static constexpr std::array kOthers = {
      &Editor::insert,        &Editor::insert,      &Editor::replace_uses,
      &Editor::replace_input, &Editor::change_args, &Editor::change_kwargs,
      &Editor::copy,          &Editor::copy_graph,  &Editor::retarget};
  if (!options_.keep_meaning && choices_.chance(60))
    return (this->*kOthers[choices_.below(kOthers.size())])();
  return (this->*kKeeping[choices_.below(kKeeping.size())])();
}

std::string Editor::refused_step() {
  Node* node = pick([](const Node& other) { return other.num_users() > 0; });
  if (!node) return {};
  const std::string before = to_text(*graph_, {.meta = true});
  const std::uint64_t hash = graph_->structural_hash();
  Graph other;
  Node& foreign = other.placeholder("foreign");
  const auto past = static_cast<std::int64_t>(node->num_args());
  const std::size_t kind = choices_.below(5);
  try {
    switch (kind) {
      case 0:
        graph_->erase_node(*node);
        break;
      case 1:
        node->update_arg(past, 1);
        break;
      case 2:
        node->set_kwargs({{"twice", 1}, {"twice", 2}});
        break;
      case 3:
        node->append(foreign);
        break;
      default:
        node->update_arg("no such keyword", 1);
    }
    return "refused edit " + std::to_string(kind) + " was not refused";
  } catch (const GraphError&) {
  }
  if (to_text(*graph_, {.meta = true}) != before || graph_->structural_hash() != hash)
    return "refused edit " + std::to_string(kind) + " changed the graph";
  return {};
}

}  // namespace fx::fuzz
