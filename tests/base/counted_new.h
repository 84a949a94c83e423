#pragma once

#include <cstddef>
#include <functional>

namespace fx {

/// How often `body` calls operator new on this thread. A program that counts has counted_new.cpp
/// among its sources, which replaces operator new.
std::size_t count_new(const std::function<void()>& body);

}  // namespace fx
