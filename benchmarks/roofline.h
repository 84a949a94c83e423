#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

/// The least time that a kernel's arithmetic takes: the vector instructions of its loops by class,
/// counted in its LLVM code, over the rates at which this machine does such, measured in the same
/// run. Instructions of different classes have units of their own, so that the slowest class
/// counts.
namespace fx::bench {

/// Vector instructions that each element costs, or that are done in a millisecond by all threads
/// together. Loads, stores and addresses do not count.
struct VectorCounts {
  double products = 0;   ///< products, also those with a sum
  double divisions = 0;  ///< and square roots
  double others = 0;     ///< sums, comparisons, selections, bits, conversions
  double all() const { return products + others; }
};

struct VectorRates {
  double products = 0;
  double divisions = 0;
  double all = 0;  ///< products and sums by turns
  double milliseconds(const VectorCounts& each, double elements) const {
    return elements *
           std::max({each.products / products, each.divisions / divisions, each.all() / all});
  }
};

namespace detail {

inline bool is_vector(std::string_view line) { return line.find(" x ") != std::string_view::npos; }

/// Adds an instruction of LLVM, if it works on vectors in registers.
inline void count_instruction(std::string_view line, VectorCounts& work) {
  const std::size_t equals = line.find(" = ");
  if (equals == std::string_view::npos || !is_vector(line)) return;
  std::string_view code = line.substr(equals + 3);
  code = code.substr(code.starts_with("tail ") ? 5 : 0);
  for (const char* free : {"load", "phi", "bitcast", "getelementptr", "insertelement",
                           "shufflevector", "extractelement", "call <16 x float> @llvm.masked",
                           "call <8 x float> @llvm.masked", "freeze"})
    if (code.starts_with(free)) return;
  if (code.starts_with("fdiv") || code.find("@llvm.sqrt") != std::string_view::npos)
    ++work.divisions;
  else if (code.starts_with("fmul") || code.find("@llvm.fma") != std::string_view::npos)
    ++work.products;
  else
    ++work.others;
}

// Rounds of 16 independent operations each, in vectors of `bytes`; `even` and `odd` are what is
// done to s.
#define FX_PROBE(name, bytes, features, even, odd)                              \
  __attribute__((target(features), noinline)) inline float name(int rounds) {   \
    typedef float Vector __attribute__((vector_size(bytes)));                   \
    Vector sum[16];                                                             \
    for (int i = 0; i < 16; ++i) sum[i] = Vector{} + static_cast<float>(1 + i); \
    Vector factor = Vector{} + 0.999F;                                          \
    Vector more = Vector{} + 0.001F;                                            \
    for (int round = 0; round < rounds; ++round) {                              \
      asm volatile("" : "+x"(factor), "+x"(more));                              \
      for (int i = 0; i < 16; i += 2) {                                         \
        Vector s = sum[i];                                                      \
        sum[i] = even;                                                          \
        s = sum[i + 1];                                                         \
        sum[i + 1] = odd;                                                       \
      }                                                                         \
    }                                                                           \
    for (int i = 1; i < 16; ++i) sum[0] += sum[i];                              \
    return sum[0][0];                                                           \
  }
#define FX_PROBES(bytes, features)                                                 \
  FX_PROBE(products_##bytes, bytes, features, s* factor + more, s * factor + more) \
  FX_PROBE(divisions_##bytes, bytes, features, factor / s, factor / s)             \
  FX_PROBE(both_##bytes, bytes, features, s* factor + more, s + more)
FX_PROBES(64, "avx512f,avx512vl,avx512dq,fma")
FX_PROBES(32, "avx2,fma")
#undef FX_PROBES
#undef FX_PROBE

using Probe = float (*)(int rounds);

inline double rate(Probe probe_64, Probe probe_32) {
  constexpr int kRounds = 200000;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  const int threads = at::get_num_threads();
  double best = 0;
  for (int run = 0; run < 40; ++run) {
    const auto start = std::chrono::steady_clock::now();
    at::parallel_for(0, threads, 1, [&](std::int64_t, std::int64_t) {
      const float done = (wide ? probe_64 : probe_32)(kRounds);
      asm volatile("" : : "x"(done));
    });
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    best = std::max(best, 16.0 * kRounds * threads / time.count());
  }
  return best;
}

}  // namespace detail

inline VectorRates measure_vector_rates() {
  return {.products = detail::rate(detail::products_64, detail::products_32),
          .divisions = detail::rate(detail::divisions_64, detail::divisions_32),
          .all = detail::rate(detail::both_64, detail::both_32)};
}

/// From CompileStage "llvm". The loops over the elements are the blocks "main"; kernels with masks
/// everywhere have "rest" alone. A loop does as many elements as its counter grows by.
inline VectorCounts vector_work(const std::string& llvm) {
  const std::string_view wanted = llvm.find("\nmain") != std::string::npos ? "main" : "rest";
  VectorCounts all;
  VectorCounts loop;
  std::int64_t elements = 0;
  bool inside = false;
  const auto finish = [&] {
    if (inside && elements > 0) {
      const auto n = static_cast<double>(elements);
      all.products += loop.products / n;
      all.divisions += loop.divisions / n;
      all.others += loop.others / n;
    }
    loop = {};
    elements = 0;
  };
  std::istringstream lines(llvm);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ' && line[0] != ';' && line.find(':') != std::string::npos) {
      finish();
      inside = line.starts_with(wanted);
      continue;
    }
    if (!inside) continue;
    detail::count_instruction(line, loop);
    // The last sum of the block that is the counter's: the largest step from an index.
    if (const std::size_t at = line.find(" = add i64 %"); at != std::string::npos)
      if (const std::size_t comma = line.rfind(", "); std::isdigit(line[comma + 2]))
        elements = std::max<std::int64_t>(elements, std::stoll(line.substr(comma + 2)));
  }
  finish();
  return all;
}

}  // namespace fx::bench
