#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fx/compile/compile.h"
#include "fx/graph/text.h"
#include "fx/interpret/interpreter.h"
#include "tests/random/minimise.h"
#include "tests/random/oracles.h"
#include "tests/random/outcome.h"
#include "tests/random/program.h"

// Random programs, compiled as they are or after all passes in random order: what they return, and
// what they leave in their inputs, is what the Interpreter gives for the untouched program.
// One element in eight is a special value: nan, an infinity, -0.0, subnormal, extreme.
// FXCPP_COMPILED_GRAPHS and FXCPP_RANDOM_SEED choose how many and which.
namespace fx::fuzz {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
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
    return fx::describe(b) + " instead of " + fx::describe(a);
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

// Whether an operator adds up or multiplies many elements: where extreme ones meet, the order
// decides whether there is an overflow on the way, and nobody promises one. Of those that square
// (`squares`) infinities, too, whose mean is one or NaN.
bool combines_many(const Graph& graph, bool squares) {
  static constexpr std::string_view kSquares[] = {"norm", "var", "std", "prod", "cosine", "pow"};
  static constexpr std::string_view kSums[] = {"sum",  "mean",   "mm",   "matmul", "linear",
                                               "conv", "Linear", "Conv", "pool",   "Pool"};
  const auto any = [](std::string_view name, std::span<const std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    });
  };
  for (const Node& node : graph.nodes()) {
    const std::string name = node.target().str();
    if (any(name, kSquares) || (!squares && any(name, kSums))) return true;
  }
  return false;
}

// Takes from all memory that the program starts with what such operators have no one answer for.
void keep_to_promises(Program& program) {
  bool sums = false;
  bool squares = false;
  for (const auto& module : program.module->modules())
    if (const auto* graph = dynamic_cast<const GraphModule*>(module.get())) {
      sums |= combines_many(graph->graph(), false);
      squares |= combines_many(graph->graph(), true);
    } else {
      squares = true;  // modules of torch::nn: norms among them
    }
  if (!sums && !squares) return;
  const torch::NoGradGuard no_grad;
  const auto tame = [&](const at::Tensor& tensor) {
    if (!tensor.is_floating_point()) return;
    const auto size = static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.element_size());
    at::Tensor all = at::empty({0}, tensor.options().requires_grad(false))
                         .set_(tensor.storage(), 0, {size}, {1});
    // The reciprocal of a tiny number is an extreme one.
    all.copy_(torch::where((all.abs() < 1e-3) & (all != 0), 1e-3, all));
    all.copy_(torch::where(all.isinf(), squares ? torch::full_like(all, 1000) : all,
                           all.clamp(-1000, 1000)));
  };
  for (const Value& input : program.inputs)
    if (input.isTensor()) tame(input.toTensor());
  for (const auto& [path, tensor] : state_of(*program.module)) tame(tensor);
}

// Empty, or what is wrong. `program` after `passes` is compiled.
std::string check_compiled(const Program& program, std::span<const CheckedPass> passes,
                           double allowed, std::uint64_t& codes) {
  const torch::NoGradGuard no_grad;
  try {
    const Program rewritten = after_passes(program, passes);
    const Compiled fast = compile(*copy_of(rewritten).module);
    for (int call = 0; call < 3; ++call) {
      const Program fresh = copy_of(program);
      const Value wanted = Interpreter(*fresh.module).run(fresh.inputs);
      const Program compiled = copy_of(rewritten);
      const Value found = fast.forward(compiled.inputs);
      if (std::string text = difference(wanted, found, allowed); !text.empty())
        return "call " + std::to_string(call) + ", result " + text;
      for (std::size_t i = 0; i < fresh.inputs.size(); ++i) {
        if (!fresh.inputs[i].isTensor()) continue;
        if (std::string text = difference(fresh.inputs[i], compiled.inputs[i], allowed);
            !text.empty())
          return "call " + std::to_string(call) + ", input " + std::to_string(i) + " " + text;
      }
      // What writes to attributes starts from others the next time.
      if (program.writes) break;
    }
    codes += fast.num_kernel_codes();
  } catch (const std::exception& e) {
    return std::string("throws ") + e.what();
  }
  return "";
}

// Which passes run before a program is compiled: none in half of them.
std::vector<CheckedPass> passes_before(std::uint64_t seed, const Program& program) {
  if (seed % 2 == 0) return {};
  Choices choices(seed);
  return random_passes(choices, program, false);
}

TEST(RandomCompiled, ProgramsGiveWhatTheInterpreterGives) {
  const std::uint64_t count = number("FXCPP_COMPILED_GRAPHS", 300);
  const std::uint64_t first = number("FXCPP_RANDOM_SEED", 1);
  ProgramOptions options;
  options.operations = 12;
  options.special_percent = 12;
  options.drawing_programs_percent = 0;
  const std::vector<c10::ScalarType> dtypes[] = {
      {c10::kDouble, c10::kLong, c10::kInt, c10::kByte, c10::kBool},
      {c10::kFloat, c10::kDouble, c10::kLong, c10::kByte, c10::kBool},
      {c10::kFloat, c10::kBFloat16, c10::kLong, c10::kInt, c10::kBool},
      {c10::kFloat, c10::kHalf, c10::kLong, c10::kInt, c10::kBool}};
  std::uint64_t codes = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    options.dtypes = dtypes[seed / 2 % 4];
    Program program = random_program(seed, options);
    keep_to_promises(program);
    const std::vector<CheckedPass> passes = passes_before(seed, program);
    const Check check = [&, tolerance = allowed(options)](const Program& other) {
      return check_compiled(other, passes, tolerance, codes);
    };
    if (std::string text = check(program); !text.empty()) {
      std::string pipeline;
      for (const CheckedPass& checked : passes) pipeline += checked.pass.str() + ", ";
      FAIL() << report(program, {"compiled after " + pipeline, text, check, "compile"},
                       "FXCPP_RANDOM_SEED=" + std::to_string(seed) + " FXCPP_COMPILED_GRAPHS=1");
    }
  }
  EXPECT_GT(codes, count / 8) << "hardly anything became a kernel";
}

}  // namespace
}  // namespace fx::fuzz
