// Operators whose kernels take sizes or indices on trust are refused before they run. All tensors
// end where memory that may be read ends: without a check, most of these calls end the process.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "fx/base/error.h"
#include "fx/ops/call.h"
#include "fx/ops/schemas.h"

namespace fx {
namespace {

using Sizes = std::vector<std::int64_t>;

/// A copy whose memory ends at a page that may not be read.
at::Tensor before_a_guard(const at::Tensor& tensor) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = tensor.nbytes(), inside = (bytes + page - 1) / page * page;
  void* memory =
      mmap(nullptr, inside + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  auto* begin = static_cast<char*>(memory);
  EXPECT_EQ(mprotect(begin + inside, page, PROT_NONE), 0);
  const auto release = [memory, inside, page](void*) { munmap(memory, inside + page); };
  return at::from_blob(begin + inside - bytes, tensor.sizes(), release, tensor.options())
      .copy_(tensor);
}

Value floats(const Sizes& sizes) { return before_a_guard(at::rand(sizes).add_(0.5)); }
Value ints(const Sizes& sizes, std::int64_t value) {
  return before_a_guard(at::full(sizes, value, at::kLong));
}
Value list(std::initializer_list<Sizes> all) {
  c10::List<at::Tensor> tensors;
  for (const Sizes& sizes : all) tensors.push_back(floats(sizes).toTensor());
  return tensors;
}
Value numbers(Sizes values) { return values; }
Value flags() { return c10::List<bool>({true, true, true}); }

/// A call that fits, and how one argument after the other can fail to.
struct Checked {
  const char* name;
  std::function<Values()> args;
  std::vector<std::pair<std::size_t, std::function<Value()>>> wrong;
  std::vector<const char*> keywords = {};  ///< of the last arguments
};

auto of(const Sizes& sizes) {
  return [sizes] { return floats(sizes); };
}
auto undefined() {
  return [] { return Value(); };
}

// Channels, and rows, are so many that what is missing lies beyond the page.
constexpr std::int64_t kMany = 2048;

std::vector<Checked> checked_calls() {
  const Sizes x{2, kMany, 2, 2}, c{kMany}, few{2};
  const auto norm = [=] { return Values{floats(x), floats(c), floats(c), floats(c), floats(c)}; };
  const auto with = [](const std::function<Values()>& first, Values rest) {
    return [first, rest] {
      Values args = first();
      args.insert(args.end(), rest.begin(), rest.end());
      return args;
    };
  };
  const auto each = [=](std::initializer_list<std::size_t> positions) {
    std::vector<std::pair<std::size_t, std::function<Value()>>> wrong;
    for (std::size_t position : positions) wrong.emplace_back(position, of(few));
    return wrong;
  };
  std::vector<Checked> calls;
  for (const char* name : {"aten::native_batch_norm", "aten::_native_batch_norm_legit",
                           "aten::_native_batch_norm_legit_functional"})
    for (const bool training : {false, true})
      calls.push_back({name, with(norm, {training, 0.1, 1e-5}), each({1, 2, 3, 4})});
  for (const char* name :
       {"aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update",
        "aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional"})
    calls.push_back({name, with(norm, {0.1, 1e-5}), each({1, 2, 3, 4})});
  calls.push_back({"aten::_native_batch_norm_legit.no_stats",
                   [=] { return Values{floats(x), floats(c), floats(c), true, 0.1, 1e-5}; },
                   each({1, 2})});
  calls.push_back({"aten::batch_norm_update_stats",
                   [=] { return Values{floats(x), floats(c), floats(c), 0.1}; }, each({1, 2})});
  for (const bool training : {false, true}) {
    Checked call{"aten::native_batch_norm_backward",
                 [=] {
                   return Values{floats(x), floats(x), floats(c), floats(c), floats(c),
                                 floats(c), floats(c), training,  1e-5,      flags()};
                 },
                 each({2})};
    call.wrong.emplace_back(0, of({1, kMany, 2, 2}));
    for (std::size_t i : {3, 4}) call.wrong.emplace_back(training ? i + 2 : i, of(few));
    for (std::size_t i : {3, 4}) call.wrong.emplace_back(training ? i + 2 : i, undefined());
    calls.push_back(call);
    call.name = "aten::batch_norm_backward";
    call.args = [args = call.args] {
      Values more = args();
      more.push_back(before_a_guard(at::empty({0}, at::kByte)));
      return more;
    };
    calls.push_back(call);
  }
  calls.push_back({"aten::native_layer_norm_backward",
                   [=] {
                     return Values{
                         floats({kMany, 3}), floats({kMany, 3}), numbers({3}), floats({kMany, 1}),
                         floats({kMany, 1}), floats({3}),        floats({3}),  flags()};
                   },
                   {{0, of({1, 3})},
                    {3, of({1, 1})},
                    {4, of({1, 1})},
                    {3, [] { return floats({1, 1}).toTensor().expand({kMany, 1}); }}}});
  calls.push_back({"aten::_log_softmax_backward_data",
                   [] {
                     return Values{floats({kMany, 3}), floats({kMany, 3}), 1,
                                   static_cast<std::int64_t>(at::kFloat)};
                   },
                   {{0, of({1, 3})}, {1, of({1, 3})}}});
  const auto pool = [](Sizes in, Sizes out, std::vector<Value> options) {
    return [=] {
      Values args{floats(out), floats(in)};
      args.insert(args.end(), options.begin(), options.end());
      args.push_back(ints(out, 15));
      return args;
    };
  };
  const auto bad_indices = [](std::size_t at, const Sizes& out, std::int64_t count) {
    return std::vector<std::pair<std::size_t, std::function<Value()>>>{
        {at, [=] { return ints(out, count); }},
        {at, [=] { return ints(out, std::int64_t{1} << 40); }},
        {at, [=] { return ints(out, -1); }},
        {at, [=] { return ints({1, 1, 1}, 0); }}};
  };
  const Value two = numbers({2, 2}), none = numbers({0, 0}), one = numbers({1, 1});
  const Value two3 = numbers({2, 2, 2}), none3 = numbers({0, 0, 0}), one3 = numbers({1, 1, 1});
  calls.push_back({"aten::max_pool2d_with_indices_backward",
                   pool({2, 3, 4, 4}, {2, 3, 2, 2}, {two, two, none, one, false}),
                   bad_indices(7, {2, 3, 2, 2}, 16)});
  calls.push_back({"aten::max_pool3d_with_indices_backward",
                   pool({2, 3, 4, 4, 4}, {2, 3, 2, 2, 2}, {two3, two3, none3, one3, false}),
                   bad_indices(7, {2, 3, 2, 2, 2}, 64)});
  calls.push_back({"aten::adaptive_max_pool2d_backward", pool({2, 3, 4, 4}, {2, 3, 2, 2}, {}),
                   bad_indices(2, {2, 3, 2, 2}, 16)});
  calls.push_back({"aten::adaptive_max_pool3d_backward", pool({2, 3, 4, 4, 4}, {2, 3, 2, 2, 2}, {}),
                   bad_indices(2, {2, 3, 2, 2, 2}, 64)});
  calls.push_back({"aten::nll_loss_backward",
                   [] {
                     return Values{floats({3}), floats({3, 4}), ints({3}, 2), Value(),
                                   0,           -100,           floats({})};
                   },
                   {{2, [] { return ints({3}, 4); }}, {2, [] { return ints({3}, -1); }}}});
  const Sizes q{8, 4, 16, 16}, k{8, 2, 64, 16};
  const Value scale;
  std::vector<std::pair<std::size_t, std::function<Value()>>> no_attention{
      {1, of({1, 2, 64, 16})}, {2, of({1, 2, 64, 16})}, {1, of({8, 1, 64, 16})},
      {2, of({8, 1, 64, 16})}, {1, of({8, 3, 64, 16})}, {2, of({8, 2, 1, 16})},
      {2, of({8, 2, 64, 8})},  {1, of({8, 2, 64, 8})},  {1, of({8, 0, 64, 16})},
      {1, of({64, 16})}};
  Checked attention{
      "aten::_scaled_dot_product_flash_attention_for_cpu",
      [=] { return Values{floats(q), floats(k), floats(k), 0.0, false, floats({16, 64})}; },
      no_attention,
      {"attn_mask"}};
  attention.wrong.emplace_back(5, of({2, 64}));
  attention.wrong.emplace_back(5, of({16, 2}));
  attention.wrong.emplace_back(5, of({3, 1, 16, 64}));
  calls.push_back(attention);
  Checked backward{"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                   [=] {
                     return Values{floats(q), floats(q),          floats(q), floats(q),
                                   floats(q), floats({8, 4, 16}), 0.0,       false};
                   },
                   {{0, of({1, 1, 16, 16})}, {4, of({1, 1, 16, 16})}, {5, of({1, 1, 16})}}};
  for (const auto& [position, value] : no_attention)
    backward.wrong.emplace_back(position + 1, value);
  calls.push_back(backward);
  const std::int64_t h = 64;
  const Sizes wi{4 * h, 8}, wh{4 * h, h}, b{4 * h};
  calls.push_back({"aten::mkldnn_rnn_layer",
                   [=] {
                     return Values{floats({5, 32, 8}),
                                   floats(wi),
                                   floats(wh),
                                   floats(b),
                                   floats(b),
                                   floats({32, h}),
                                   floats({32, h}),
                                   false,
                                   numbers({}),
                                   2,
                                   h,
                                   1,
                                   true,
                                   false,
                                   false,
                                   false};
                   },
                   {{0, of({5, 8})},
                    {1, of({4 * h, 2})},
                    {1, of({4, 8})},
                    {2, of({4 * h, 2})},
                    {2, of({4, h})},
                    {3, of({4})},
                    {4, of({4})},
                    {5, of({1, h})},
                    {6, of({1, h})},
                    {8, [] { return numbers({3, 3}); }},
                    {10, [] { return Value(1000); }}}});
  const auto lstm = [=](const Sizes& state) { return list({state, state}); };
  const Sizes s{1, 32, h};
  const auto weights = [=](const Sizes& first, const Sizes& second, const Sizes& bias) {
    return [=] { return list({first, second, b, bias}); };
  };
  std::vector<std::pair<std::size_t, std::function<Value()>>> no_weights{
      {0, weights({4 * h, 2}, wh, b)},
      {0, weights({4, 8}, wh, b)},
      {0, weights(wi, {4 * h, 2}, b)},
      {0, weights(wi, {4, h}, b)},
      {0, weights(wi, wh, {1})}};
  Checked layers{
      "aten::lstm.input",
      [=] {
        return Values{
            floats({5, 32, 8}), lstm(s), weights(wi, wh, b)(), true, 1, 0.0, false, false, false};
      },
      {{0, of({5, 320, 8})},
       {1, [=] { return lstm({1, 1, h}); }},
       {1, [=] { return list({s, {1, 1, h}}); }},
       {1, [=] { return list({s, {1, 32, 2}}); }},
       {1, [=] { return lstm({1, 32, 10 * h}); }},
       {8, [] { return Value(true); }}}};
  Checked packed{"aten::lstm.data",
                 [=] {
                   return Values{floats({160, 8}),
                                 ints({5}, 32),
                                 lstm(s),
                                 weights(wi, wh, b)(),
                                 true,
                                 1,
                                 0.0,
                                 false,
                                 false};
                 },
                 {{2, [=] { return lstm({1, 1, h}); }}, {2, [=] { return lstm({1, 32, 2}); }}}};
  for (const auto& [position, value] : no_weights) {
    layers.wrong.emplace_back(position + 2, value);
    packed.wrong.emplace_back(position + 3, value);
  }
  calls.push_back(layers);
  calls.push_back(packed);
  return calls;
}

Value call_with(const Checked& checked, Values args) {
  KwValues kwargs;
  for (auto keyword = checked.keywords.rbegin(); keyword != checked.keywords.rend(); ++keyword) {
    kwargs.insert(kwargs.begin(), {Symbol(*keyword), args.back()});
    args.pop_back();
  }
  return call(*Function::get(checked.name), std::move(args), std::move(kwargs));
}

TEST(KernelChecks, CallsThatFitRunAndOthersAreRefused) {
  const at::NoGradGuard no_grad;
  for (const Checked& checked : checked_calls()) {
    EXPECT_NO_THROW(call_with(checked, checked.args())) << checked.name;
    for (std::size_t i = 0; i < checked.wrong.size(); ++i) {
      Values args = checked.args();
      args[checked.wrong[i].first] = checked.wrong[i].second();
      try {
        call_with(checked, std::move(args));
        ADD_FAILURE() << checked.name << " ran with wrong value " << i;
      } catch (const RunError& error) {
        EXPECT_TRUE(error.code() == ErrorCode::kShapeMismatch ||
                    error.code() == ErrorCode::kWrongType)
            << error.what();
        EXPECT_NE(std::string(error.what()).find("argument '"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("wanted"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(KernelChecks, EveryRowIsTried) {
  std::set<std::string> tried, rows;
  for (const Checked& checked : checked_calls()) {
    const std::string name = checked.name;
    tried.insert(name.substr(0, name.find('.')));
  }
  for (const std::string& name : registered_operators())
    for (const Overload& overload : OpInfo::of(*Function::get(name)).overloads)
      if (overload.check) rows.insert(std::string(overload.check->name));
  EXPECT_EQ(tried, rows);
}

TEST(KernelChecks, ArgumentsAreFoundInEveryOverload) {
  for (const std::string& name : registered_operators())
    for (const Overload& overload : OpInfo::of(*Function::get(name)).overloads) {
      if (!overload.check) continue;
      std::size_t missing = 0;
      for (int position : overload.check->positions) missing += position < 0;
      // Statistics and what one of the two forms of lstm has.
      const bool optional =
          name.find("batch_norm") != std::string::npos || name.find("lstm") != std::string::npos;
      EXPECT_TRUE(missing == 0 || (optional && missing <= 2)) << name << " " << missing;
    }
}

TEST(KernelChecks, AMessageSaysWhatWasFoundAndWanted) {
  const at::Tensor x = at::rand({2, 3, 4, 4}), c = at::rand({3});
  try {
    call(*Function::get("aten::native_batch_norm"), {x, at::rand({2}), c, c, c, false, 0.1, 1e-5});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("aten::native_batch_norm: argument 'weight' has sizes [2], wanted [3]"),
              std::string::npos)
        << error.what();
  }
}

TEST(KernelChecks, WhatIsIgnoredMayBeOutside) {
  const Function& backward = *Function::get("aten::nll_loss_backward");
  const at::Tensor x = at::rand({2, 4}).log_softmax(1), target = at::tensor({-100, 3}, at::kLong);
  const Values args{at::ones({2}), x, target, Value(), 0, -100, at::tensor(1.0f)};
  const at::Tensor wanted =
      at::nll_loss_backward(at::ones({2}), x, target, {}, 0, -100, at::tensor(1.0f));
  EXPECT_TRUE(at::equal(call(backward, args).toTensor(), wanted));
}

TEST(KernelChecks, IndicesOfEveryLayoutAreRead) {
  const Function& backward = *Function::get("aten::adaptive_max_pool2d_backward");
  const at::Tensor grad = at::rand({2, 3, 2, 2}), x = at::rand({2, 3, 4, 4});
  const at::Tensor indices = at::randint(16, {2, 3, 2, 2}, at::kLong);
  for (const at::Tensor& layout : {indices, indices.contiguous(at::MemoryFormat::ChannelsLast),
                                   indices.transpose(2, 3).contiguous().transpose(2, 3)}) {
    EXPECT_TRUE(at::equal(call(backward, {grad, x, layout}).toTensor(),
                          at::adaptive_max_pool2d_backward(grad, x, layout)));
    for (const std::int64_t wrong : {-1, 16}) {
      for (const std::int64_t place : {0, 1}) {
        const at::Tensor changed = layout.clone();
        changed[place][2 * place][place][place] = wrong;
        EXPECT_EQ(changed.strides(), layout.strides());
        EXPECT_THROW(call(backward, {grad, x, changed}), RunError);
      }
      const at::Tensor one = at::full({1, 3, 1, 2}, wrong, at::kLong).expand({2, 3, 2, 2});
      EXPECT_THROW(call(backward, {grad, x, one}), RunError);
    }
  }
}

TEST(KernelChecks, TensorsWithoutValuesPass) {
  const at::Tensor grad = at::empty({2, 3, 2, 2}, at::kMeta),
                   x = at::empty({2, 3, 4, 4}, at::kMeta);
  const at::Tensor indices = at::empty({2, 3, 2, 2}, at::dtype(at::kLong).device(at::kMeta));
  EXPECT_EQ(call(*Function::get("aten::max_pool2d_with_indices_backward"),
                 {grad, x, numbers({2, 2}), numbers({2, 2}), numbers({0, 0}), numbers({1, 1}),
                  false, indices})
                .toTensor()
                .sizes(),
            x.sizes());
}

}  // namespace
}  // namespace fx
