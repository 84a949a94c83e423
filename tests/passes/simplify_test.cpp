// The rules of simplify over dtypes, special values and layouts, bit by bit, and their gradients.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "fx/passes/pass_manager.h"
#include "fx/passes/simplify.h"
#include "tests/passes/modules.h"

namespace fx {
namespace {

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte,
                                      at::kChar,  at::kShort,  at::kInt,  at::kLong,     at::kBool};

at::ScalarType integer_of_size(std::size_t bytes) {
  return bytes == 8 ? at::kLong : bytes == 4 ? at::kInt : bytes == 2 ? at::kShort : at::kByte;
}

// All values of types of up to 16 bits; of the others special ones and random bits.
at::Tensor values_of(at::ScalarType dtype) {
  const std::size_t size = at::elementSize(dtype);
  if (dtype == at::kBool) return torch::tensor({0, 1, 1, 0}, at::kBool).reshape({2, 2});
  if (size == 1) return torch::arange(256, at::kInt).to(at::kByte).view(dtype).reshape({16, 16});
  if (size == 2)
    return torch::arange(65536, at::kInt).to(at::kShort).view(dtype).reshape({256, 256});
  const at::ScalarType bits = integer_of_size(size);
  const at::Tensor random =
      torch::randint(std::numeric_limits<std::int64_t>::min(),
                     std::numeric_limits<std::int64_t>::max(), {4000}, at::kLong)
          .to(bits)
          .view(dtype);
  at::Tensor special;
  if (at::isFloatingType(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    special =
        torch::tensor(
            {0.0,     -0.0,     1.0,          -1.0,         0.5,     -0.5,    1.5,      2.5,
             -2.5,    infinity, -infinity,    std::nan(""), 65504.0, 65536.0, 3.4e38,   -3.4e38,
             1.2e-38, -1.2e-38, 1e-45,        -1e-45,       1e-40,   1.7e308, 2.3e-308, 5e-324,
             -5e-324, 1e-310,   2147483648.0, 9.3e18,       -9.3e18, 255.5,   127.5,    1e-5},
            at::kDouble)
            .to(dtype);
  } else {
    special =
        torch::tensor(
            {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{127},
             std::int64_t{-128}, std::int64_t{255}, std::int64_t{32767}, std::int64_t{-32768},
             std::int64_t{2147483647}, std::int64_t{-2147483648}, std::int64_t{16777217},
             std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
             std::int64_t{1} << 53, (std::int64_t{1} << 53) + 1, std::int64_t{2}},
            at::kLong)
            .to(dtype);
  }
  const at::Tensor all = torch::cat({special, random});
  return all.slice(0, 0, all.numel() / 8 * 8).reshape({8, -1});
}

std::vector<at::Tensor> layouts_of(const at::Tensor& values) {
  return {values,
          values.t(),
          values.slice(1, 0, INT64_MAX, 2),
          values.slice(0, 0, 0),
          values[0][0],
          values.slice(1, 0, 1).expand({-1, 3}),
          values.slice(1, 1, 2)};
}

// The same bits, those of NaNs apart, dtype, sizes and strides.
std::string difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type()) return "dtypes";
  if (a.sizes() != b.sizes()) return "sizes";
  if (a.strides() != b.strides()) return "strides";
  const at::ScalarType bits = integer_of_size(a.element_size());
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  at::Tensor same = x.view(bits) == y.view(bits);
  if (at::isFloatingType(a.scalar_type())) same = same | (x.isnan() & y.isnan());
  return same.all().item<bool>() ? "" : "values";
}

struct Case {
  const char* rule;
  const char* calls;  // of %x; the result is %y
  std::set<at::ScalarType> dtypes = {std::begin(kDtypes), std::end(kDtypes)};
};

const std::set<at::ScalarType> kFloats = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
const std::set<at::ScalarType> kNumbers = {at::kFloat,    at::kDouble, at::kHalf,
                                           at::kBFloat16, at::kByte,   at::kChar,
                                           at::kShort,    at::kInt,    at::kLong};
const std::set<at::ScalarType> kIntegers = {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong};

std::string twice(const std::string& call, const std::string& options = "") {
  return "%a = " + call + "](args = (%x" + options + "))\n%y = " + call + "](args = (%a" + options +
         "))\n";
}

std::shared_ptr<GraphModule> module_of(const std::string& calls) {
  return parse_module(("%x = placeholder[target=x]\n" + calls + "return %y\n").c_str());
}

// What is counted when the pass has run on a module that was run on `x`.
std::map<std::string, std::int64_t> simplified(GraphModule& module, const at::Tensor& x) {
  const PipelineResult result =
      run_passes(module, "shape_prop,simplify", {.example_inputs = Values{x}});
  std::map<std::string, std::int64_t> counts;
  for (const auto& [rule, count] : result.passes[1].rules) counts[std::string(rule)] = count;
  return counts;
}

// Runs before and after; whether the rule fired.
bool check(const std::string& rule, const std::string& calls, const at::Tensor& x) {
  const auto module = module_of(calls);
  const at::Tensor before = module->forward({x}).toTensor();
  const auto counts = simplified(*module, x);
  const at::Tensor after = module->forward({x}).toTensor();
  EXPECT_EQ(difference(before, after), "") << calls << x.dtype() << x.sizes() << x.strides() << "\n"
                                           << module->graph();
  return counts.contains(rule);
}

TEST(Simplify, ValuesKeepEveryBit) {
  torch::manual_seed(0);
  std::vector<std::pair<Case, std::string>> cases;
  const auto add = [&](Case c) { cases.emplace_back(c, c.calls); };
  const auto add_twice = [&](const char* rule, const std::string& call, const std::string& options,
                             std::set<at::ScalarType> dtypes) {
    cases.emplace_back(Case{rule, "", std::move(dtypes)}, twice(call, options));
  };
  for (const char* name : {"abs", "relu", "floor", "ceil", "trunc", "round"})
    add_twice("idempotent", std::string("call_function[target=aten::") + name, "", kNumbers);
  const std::set<at::ScalarType> all = {std::begin(kDtypes), std::end(kDtypes)};
  for (const char* name : {"sign", "clone"})
    add_twice("idempotent", std::string("call_function[target=aten::") + name, "", all);
  add_twice("idempotent", "call_function[target=aten::clamp", ", -1, 5", all);
  add_twice("idempotent", "call_function[target=aten::clamp", ", 5, 1", all);
  add_twice("idempotent", "call_function[target=aten::clamp", ", 0.1, 2.5", all);
  add_twice("idempotent", "call_function[target=torch.nn.functional.relu6", "", kNumbers);
  add_twice("double_negation", "call_function[target=aten::bitwise_not", "",
            {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kBool});
  add_twice("double_negation", "call_function[target=aten::logical_not", "", {at::kBool});
  add_twice("double_negation", "call_function[target=aten::neg", "", kNumbers);
  std::set<at::ScalarType> with_sign = kNumbers;
  with_sign.erase(at::kByte);
  add({"abs_of_neg",
       "%a = call_function[target=aten::neg](args = (%x,))\n%y = call_method[target=abs](args = "
       "(%a,))\n",
       with_sign});
  add({"relu_of_abs",
       "%a = call_function[target=aten::abs](args = (%x,))\n%y = "
       "call_function[target=torch.relu](args = (%a,))\n",
       kFloats});
  add({"abs_of_relu",
       "%a = call_function[target=aten::relu](args = (%x,))\n%y = "
       "call_function[target=torch.abs](args = (%a,))\n",
       kIntegers});
  for (const char* name : {"maximum", "minimum", "fmax", "fmin"})
    cases.emplace_back(Case{"equal_operands", ""},
                       std::string("%z = call_function[target=aten::") + name +
                           "](args = (%x, %x))\n%y = call_method[target=clone](args = (%z,))\n");
  cases.emplace_back(Case{"where_equal", ""},
                     "%c = call_function[target=aten::isnan](args = (%x,))\n%z = "
                     "call_function[target=aten::where.self](args = (%c, %x, %x))\n%y = "
                     "call_method[target=clone](args = (%z,))\n");
  for (const char* by : {"2", "-4.0", "0.5", "16384.0", "6.103515625e-05"})
    for (const char* call : {"call_function[target=aten::div.Tensor", "call_method[target=div",
                             "call_function[target=operator.truediv"})
      cases.emplace_back(Case{"div_to_mul", "", kFloats},
                         std::string("%y = ") + call + "](args = (%x, " + by + "))\n");

  for (auto& [c, calls] : cases) {
    // -(-x) is replaced where nobody can tell it from x: in front of another call.
    std::string text = calls;
    if (std::string(c.rule) == "double_negation") {
      text.replace(text.rfind("%y = "), 5, "%z = ");
      text += "%y = call_method[target=clone](args = (%z,))\n";
    }
    for (const at::ScalarType dtype : kDtypes) {
      const at::Tensor values = values_of(dtype);
      bool fired = false;
      try {
        module_of(text)->forward({values});
      } catch (const std::exception&) {
        EXPECT_FALSE(c.dtypes.contains(dtype)) << text << dtype;
        continue;
      }
      for (const at::Tensor& x : layouts_of(values)) fired |= check(c.rule, text, x);
      EXPECT_EQ(fired, c.dtypes.contains(dtype)) << c.rule << " " << dtype << "\n" << text;
    }
  }
}

TEST(Simplify, ConversionsKeepEveryBit) {
  torch::manual_seed(0);
  const char* const names[] = {"float32", "float64", "float16", "bfloat16", "uint8",
                               "int8",    "int16",   "int32",   "int64",    "bool"};
  int fired = 0;
  for (const at::ScalarType from : kDtypes) {
    const at::Tensor values = values_of(from);
    for (const char* between : names)
      for (const char* to : names) {
        const std::string calls = std::string(
                                      "%a = call_function[target=aten::to.dtype](args = (%x, "
                                      "torch.") +
                                  between + "))\n%z = call_method[target=to](args = (%a, torch." +
                                  to + "))\n%y = call_method[target=clone](args = (%z,))\n";
        const bool now = check("cast_chain", calls, values);
        fired += now;
        if (now) check("cast_chain", calls, values.t());
      }
  }
  // By hand: from bool 81 of 100 have another type in front, and so on; what matters is that many
  // do.
  EXPECT_GT(fired, 150);
  const auto fires = [&](at::ScalarType from, const char* between, const char* to) {
    return check("cast_chain",
                 std::string("%a = call_method[target=to](args = (%x, torch.") + between +
                     "))\n%z = call_method[target=to](args = (%a, torch." + to +
                     "))\n%y = call_method[target=clone](args = (%z,))\n",
                 values_of(from));
  };
  EXPECT_TRUE(fires(at::kBFloat16, "float32", "bfloat16"));
  EXPECT_TRUE(fires(at::kInt, "int64", "int32"));
  EXPECT_TRUE(fires(at::kInt, "float64", "int32"));
  EXPECT_TRUE(fires(at::kLong, "int64", "int8"));
  EXPECT_FALSE(fires(at::kInt, "float32", "int32"));
  EXPECT_FALSE(fires(at::kFloat, "bfloat16", "float32"));
  EXPECT_FALSE(fires(at::kHalf, "float32", "int32"));
  EXPECT_FALSE(fires(at::kByte, "int8", "int16"));
}

TEST(Simplify, ViewsKeepTheirPlace) {
  const at::Tensor base = torch::arange(120, at::kFloat).reshape({2, 3, 4, 5});
  const auto view = [&](const char* rule, const std::string& calls, const at::Tensor& x,
                        bool fires = true) {
    const auto module = module_of(calls);
    const at::Tensor before = module->forward({x}).toTensor();
    EXPECT_EQ(simplified(*module, x).contains(rule), fires) << calls;
    const at::Tensor after = module->forward({x}).toTensor();
    EXPECT_EQ(difference(before, after), "") << calls << module->graph();
    EXPECT_EQ(before.is_alias_of(x), after.is_alias_of(x)) << calls;
    if (before.is_alias_of(x) && before.numel() > 0) {
      EXPECT_EQ(before.storage_offset(), after.storage_offset()) << calls;
    }
  };
  const auto both = [](const std::string& first, const std::string& second) {
    return "%a = call_function[target=aten::" + first.substr(0, first.find('(')) +
           "](args = (%x, " + first.substr(first.find('(') + 1) +
           ")\n%y = call_function[target=aten::" + second.substr(0, second.find('(')) +
           "](args = (%a, " + second.substr(second.find('(') + 1) + ")\n";
  };
  for (const at::Tensor& x : {base, base.transpose(0, 2), base.slice(1, 0, 0)}) {
    view("permute_permute", both("permute([3, 1, 0, 2])", "permute([1, -1, 0, 2])"), x);
    view("permute_permute", both("transpose.int(1, -1)", "permute([2, 3, 0, 1])"), x);
    view("permute_permute", both("transpose.int(1, -1)", "transpose.int(-1, 1)"), x);
    view("permute_permute", both("transpose.int(1, 2)", "transpose.int(0, 1)"), x);
    view("squeeze_unsqueeze", both("unsqueeze(2)", "squeeze.dim(2)"), x);
    view("squeeze_unsqueeze", both("unsqueeze(-1)", "select.int(-1, 0)"), x);
    view("expand_expand", both("expand([7, -1, -1, -1, -1])", "expand([7, 2, 3, 4, 5])"), base);
    view("slice_slice", both("slice.Tensor(3, 1, 4)", "slice.Tensor(3, 1, 100)"), x);
    view("slice_slice", both("slice.Tensor(0, 1, 9223372036854775807)", "slice.Tensor(0, 0, 5)"),
         x);
    view("slice_slice", both("slice.Tensor(2, 2, 3)", "slice.Tensor(2, 3, 9)"), x);
    view("slice_slice", both("slice.Tensor(2, 9, 12)", "slice.Tensor(2, 3, 9)"), x);
  }
  view("expand_expand", both("expand([3, 1])", "expand([2, 3, 4])"), base.slice(3, 0, 1)[0][0][0]);
  view("view_view", both("view([6, 20])", "view([2, -1])"), base);
  view("view_view", both("view([6, 20])", "reshape([2, 3, 20])"), base);
  view("view_view", both("reshape([6, 20])", "reshape([5, 24])"), base);
  // A copy stays one, and keeps the strides of one.
  view("view_view", both("reshape([4, 30])", "reshape([4, 3, 10])"), base.permute({2, 1, 0, 3}),
       false);
  view("view_view", both("view([4, 6, 5])", "view([4, 3, 2, 5])"), base.permute({2, 0, 1, 3}));
}

TEST(Simplify, GradientsAreTheSame) {
  const at::Tensor values = torch::tensor({0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 7.0, -3.0});
  const at::Tensor weights = torch::tensor({1.0, -1.0, -2.0, 0.3, -0.0, 5.0, -1e-45, 1e38});
  const std::pair<const char*, std::string> programs[] = {
      {"idempotent", twice("call_function[target=aten::relu")},
      {"idempotent", twice("call_function[target=aten::abs")},
      {"idempotent", twice("call_function[target=aten::clamp", ", 0, 1")},
      {"idempotent", twice("call_function[target=torch.nn.functional.hardtanh", ", -0.5, 0.5")},
      {"idempotent", twice("call_function[target=aten::floor")},
      {"div_to_mul", "%y = call_function[target=aten::div.Tensor](args = (%x, -8))\n"},
      {"",
       "%a = call_method[target=neg](args = (%x,))\n%y = call_method[target=abs](args = (%a,))\n"},
      {"",
       "%a = call_method[target=abs](args = (%x,))\n%y = call_method[target=relu](args = "
       "(%a,))\n"},
      {"",
       "%z = call_function[target=aten::maximum](args = (%x, %x))\n%y = "
       "call_method[target=clone](args = (%z,))\n"},
      {"",
       "%c = call_method[target=isnan](args = (%x,))\n%z = "
       "call_function[target=aten::where.self](args = (%c, %x, %x))\n%y = "
       "call_method[target=clone](args = (%z,))\n"}};
  const auto gradient = [&](GraphModule& module) {
    const at::Tensor x = values.clone().set_requires_grad(true);
    module.forward({x}).toTensor().backward(weights);
    return x.grad();
  };
  for (const auto& [rule, calls] : programs) {
    const auto module = module_of(calls);
    const at::Tensor before = gradient(*module);
    const auto counts = simplified(*module, values.clone().set_requires_grad(true));
    EXPECT_EQ(counts.contains(rule), *rule != '\0') << calls;
    EXPECT_EQ(counts.size(), *rule ? 1u : 0u) << calls;
    EXPECT_EQ(difference(before, gradient(*module)), "") << calls;
  }
  // bfloat16 between rounds the gradient of float32 once more: no chain is cut there.
  const auto chain = module_of(
      "%a = call_method[target=to](args = (%x, torch.float32))\n%y = call_method[target=to](args = "
      "(%a, torch.float64))\n");
  EXPECT_TRUE(simplified(*chain, values.to(at::kHalf).set_requires_grad(true)).empty());
}

TEST(Simplify, OperatorsOfOthersStay) {
  auto module = parse_module(
      "%x = placeholder[target=x]\n"
      "%a = call_function[target=mine::relu](args = (%x,))\n"
      "%y = call_function[target=mine::relu](args = (%a,))\n"
      "return %y\n");
  EXPECT_FALSE(simplify(*module).changed);
}

TEST(Simplify, InputsAndDrawsStay) {
  auto module = parse_module(
      "%c = placeholder[target=c]\n"
      "%x = placeholder[target=x]\n"
      "%a = call_function[target=aten::where.self](args = (%c, %x, %x))\n"
      "%size = call_method[target=size](args = (%a,))\n"
      "%drawn = call_function[target=aten::bernoulli](args = (%x,))\n"
      "%mask = call_method[target=bool](args = (%drawn,))\n"
      "%b = call_function[target=aten::where.self](args = (%drawn, %x, %x))\n"
      "%more = call_method[target=size](args = (%b,))\n"
      "return (%size, %more)\n");
  simplify(*module);
  module->graph().lint();
  EXPECT_EQ(module->graph().placeholders().size(), 2u) << module->graph();
  EXPECT_EQ(module->graph().find_calls("aten::bernoulli").size(), 1u) << module->graph();
}

TEST(Simplify, CountsItsRules) {
  auto module = module_of(twice("call_function[target=aten::relu"));
  const PipelineResult result = run_passes(*module, "simplify");
  EXPECT_EQ(result.passes[0].rewrites, 1);
  EXPECT_THAT(result.to_string(), testing::HasSubstr("\n  idempotent: 1\n"));
}

TEST(Simplify, EachRuleIsDescribed) {
  std::ifstream in(std::string(FXCPP_SOURCE_DIR) + "/docs/passes.md");
  std::stringstream page;
  page << in.rdbuf();
  for (const SimplifyRule& rule : simplify_rules())
    EXPECT_THAT(page.str(), testing::HasSubstr("| `" + std::string(rule.name) + "` | " +
                                               std::string(rule.rewrite) + " | " +
                                               std::string(rule.reason) + " |\n"));
}

}  // namespace
}  // namespace fx
