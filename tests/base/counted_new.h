#pragma once

#include <cstddef>
#include <functional>

namespace fx {

/// How often `body` calls operator new on this thread. A program that counts has counted_new.cpp
/// among its sources, which replaces operator new.
std::size_t count_new(const std::function<void()>& body);

/// Runs `body` and has the `number`th call of operator new on this thread fail, once, counted from
/// 0. Whether there was such a call; what `body` throws passes through.
bool fail_new(std::size_t number, const std::function<void()>& body);

}  // namespace fx
