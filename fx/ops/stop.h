#pragma once

#include <stop_token>

namespace fx {

/// Lets whoever holds the other end of `token` stop the runs of this thread, while the scope lives:
///
///     std::stop_source stop;                       // another thread: stop.request_stop()
///     fx::StopScope scope(stop.get_token());
///     model(x);                                    // RunError kCancelled
///
/// GraphModules, compiled models and Interpreters look between the nodes of a graph, nested graphs
/// included; an operator or kernel that has begun ends. A run that is stopped leaves what it wrote
/// in place, as one that fails; the next call is a fresh one. A scope inside a scope does not hide
/// the outer one. Costs one comparison a node. Destroy scopes on the thread that made them, in
/// reverse order.
class StopScope {
 public:
  explicit StopScope(std::stop_token token) noexcept;
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope();

  /// The innermost scope of this thread, or null.
  static const StopScope* current() noexcept;
  /// Whether this scope or one around it was asked to stop.
  bool stop_requested() const noexcept;

 private:
  std::stop_token token_;
  const StopScope* outer_;
};

namespace detail {
[[noreturn]] void throw_stopped();
}

/// @throws RunError kCancelled if `scope`, which may be null, was asked to stop.
inline void throw_if_stopped(const StopScope* scope) {
  if (scope && scope->stop_requested()) [[unlikely]]
    detail::throw_stopped();
}

}  // namespace fx
