#include "fx/ops/stop.h"

#include <utility>

#include "fx/base/error.h"

namespace fx {
namespace {

const StopScope*& innermost() noexcept {
  thread_local const StopScope* scope = nullptr;
  return scope;
}

}  // namespace

StopScope::StopScope(std::stop_token token) noexcept
    : token_(std::move(token)), outer_(std::exchange(innermost(), this)) {}

StopScope::~StopScope() { innermost() = outer_; }

const StopScope* StopScope::current() noexcept { return innermost(); }

bool StopScope::stop_requested() const noexcept {
  for (const StopScope* scope = this; scope; scope = scope->outer_)
    if (scope->token_.stop_requested()) return true;
  return false;
}

void detail::throw_stopped() {
  throw RunError(ErrorCode::kCancelled, "the run was stopped on request, before this node");
}

}  // namespace fx
