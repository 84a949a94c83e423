#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace fx::loops {

/// Calls body(begin, end) for parts of [0, n), each at least `grain` long, on LibTorch's own
/// threads: its OpenMP runtime, so that there is one pool of threads in the process, of the size
/// that at::set_num_threads gave it. Where there is none, or inside another parallel region, in one
/// part. The parts depend on the number of threads. The first exception of a body is thrown here.
void parallel_for(std::int64_t n, std::int64_t grain,
                  c10::function_ref<void(std::int64_t, std::int64_t)> body);

/// How many threads parallel_for would use now.
std::int64_t num_threads();

}  // namespace fx::loops
