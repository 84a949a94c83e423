#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <string>

#include "fx/compile/compile.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "tests/random/program.h"

// Random programs, compiled: what they return, and what they leave in their inputs, is what the
// Interpreter gives. FXCPP_RANDOM_GRAPHS and FXCPP_RANDOM_SEED choose how many and which.
namespace fx::fuzz {
namespace {

std::int64_t number(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// How far results may be off, relative and absolute. Of a program, not of an operator: errors pass
// through the operators behind, so the least precise dtype in it counts for all. There are always
// layers of float; single operators on double are compared more closely in kernel_test.cpp.
double allowed(const ProgramOptions& options) {
  for (c10::ScalarType type : options.dtypes)
    if (type == c10::kBFloat16 || type == c10::kHalf) return 6e-2;
  return 1e-4;
}

std::string difference(const Value& wanted, const Value& found, double allowed) {
  if (wanted.isTensor() != found.isTensor()) return "another kind of value";
  if (!wanted.isTensor()) {
    if (!is_sequence(wanted)) {
      if (wanted.isGenericDict()) {
        const auto a = wanted.toGenericDict();
        const auto b = found.toGenericDict();
        for (const auto& item : a)
          if (std::string text = difference(item.value(), b.at(item.key()), allowed); !text.empty())
            return text;
      }
      return "";
    }
    const Values a = elements(wanted);
    const Values b = elements(found);
    if (a.size() != b.size()) return "another number of values";
    for (std::size_t i = 0; i < a.size(); ++i)
      if (std::string text = difference(a[i], b[i], allowed); !text.empty())
        return std::to_string(i) + ": " + text;
    return "";
  }
  const at::Tensor a = wanted.toTensor().detach();
  const at::Tensor b = found.toTensor().detach();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes())
    return describe(b) + " instead of " + describe(a);
  if (!a.is_floating_point()) return torch::equal(a, b) ? "" : "other integers";
  const at::Tensor x = a.to(torch::kDouble);
  const at::Tensor y = b.to(torch::kDouble);
  const at::Tensor good =
      (x == y) | (x.isnan() & y.isnan()) | ((x - y).abs() <= allowed + allowed * x.abs());
  if (good.all().item<bool>()) return "";
  const auto at = good.logical_not().reshape({-1}).nonzero()[0].item<std::int64_t>();
  return std::string(c10::toString(a.scalar_type())) + " element " + std::to_string(at) + ": " +
         std::to_string(y.reshape({-1})[at].item<double>()) + " instead of " +
         std::to_string(x.reshape({-1})[at].item<double>());
}

// Empty, or what is wrong.
std::string check_compiled(const Program& program, double allowed, std::uint64_t& codes) {
  torch::NoGradGuard no_grad;
  const Program mine = copy_of(program);
  const Compiled fast = compile(*mine.module);
  for (int call = 0; call < 3; ++call) {
    const Program fresh = copy_of(program);
    const Value wanted = Interpreter(*fresh.module).run(fresh.inputs);
    Program compiled = copy_of(program);
    const Value found = fast.forward(compiled.inputs);
    if (std::string text = difference(wanted, found, allowed); !text.empty())
      return "call " + std::to_string(call) + ", result " + text;
    const Values before(fresh.inputs.begin(), fresh.inputs.end());
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i].isTensor())
        if (std::string text = difference(before[i], compiled.inputs[i], allowed); !text.empty())
          return "call " + std::to_string(call) + ", input " + std::to_string(i) + " " + text;
    // What writes to attributes starts from others the next time.
    if (program.writes) break;
  }
  codes += fast.num_kernel_codes();
  return "";
}

TEST(RandomCompiled, ProgramsGiveWhatTheInterpreterGives) {
  const std::int64_t count = number("FXCPP_COMPILED_GRAPHS", 300);
  const std::int64_t first = number("FXCPP_RANDOM_SEED", 1);
  ProgramOptions options;
  options.operations = 12;
  options.special_percent = 0;
  options.drawing_programs_percent = 0;
  const std::vector<c10::ScalarType> dtypes[] = {
      {c10::kDouble, c10::kLong, c10::kInt, c10::kByte, c10::kBool},
      {c10::kFloat, c10::kDouble, c10::kLong, c10::kByte, c10::kBool},
      {c10::kFloat, c10::kBFloat16, c10::kLong, c10::kInt, c10::kBool}};
  int wrong = 0;
  std::uint64_t codes = 0;
  for (std::int64_t seed = first; seed < first + count && wrong < 5; ++seed) {
    options.dtypes = dtypes[seed % 3];
    const Program program = random_program(static_cast<std::uint64_t>(seed), options);
    std::string text;
    try {
      text = check_compiled(program, allowed(options), codes);
    } catch (const std::exception& e) {
      text = std::string("throws ") + e.what();
    }
    if (text.empty()) continue;
    ++wrong;
    ADD_FAILURE() << "FXCPP_RANDOM_SEED=" << seed << " FXCPP_COMPILED_GRAPHS=1: " << text << "\n"
                  << to_text(program.module->graph());
  }
  EXPECT_GT(codes, static_cast<std::uint64_t>(count) / 8) << "hardly anything became a kernel";
}

}  // namespace
}  // namespace fx::fuzz
