#include "fx/interpret/profiler.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace fx {
namespace {

std::int64_t bytes_of(const Value& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    return tensor.defined() ? tensor.numel() * static_cast<std::int64_t>(tensor.element_size()) : 0;
  }
  std::int64_t bytes = 0;
  if (is_sequence(value))
    for (const Value& item : elements(value)) bytes += bytes_of(item);
  return bytes;
}

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string shape_text(const NodeProfile& profile) {
  if (!profile.dtype) return profile.value;
  std::string out = "[";
  for (std::size_t i = 0; i < profile.shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(profile.shape[i]);
  return out + "]";
}

}  // namespace

Value ProfilingInterpreter::run_node(Node& node) {
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  if (range.isActive()) range.before(std::string(node.name()));
  const auto start = std::chrono::steady_clock::now();
  Value value = Interpreter::run_node(node);
  range.end();
  const double us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  const auto [entry, added] = index_.try_emplace(&node, profiles_.size());
  if (added) {
    NodeProfile profile;
    profile.name = node.name();
    profile.op = node.op();
    profile.target = node.target().str();
    profile.min_us = us;
    profiles_.push_back(std::move(profile));
  }
  NodeProfile& profile = profiles_[entry->second];
  ++profile.calls;
  profile.total_us += us;
  profile.min_us = std::min(profile.min_us, us);
  profile.bytes = bytes_of(value);
  profile.value = describe(value);
  profile.shape.clear();
  profile.dtype.reset();
  if (value.isTensor() && value.toTensor().defined()) {
    profile.shape = value.toTensor().sizes().vec();
    profile.dtype = value.toTensor().scalar_type();
  }
  return value;
}

const NodeProfile* ProfilingInterpreter::find(const Node& node) const {
  const auto found = index_.find(&node);
  return found == index_.end() ? nullptr : &profiles_[found->second];
}

double ProfilingInterpreter::total_us() const {
  double total = 0;
  for (const NodeProfile& profile : profiles_) total += profile.total_us;
  return total;
}

void ProfilingInterpreter::reset() {
  profiles_.clear();
  index_.clear();
}

std::string ProfilingInterpreter::table(bool slowest_first) const {
  std::vector<const NodeProfile*> order;
  for (const NodeProfile& profile : profiles_) order.push_back(&profile);
  if (slowest_first)
    std::stable_sort(order.begin(), order.end(), [](const NodeProfile* a, const NodeProfile* b) {
      return a->total_us > b->total_us;
    });
  constexpr std::size_t kColumns = 9;
  using Row = std::array<std::string, kColumns>;
  std::vector<Row> rows{
      {"name", "op", "target", "calls", "us/call", "share", "dtype", "shape", "bytes"}};
  const double total = total_us();
  for (const NodeProfile* profile : order)
    rows.push_back({profile->name, std::string(opcode_name(profile->op)), profile->target,
                    std::to_string(profile->calls),
                    fixed(profile->total_us / static_cast<double>(profile->calls), 2),
                    fixed(total > 0 ? 100 * profile->total_us / total : 0, 1) + "%",
                    profile->dtype ? std::string(short_dtype_name(*profile->dtype)) : "-",
                    shape_text(*profile), std::to_string(profile->bytes)});
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < kColumns; ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < kColumns; ++c) {
      const bool number = c == 3 || c == 4 || c == 5 || c == 8;
      const std::string pad(widths[c] - row[c].size(), ' ');
      out += (c ? "  " : "") + (number ? pad + row[c] : row[c] + pad);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  return out;
}

}  // namespace fx
