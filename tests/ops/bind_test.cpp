// How values become the arguments of operators.
#include <gtest/gtest.h>

#include "fx/ops/call.h"
#include "tests/ops/sample_calls.h"

namespace fx {
namespace {

// The result of running a stack directly, or nothing when the operator refuses.
std::optional<Value> direct(const Overload& overload, torch::jit::Stack stack) {
  try {
    overload.handle.callBoxed(stack);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return pack_results(stack, overload.handle.schema().returns().size());
}

bool same_value(const Value& a, const Value& b) {
  const Values left = a.isTensor() ? Values{a} : elements(a);
  const Values right = b.isTensor() ? Values{b} : elements(b);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const at::Tensor& x = left[i].toTensor();
    const at::Tensor& y = right[i].toTensor();
    if (x.defined() != y.defined()) return false;
    if (x.defined() && !(x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
                         at::allclose(x.to(at::kComplexDouble), y.to(at::kComplexDouble), 0, 0,
                                      /*equal_nan=*/true)))
      return false;
  }
  return true;
}

// torch.fx's get_torch_func_signature_exhaustive: a schema binds the inputs, and running what is
// bound is the call.
TEST(Bind, F_202_every_operator_takes_its_arguments_by_position_and_by_name) {
  std::size_t ran = 0, refused = 0;
  const std::vector<SampleCall> calls = sample_calls();
  for (const SampleCall& sample : calls) {
    SCOPED_TRACE(sample.name);
    // By position.
    Values args = sample.args;
    KwValues none;
    torch::jit::Stack stack;
    ASSERT_EQ(bind(*sample.overload, args, none, stack), "");
    ASSERT_EQ(stack.size(), sample.overload->rules.size()) << "defaults are filled in";
    // By keyword, in any order: the same stack.
    Values nothing;
    KwValues keywords;
    std::size_t next = 0;
    for (const ArgRule& rule : sample.overload->rules)
      if (!rule.has_default)
        keywords.insert(keywords.begin(), {Symbol(rule.name), sample.args[next++]});
    torch::jit::Stack named;
    ASSERT_EQ(bind(*sample.overload, nothing, keywords, named), "");
    ASSERT_EQ(named.size(), stack.size());
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (stack[i].isTensor() && stack[i].toTensor().defined()) {
        ASSERT_TRUE(named[i].toTensor().is_same(stack[i].toTensor()));
      } else {
        ASSERT_EQ(to_string(named[i]), to_string(stack[i]));
      }
    }
    // One argument too few or too many fits no schema.
    Values many = sample.args;
    many.insert(many.end(), sample.overload->rules.size() + 1 - many.size(), Value(1));
    ASSERT_NE(bind(*sample.overload, many, none, named), "");

    const std::optional<Value> expected = direct(*sample.overload, stack);
    if (!expected) {
      EXPECT_ANY_THROW(call(*Function::get(sample.name), sample.args));
      ++refused;
      continue;
    }
    ++ran;
    // Uninitialised memory is no result to compare.
    if (sample.name.find("empty") != std::string::npos) continue;
    EXPECT_TRUE(same_value(call(*Function::get(sample.name), sample.args), *expected));
  }
  EXPECT_GT(calls.size(), 500u);
  EXPECT_GT(ran, 350u) << refused << " calls were refused";
}

const ArgRule& rule_of(const char* name, const char* argument) {
  const OpInfo& info = OpInfo::of(*Function::get(name));
  for (const ArgRule& rule : info.overloads.at(0).rules)
    if (rule.name == argument) return rule;
  throw std::runtime_error("no such argument");
}

// torch.fx's type_matches, in the form it has here: whether a value fits an argument.
TEST(Bind, G_107_which_values_fit_which_arguments) {
  const Value tensor = at::ones({2}), ints = c10::List<std::int64_t>({1, 2}),
              floats = c10::List<double>({1, 2}), tensors = c10::List<at::Tensor>({at::ones({2})});
  struct Case {
    const char* name;
    const char* argument;
    Value value;
    bool fits;
  };
  const std::vector<Case> cases = {
      {"aten::sum.dim_IntList", "keepdim", true, true},
      {"aten::sum.dim_IntList", "keepdim", 1, false},  // an int is no bool
      {"aten::sum.dim_IntList", "keepdim", "yes", false},
      {"aten::sum.dim_IntList", "dim", ints, true},
      {"aten::sum.dim_IntList", "dim", 1, true},  // int for List[int]
      {"aten::sum.dim_IntList", "dim", Value(), true},
      {"aten::sum.dim_IntList", "dim", floats, false},
      {"aten::sum.dim_IntList", "dim", tensor, false},
      {"aten::softmax.int", "dim", 1, true},
      {"aten::softmax.int", "dim", true, true},  // bool for int
      {"aten::softmax.int", "dim", 1.5, false},
      {"aten::softmax.int", "dim", Value(), false},
      {"aten::dropout", "p", 0.5, true},
      {"aten::dropout", "p", 1, true},
      {"aten::dropout", "p", "a", false},
      {"aten::add.Tensor", "other", tensor, true},
      {"aten::add.Tensor", "other", ints, false},
      {"aten::add.Tensor", "alpha", 2, true},
      {"aten::add.Tensor", "alpha", 2.5, true},
      {"aten::add.Tensor", "alpha", tensors, false},
      {"aten::cat", "tensors", tensors, true},
      {"aten::cat", "tensors", ints, false},
      {"aten::cat", "tensors", 1, false},
  };
  for (const Case& each : cases) {
    Value out;
    EXPECT_EQ(convert_argument(rule_of(each.name, each.argument), each.value, out), each.fits)
        << each.name << " " << each.argument << " = " << describe(each.value);
  }
}

// The pairs of torch.fx's test_type_matches: the type of an argument, and a value of the other
// type.
TEST(Bind, E_034_pairs_of_type_matches) {
  const ArgRule& number = rule_of("aten::add.Tensor", "alpha");   // Union[int, float] as well
  const ArgRule& integer = rule_of("aten::softmax.int", "dim");   // int
  const ArgRule& ints = rule_of("aten::sum.dim_IntList", "dim");  // Optional[List[int]]
  const ArgRule& sizes = rule_of("aten::view", "size");           // List[int]
  const ArgRule& tensors = rule_of("aten::cat", "tensors");       // List[Tensor]
  const ArgRule& tensor = rule_of("aten::relu", "self");          // Tensor
  const at::Tensor parameter = at::ones({2}).set_requires_grad(true);
  const Value list_of_ints = c10::List<std::int64_t>({1, 2});
  const Value tuple_of_ints = c10::ivalue::Tuple::create({Value(1), Value(2)});
  const Value no_ints = c10::ivalue::Tuple::create(std::vector<Value>{});
  const Value tuple_of_tensors = c10::ivalue::Tuple::create({Value(parameter), Value(parameter)});
  struct Case {
    const ArgRule& rule;
    Value value;
    bool fits;
  };
  const std::vector<Case> cases = {
      {number, 1, true},
      {number, 1.5, true},
      {number, "text", false},
      {integer, 1, true},
      {integer, 1.5, false},
      {ints, 1, true},
      {ints, list_of_ints, true},
      {ints, tuple_of_ints, true},
      {ints, Value(), true},
      {sizes, list_of_ints, true},
      {sizes, tuple_of_ints, true},
      {sizes, no_ints, true},
      {sizes, tuple_of_tensors, false},
      {sizes, Value(), false},
      {tensors, list_of_ints, false},
      {tensors, tuple_of_tensors, true},
      {tensor, parameter, true},
      {tensor, tuple_of_tensors, false},
  };
  for (const Case& each : cases) {
    Value out;
    EXPECT_EQ(convert_argument(each.rule, each.value, out), each.fits)
        << each.rule.name << " = " << describe(each.value);
  }
}

}  // namespace
}  // namespace fx
