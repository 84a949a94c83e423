#include "fx/passes/pass_wrappers.h"

#include <algorithm>

#include "fx/base/error.h"

namespace fx {
namespace {

// A function of the user may make no claim; then a loop makes none either.
void add(std::optional<PassResult>& sum, const std::optional<PassResult>& result) {
  if (!sum || !result) {
    sum.reset();
    return;
  }
  sum->changed |= result->changed;
  sum->rewrites += result->rewrites;
  for (const auto& [rule, count] : result->rules) {
    const auto known = std::ranges::find(sum->rules, rule, [](const auto& r) { return r.first; });
    if (known == sum->rules.end())
      sum->rules.emplace_back(rule, count);
    else
      known->second += count;
  }
}

}  // namespace

Pass log_hook(const Pass& base, std::function<void(const std::string& line)> log) {
  return Pass(base.name(), [base, log = std::move(log)](GraphModule& module) {
    const std::optional<PassResult> result = base(module);
    std::string line = "Ran pass " + base.str();
    if (result)
      line += std::string(": ") + (result->changed ? "changed" : "unchanged") + ", " +
              std::to_string(result->rewrites) + " rewrites";
    log(line);
    return result;
  });
}

Pass loop_pass(const Pass& base, int n_iter) {
  if (n_iter < 1)
    throw PassError(ErrorCode::kBadPassOption,
                    "loop_pass must be given positive int n_iter, found " + std::to_string(n_iter));
  return Pass(base.name(), [base, n_iter](GraphModule& module) {
    std::optional<PassResult> sum = PassResult();
    for (int i = 0; i < n_iter; ++i) add(sum, base(module));
    return sum;
  });
}

Pass loop_pass(const Pass& base, std::function<bool(const GraphModule&)> predicate) {
  return Pass(base.name(), [base, predicate = std::move(predicate)](GraphModule& module) {
    std::optional<PassResult> sum = PassResult();
    while (predicate(module)) add(sum, base(module));
    return sum;
  });
}

std::vector<Pass> remove_pass(std::vector<Pass> passes, const std::vector<std::string>& names) {
  std::erase_if(passes, [&](const Pass& pass) {
    return std::find(names.begin(), names.end(), pass.name()) != names.end();
  });
  return passes;
}

std::vector<Pass> replace_pass(std::vector<Pass> passes, std::string_view name,
                               const Pass& replacement) {
  for (Pass& pass : passes)
    if (pass.name() == name) pass = replacement;
  return passes;
}

PassResult PassBase::operator()(GraphModule& module) {
  require(module);
  const PassResult result = call(module);
  ensures(module);
  return result;
}

void PassBase::require(const GraphModule&) const {}
void PassBase::ensures(const GraphModule&) const {}

Pass as_pass(std::string name, std::shared_ptr<PassBase> pass) {
  return Pass(std::move(name),
              [pass = std::move(pass)](GraphModule& module) { return (*pass)(module); });
}

}  // namespace fx
