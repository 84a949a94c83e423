#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fx/capture/make_fx.h"
#include "fx/compile/compile.h"
#include "fx/interpret/compare.h"
#include "fx/passes/functionalize.h"

// Views, writes through them, and readers of what was written: every combination as a program of
// its own, on memory of its own and on that of its input, against eager.
namespace fx {
namespace {

using torch::indexing::Slice;

template <typename Fn>
struct Named {
  const char* name;
  Fn fn;
};
using View = Named<std::function<at::Tensor(const at::Tensor&)>>;
using Write = Named<std::function<void(at::Tensor)>>;
using Reader = Named<std::function<at::Tensor(const at::Tensor& base, const at::Tensor& view)>>;

// Of a tensor of sizes {4, 6}.
const std::vector<View>& views() {
  static const std::vector<View> all = {
      {"itself", [](const at::Tensor& x) { return x; }},
      {"alias", [](const at::Tensor& x) { return x.alias(); }},
      {"detach", [](const at::Tensor& x) { return x.detach(); }},
      {"view", [](const at::Tensor& x) { return x.view({24}); }},
      {"view of three", [](const at::Tensor& x) { return x.view({2, 2, 6}); }},
      {"reshape", [](const at::Tensor& x) { return x.reshape({6, 4}); }},
      {"reshape of a transpose", [](const at::Tensor& x) { return x.t().reshape({24}); }},
      {"t", [](const at::Tensor& x) { return x.t(); }},
      {"permute", [](const at::Tensor& x) { return x.permute({1, 0}); }},
      {"narrow", [](const at::Tensor& x) { return x.narrow(1, 2, 3); }},
      {"slice", [](const at::Tensor& x) { return x.index({Slice(), Slice(0, 6, 2)}); }},
      {"rows", [](const at::Tensor& x) { return x.index({Slice(1, 3)}); }},
      {"select", [](const at::Tensor& x) { return x.select(0, 1); }},
      {"last column", [](const at::Tensor& x) { return x.select(1, -1); }},
      {"diagonal", [](const at::Tensor& x) { return x.diagonal(1); }},
      {"unsqueeze", [](const at::Tensor& x) { return x.unsqueeze(1); }},
      {"squeeze", [](const at::Tensor& x) { return x.narrow(0, 2, 1).squeeze(0); }},
      {"chunk", [](const at::Tensor& x) { return x.chunk(2, 1)[1]; }},
      {"split", [](const at::Tensor& x) { return x.split(3, 0)[1]; }},
      {"unbind", [](const at::Tensor& x) { return x.unbind(1)[4]; }},
      {"unflatten", [](const at::Tensor& x) { return x.unflatten(1, {2, 3}); }},
      {"flatten", [](const at::Tensor& x) { return x.flatten(); }},
      {"expand", [](const at::Tensor& x) { return x.narrow(0, 0, 1).expand({3, 6}); }},
      {"unfold", [](const at::Tensor& x) { return x.unfold(1, 2, 2); }},
      {"as_strided", [](const at::Tensor& x) { return x.as_strided({2, 3}, {6, 2}, 1); }},
  };
  return all;
}

const std::vector<Write>& writes() {
  static const std::vector<Write> all = {
      {"add_", [](at::Tensor v) { v.add_(1); }},
      {"sub_", [](at::Tensor v) { v.sub_(0.5); }},
      {"mul_", [](at::Tensor v) { v.mul_(2); }},
      {"div_", [](at::Tensor v) { v.div_(4); }},
      {"relu_", [](at::Tensor v) { v.relu_(); }},
      {"zero_", [](at::Tensor v) { v.zero_(); }},
      {"fill_", [](at::Tensor v) { v.fill_(3); }},
      {"copy_", [](at::Tensor v) { v.copy_(torch::full({1}, 0.25)); }},
      {"clamp_", [](at::Tensor v) { v.clamp_(-0.5, 0.5); }},
      {"neg_", [](at::Tensor v) { v.neg_(); }},
      {"exp_", [](at::Tensor v) { v.exp_(); }},
      {"sigmoid_", [](at::Tensor v) { v.sigmoid_(); }},
      {"tanh_", [](at::Tensor v) { v.tanh_(); }},
      {"abs_", [](at::Tensor v) { v.abs_(); }},
      {"floor_", [](at::Tensor v) { v.floor_(); }},
      {"masked_fill_", [](at::Tensor v) { v.masked_fill_(v > 0, 7); }},
      {"add_ of itself", [](at::Tensor v) { v.add_(v); }},
      {"addcmul_", [](at::Tensor v) { v.addcmul_(v, v, 0.5); }},
      {"index_fill_", [](at::Tensor v) { v.index_fill_(0, torch::zeros({1}, at::kLong), 9); }},
      {"two writes", [](at::Tensor v) { v.add_(1).mul_(2); }},
  };
  return all;
}

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all = {
      {"sum", [](const at::Tensor& base, const at::Tensor&) { return base.sum(); }},
      {"chain", [](const at::Tensor& base, const at::Tensor&) { return (base * 2 + 1).relu(); }},
      {"of the view", [](const at::Tensor&, const at::Tensor& v) { return (v.sigmoid() + 1) * 2; }},
      {"both", [](const at::Tensor& b, const at::Tensor& v) { return b.mean() + v * 3 - 1; }},
      {"cat", [](const at::Tensor& b,
                 const at::Tensor& v) { return torch::cat({b.flatten(), v.flatten()}) * 2 + 1; }},
      {"softmax", [](const at::Tensor& b, const at::Tensor&) { return b.softmax(-1) + 1; }},
      {"another view", [](const at::Tensor& b, const at::Tensor&) { return b.t() * 3 + 1; }},
      {"the view itself", [](const at::Tensor&, const at::Tensor& v) { return v; }},
      {"clone", [](const at::Tensor& b, const at::Tensor&) { return b.clone() + 0.5; }},
      {"as double",
       [](const at::Tensor&, const at::Tensor& v) { return v.to(at::kDouble) * 2 + 1; }},
  };
  return all;
}

struct Program {
  const View& view;
  const Write& write;
  const Reader& reader;
  bool own;  // writes to memory that it made; else to its input

  std::vector<at::Tensor> operator()(const at::Tensor& x) const {
    const at::Tensor before = x * 3;
    const at::Tensor base = own ? x * 2 - 1 : x;
    const at::Tensor v = view.fn(base);
    const at::Tensor early = v + 1;
    write.fn(v);
    return {reader.fn(base, v), base * 1, early * 2, before};
  }
  std::string name() const {
    return std::string(view.name) + ", " + write.name + ", " + reader.name +
           (own ? "" : ", of the input");
  }
};

std::optional<std::vector<at::Tensor>> eager(const Program& program, at::Tensor& x) {
  try {
    return program(x);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

TEST(AliasPrograms, EqualEager) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const at::Tensor example = torch::randn({4, 6});
  const at::Tensor input = torch::randn({4, 6});
  int programs = 0;
  int wrong = 0;
  int refused = 0;
  for (const View& view : views())
    for (const Write& write : writes())
      for (const Reader& reader : readers()) {
        const Program program{view, write, reader, programs++ % 2 == 0};
        at::Tensor x = input.clone();
        const auto wanted = eager(program, x);
        std::shared_ptr<GraphModule> module;
        try {
          module = make_fx([&](const at::Tensor& t) { return program(t); }, {example.clone()});
        } catch (const std::exception& e) {
          ++refused;
          if (wanted) {
            ++wrong;
            ADD_FAILURE() << program.name() << ": not captured: " << e.what();
          }
          continue;
        }
        ASSERT_TRUE(wanted) << program.name() << ": captured what eager refuses";
        const Compiled fast = compile(module);
        fast(example.clone());
        at::Tensor y = input.clone();
        const Values actual = elements(fast(y));
        std::string difference = compare_values(x, y, {.rtol = 1.3e-6, .atol = 1e-5});
        for (std::size_t i = 0; i < wanted->size() && difference.empty(); ++i)
          difference = compare_values((*wanted)[i], actual.at(i), {.rtol = 1.3e-6, .atol = 1e-5});
        if (!difference.empty() && ++wrong <= 5)
          ADD_FAILURE() << program.name() << ": " << difference << "\n" << module->graph().str();
      }
  EXPECT_EQ(programs, 5000);
  EXPECT_EQ(wrong, 0);
  // Writes through a view whose elements share memory.
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, programs / 20);
}

TEST(AliasPrograms, FunctionalGraphsRefuseSharedMemory) {
  const at::NoGradGuard no_grad;
  const at::Tensor one = torch::ones({4}), two = torch::ones({4});
  auto gm = make_fx(
      [](at::Tensor x, at::Tensor y) {
        x.add_(1);
        return (y * 2).exp();
      },
      {one, two});
  functionalize(*gm, {one, two});
  for (const char* backend : {"interpret", "plan", "llvm"})
    for (const char* mode : {"default", "reduce-overhead"}) {
      const Compiled fast = compile(gm, {.backend = backend, .mode = mode});
      const at::Tensor x = one.clone();
      for (int call = 0; call < 3; ++call) {
        EXPECT_THROW(fast(x, x), RunError) << backend << ' ' << mode;
        EXPECT_TRUE(torch::allclose(fast(x, two).toTensor(), (two * 2).exp()));
        EXPECT_TRUE(torch::equal(x, one + (call + 1)));
      }
    }
}

}  // namespace
}  // namespace fx
