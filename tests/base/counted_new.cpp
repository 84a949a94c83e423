#include "tests/base/counted_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t objects = 0;

void* allocate(std::size_t size) {
  ++objects;
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

}  // namespace fx
