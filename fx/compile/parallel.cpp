#include "fx/compile/parallel.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace fx::loops {
namespace {

// What `#pragma omp parallel` compiles to, in every OpenMP runtime that LibTorch comes with. Looked
// up in the process rather than linked to: linking could bring a second runtime, with threads of
// its own.
using GompParallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

GompParallel gomp_parallel() {
  static const auto function = reinterpret_cast<GompParallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  return function;
}

struct Shared {
  c10::function_ref<void(std::int64_t, std::int64_t)> body;
  std::int64_t n;
  std::int64_t parts;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  void work() noexcept {
    for (std::int64_t part; (part = next.fetch_add(1)) < parts && !failed;) {
      try {
        body(n * part / parts, n * (part + 1) / parts);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  }
};

}  // namespace

std::int64_t num_threads() {
  if (!gomp_parallel() || at::in_parallel_region()) return 1;
  return at::get_num_threads();
}

void parallel_for(std::int64_t n, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t most = n / std::max<std::int64_t>(1, grain);
  const std::int64_t parts = std::min(num_threads(), most);
  if (parts <= 1) {
    if (n > 0) body(0, n);
    return;
  }
  Shared shared{.body = body, .n = n, .parts = parts, .error = nullptr};
  gomp_parallel()([](void* data) { static_cast<Shared*>(data)->work(); }, &shared,
                  static_cast<unsigned>(parts), 0);
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace fx::loops
