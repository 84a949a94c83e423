#include "fx/compile/kernel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "fx/compile/lower_table.h"
#include "fx/compile/unsupported.h"
#include "tests/compile/eager_check.h"
#include "tests/compile/random_args.h"

// The machine code of every operator with a lowering against eager, alone in its kernel: over
// random dtypes, sizes, special values, and ways in which the inputs lie in memory.
namespace fx::loops {
namespace {

enum class Layout : std::uint8_t { kAsIs, kGaps, kReversed, kLast };

at::Tensor laid_out(const at::Tensor& tensor, Layout layout) {
  if (tensor.dim() == 0) return tensor;
  at::Tensor out;
  switch (layout) {
    case Layout::kAsIs:
      return tensor;
    case Layout::kGaps: {
      // Every third element of something larger.
      std::vector<std::int64_t> sizes = tensor.sizes().vec();
      sizes.back() *= 3;
      out = at::zeros(sizes, tensor.options()).slice(-1, 1, sizes.back(), 3);
      break;
    }
    case Layout::kReversed: {
      // Dimensions in the opposite order in memory.
      std::vector<std::int64_t> sizes(tensor.sizes().rbegin(), tensor.sizes().rend());
      std::vector<std::int64_t> dims;
      for (std::int64_t d = tensor.dim(); d-- > 0;) dims.push_back(d);
      out = at::zeros(sizes, tensor.options()).permute(dims);
      break;
    }
    case Layout::kLast:
      // The second dimension innermost, as channels last.
      if (tensor.dim() < 2) return tensor;
      out = at::empty_like(tensor.movedim(1, -1), tensor.options(), at::MemoryFormat::Contiguous)
                .movedim(-1, 1);
      break;
  }
  return out.copy_(tensor);
}

std::vector<DimOrder> orders_of(std::span<const Tensor> outputs) {
  std::vector<DimOrder> orders;
  for (const Tensor& output : outputs) {
    orders.emplace_back();
    for (std::int64_t d = 0; d < output.dim(); ++d)
      orders.back().push_back(static_cast<std::uint8_t>(d));
  }
  return orders;
}

// Runs programs as kernels; counts those that are none.
class KernelEngine {
 public:
  explicit KernelEngine(Layout layout) : layout_(layout) {}

  ReferenceResult operator()(const TensorProgram& program, std::span<const Tensor> outputs,
                             std::span<const at::Tensor> inputs,
                             std::span<const c10::Scalar> scalars) {
    std::vector<at::Tensor> laid;
    for (const at::Tensor& input : inputs) laid.push_back(laid_out(input, layout_));
    if (std::optional<ReferenceResult> all = run(program, outputs, laid, scalars)) return *all;
    // Results of different sizes, each by itself.
    ReferenceResult result;
    for (const Tensor& output : outputs) {
      std::optional<ReferenceResult> one = run(program, {&output, 1}, laid, scalars);
      if (!one) one = evaluate(program, {&output, 1}, inputs, scalars);
      if (one->tripped) return *one;
      result.outputs.push_back(one->outputs[0]);
    }
    return result;
  }

  int ran = 0;
  std::map<std::string, int> refused;

 private:
  std::optional<ReferenceResult> run(const TensorProgram& program, std::span<const Tensor> outputs,
                                     std::span<const at::Tensor> inputs,
                                     std::span<const c10::Scalar> scalars) {
    std::vector<std::int64_t> bits;
    for (const c10::Scalar& scalar : scalars)
      bits.push_back(scalar.isFloatingPoint() ? std::bit_cast<std::int64_t>(scalar.toDouble())
                                              : scalar.toLong());
    try {
      const Kernel kernel("k", program, {outputs.begin(), outputs.end()}, orders_of(outputs));
      ReferenceResult result;
      c10::SmallVector<at::Tensor, 4> out;
      if (kernel.run(inputs, out, bits)) {
        result.outputs.assign(out.begin(), out.end());
        ++ran;
        return result;
      }
    } catch (const Unsupported& e) {
      ++refused[e.what()];
    }
    return std::nullopt;
  }

  Layout layout_;
};

class KernelRandom : public testing::TestWithParam<std::string> {};

TEST_P(KernelRandom, EqualsEager) {
  ASSERT_EQ(jit_problem(), "");
  const Overload& overload = overload_of(GetParam());
  const std::string& full = overload.handle.operator_name().name;
  const std::string op = full.substr(full.find("::") + 2);
  const char* wanted = std::getenv("FXCPP_KERNEL_CALLS");
  const int calls = wanted != nullptr ? std::atoi(wanted) : 24;
  int ran = 0;
  int wrong = 0;
  // Of some operators few calls are for kernels.
  for (int i = 0; (i < calls || (ran == 0 && i < 20 * calls)) && wrong < 3; ++i) {
    ArgMaker maker(std::hash<std::string>()(GetParam()) + 1000 + static_cast<std::uint64_t>(i));
    const Stack args = maker.make(overload);
    KernelEngine engine(static_cast<Layout>(i % 4));
    CheckOptions options;
    options.numbers = i % 3 == 2 ? Numbers::kPassed : Numbers::kConstants;
    options.exact = is_exact(op);
    options.elementwise = true;
    options.engine = std::ref(engine);
    const Check check = check_call(overload, args, options);
    ran += engine.ran;
    if (check.verdict == Verdict::kWrong) {
      ++wrong;
      ADD_FAILURE() << call_text(overload, args) << " layout " << i % 4 << "\n  " << check.text;
    }
  }
  EXPECT_GT(ran, 0) << "no call of " << GetParam() << " became a kernel";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Lowering& row : lowerings()) out.emplace_back(row.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Table, KernelRandom, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param.substr(6);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace fx::loops
