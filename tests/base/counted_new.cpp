#include "tests/base/counted_new.h"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t objects = 0;
thread_local std::size_t failing =
    SIZE_MAX;  // the number of the object that there is no memory for

void* allocate(std::size_t size) {
  if (objects++ == failing) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace fx {

std::size_t count_new(const std::function<void()>& body) {
  const std::size_t before = objects;
  body();
  return objects - before;
}

bool fail_new(std::size_t number, const std::function<void()>& body) {
  struct Reset {
    ~Reset() { failing = SIZE_MAX; }
  } reset;
  failing = objects + number;
  body();
  return objects > failing;
}

}  // namespace fx
