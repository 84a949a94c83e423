#include "fx/graph/traceback.h"

#include <c10/util/Backtrace.h>

#include <algorithm>
#include <memory>

#include "fx/base/error.h"

namespace fx::traceback {
namespace {

struct State {
  bool preserve = false;
  Meta current;
  std::vector<std::int64_t> seq_nrs;  // of the gradient functions that run, innermost last
};

State& state() {
  thread_local State instance;
  return instance;
}

}  // namespace

struct Guard::Saved {
  State before;
};

Guard::Guard() : saved_(std::make_unique<Saved>(Saved{state()})) {}
Guard::Guard(Guard&& other) noexcept = default;
Guard::~Guard() {
  if (saved_) state() = std::move(saved_->before);
}

bool is_copied_field(std::string_view key) noexcept {
  return std::ranges::find(kCopyMetaFields, key) != std::end(kCopyMetaFields);
}

const Meta& get_current_meta() noexcept { return state().current; }
bool has_preserved_node_meta() noexcept { return state().preserve; }

Guard preserve_node_meta(bool enable) {
  Guard guard;
  state().preserve = enable;
  return guard;
}

Guard set_current_meta(const Node& node, std::string_view pass_name) {
  Guard guard;
  if (!has_preserved_node_meta()) return guard;
  Meta& current = state().current;
  const Meta annotation = get_current_annotation();
  current = node.meta();
  current.set("from_node",
              std::vector<NodeSource>{NodeSource(node, pass_name, {NodeSourceAction::kCreate})});
  if (!annotation.empty() && !current.contains("custom")) current.set("custom", annotation);
  return guard;
}

Guard annotate(const Meta& entries) {
  Guard guard;
  Meta merged = get_current_annotation();
  for (const auto& [key, value] : entries) merged.set(key, value);
  state().current.set("custom", std::move(merged));
  return guard;
}

Meta get_current_annotation() {
  const Meta* custom = state().current.get<Meta>("custom");
  return custom ? *custom : Meta();
}

void set_stack_trace(std::string_view text) {
  if (!has_preserved_node_meta()) return;
  if (text.empty())
    state().current.erase("stack_trace");
  else
    state().current.set("stack_trace", std::string(text));
}

std::string format_stack() {
  if (!has_preserved_node_meta()) return c10::get_backtrace(1);
  const auto* text = state().current.get<std::string>("stack_trace");
  return text ? *text : std::string();
}

void set_grad_fn_seq_nr(std::int64_t number) {
  if (has_preserved_node_meta()) state().seq_nrs.push_back(number);
}

void reset_grad_fn_seq_nr() {
  if (!has_preserved_node_meta()) return;
  if (state().seq_nrs.empty())
    throw GraphError(ErrorCode::kIndexOutOfRange,
                     "reset_grad_fn_seq_nr without a set_grad_fn_seq_nr before it");
  state().seq_nrs.pop_back();
}

void stamp(Node& node) {
  const State& now = state();
  if (!now.preserve) {
    // Annotations alone hold without preserving.
    if (const Meta* custom = now.current.get<Meta>("custom")) node.meta().set("custom", *custom);
    return;
  }
  for (const auto& [key, value] : now.current)
    if (key == "stack_trace" || is_copied_field(key)) node.meta().set(key, value);
  if (!now.seq_nrs.empty()) node.meta().set("seq_nr", now.seq_nrs.back());
}

}  // namespace fx::traceback
