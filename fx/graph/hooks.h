#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fx {

namespace detail {
struct HookState {
  bool removed = false;
};
}  // namespace detail

/// Takes a hook away again. Copies stand for the same hook; a handle may outlive what it came from.
/// Destroying a handle leaves the hook in place.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::shared_ptr<detail::HookState> state) : state_(std::move(state)) {}

  /// The hook is not called from now on, also when it removes itself. Idempotent.
  void remove() noexcept {
    if (state_) state_->removed = true;
  }
  /// Whether the hook is still in place.
  bool active() const noexcept { return state_ && !state_->removed; }

 private:
  std::shared_ptr<detail::HookState> state_;
};

/// Hooks in registration order. They may be added and removed while they are being called: an added
/// one is called from the next time on.
template <typename... Args>
class HookList {
 public:
  using Hook = std::function<void(Args...)>;

  HookHandle add(Hook hook) {
    auto state = std::make_shared<detail::HookState>();
    hooks_.push_back({state, std::make_shared<const Hook>(std::move(hook))});
    return HookHandle(std::move(state));
  }

  bool empty() const noexcept { return hooks_.empty(); }

  /// The hooks that are in place now, for another list: removing one here leaves it there.
  HookList independent_copy() const {
    HookList copy;
    for (const Entry& entry : hooks_)
      if (!entry.state->removed)
        copy.hooks_.push_back({std::make_shared<detail::HookState>(), entry.hook});
    return copy;
  }

  void operator()(Args... args) {
    const std::size_t count = hooks_.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (hooks_[i].state->removed) continue;
      const std::shared_ptr<const Hook> hook = hooks_[i].hook;  // the list may grow meanwhile
      ++running_;
      try {
        (*hook)(args...);
      } catch (...) {
        --running_;
        throw;
      }
      --running_;
    }
    if (running_ == 0)
      std::erase_if(hooks_, [](const Entry& entry) { return entry.state->removed; });
  }

 private:
  struct Entry {
    std::shared_ptr<detail::HookState> state;
    std::shared_ptr<const Hook> hook;
  };
  std::vector<Entry> hooks_;
  std::size_t running_ = 0;
};

}  // namespace fx
