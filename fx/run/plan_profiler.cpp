#include "fx/run/plan_profiler.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace fx {
namespace {

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

}  // namespace

double memory_bandwidth() {
  constexpr std::int64_t kFloats = std::int64_t{16} << 20;
  const at::NoGradGuard no_grad;
  const at::Tensor from = at::ones({kFloats}, at::TensorOptions(at::kFloat).device(at::kCPU));
  at::Tensor to = at::empty_like(from);
  to.copy_(from);  // touches all pages
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    to.copy_(from);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * sizeof(float) * kFloats / seconds.count());
  }
  return best;
}

void PlanProfiler::on_step(const StepEvent& event) {
  const auto [entry, added] = index_.try_emplace({&event.plan, event.step}, rows_.size());
  const double us = std::chrono::duration<double, std::micro>(event.time).count();
  if (added) {
    const Step& step = event.plan.steps()[event.step];
    rows_.push_back({.name = std::string(step.node->name()),
                     .target = std::string(step.target.str()),
                     .min_us = us});
  }
  Row& row = rows_[entry->second];
  ++row.calls;
  row.total_us += us;
  row.min_us = std::min(row.min_us, us);
  row.bytes_read = event.bytes_read;
  row.bytes_written = event.bytes_written;
}

double PlanProfiler::total_us() const {
  double total = 0;
  for (const Row& row : rows_) total += row.total_us;
  return total;
}

void PlanProfiler::reset() {
  rows_.clear();
  index_.clear();
}

std::string PlanProfiler::table(double bandwidth) const {
  constexpr std::size_t kColumns = 8;
  using Cells = std::array<std::string, kColumns>;
  std::vector<Cells> lines{
      {"step", "target", "calls", "us", "share", "bytes", "GB/s", "of memory"}};
  double all = 0;
  for (const Row& row : rows_) all += row.min_us;
  for (const Row& row : rows_) {
    const auto bytes = static_cast<double>(row.bytes_read + row.bytes_written);
    const double rate = row.min_us > 0 ? bytes / row.min_us * 1e6 : 0;
    lines.push_back({row.name, row.target, std::to_string(row.calls), fixed(row.min_us, 2),
                     fixed(all > 0 ? 100 * row.min_us / all : 0, 1) + "%",
                     std::to_string(row.bytes_read + row.bytes_written), fixed(rate / 1e9, 2),
                     bandwidth > 0 ? fixed(100 * rate / bandwidth, 1) + "%" : "-"});
  }
  std::array<std::size_t, kColumns> widths{};
  for (const Cells& line : lines)
    for (std::size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string out;
  for (const Cells& line : lines) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      const std::string pad(widths[c] - line[c].size(), ' ');
      out += (c ? "  " : "") + (c < 2 ? line[c] + pad : pad + line[c]);
    }
    out += '\n';
  }
  if (bandwidth > 0)
    out += "memory copies at " + fixed(bandwidth / 1e9, 1) +
           " GB/s here; what stays in caches may be faster\n";
  return out;
}

}  // namespace fx
