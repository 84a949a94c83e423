#include "fx/plan/out_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/ops/function.h"

namespace fx {
namespace {

const Overload& overload(const char* name) {
  return OpInfo::of(*Function::get(name)).overloads.at(0);
}

std::string name_of(const OutVariant& out) {
  return out.overload ? toString(out.overload->handle.operator_name()) : "";
}

std::string found(const char* name) { return name_of(find_out_variant(overload(name), {})); }

TEST(OutVariant, of_the_same_operator_and_arguments) {
  EXPECT_EQ(found("aten::add.Tensor"), "aten::add.out");
  EXPECT_EQ(found("aten::neg"), "aten::neg.out");
  EXPECT_EQ(found("aten::sum.dim_IntList"), "aten::sum.IntList_out");
  EXPECT_EQ(found("aten::max.dim"), "aten::max.dim_max");
  EXPECT_EQ(found("aten::cat"), "aten::cat.out");
  EXPECT_EQ(found("aten::addmm"), "aten::addmm.out");
  EXPECT_EQ(found("aten::gelu"), "aten::gelu.out");
  EXPECT_EQ(found("aten::where.self"), "aten::where.self_out");
  EXPECT_TRUE(find_out_variant(overload("aten::add.Tensor"), {}).all_args);
}

TEST(OutVariant, none_that_would_differ_or_that_is_made_of_the_operator_and_a_copy) {
  EXPECT_EQ(found("aten::nonzero"), "");  // sizes depend on values
  EXPECT_EQ(found("aten::masked_select"), "");
  EXPECT_EQ(found("aten::bernoulli"), "");          // random
  EXPECT_EQ(found("aten::add_.Tensor"), "");        // writes
  EXPECT_EQ(found("aten::view"), "");               // a view
  EXPECT_EQ(found("aten::split.Tensor"), "");       // a list
  EXPECT_EQ(found("aten::native_layer_norm"), "");  // its out-variant copies
  EXPECT_EQ(found("aten::clone"), "");
  EXPECT_EQ(found("aten::item"), "");
}

TEST(OutVariant, of_the_operator_that_another_one_calls) {
  const at::Tensor m = torch::ones({2, 2}), v = torch::ones({2});
  const auto of = [](const char* name, torch::jit::Stack stack) {
    return name_of(find_out_variant(overload(name), stack));
  };
  EXPECT_EQ(of("aten::relu", {m}), "aten::clamp_min.out");
  EXPECT_EQ(of("aten::softmax.int", {m, 1, Value()}), "aten::_softmax.out");
  EXPECT_EQ(of("aten::log_softmax.int", {m, 1, Value()}), "aten::_log_softmax.out");
  EXPECT_EQ(of("aten::softmax.int", {m, 1, static_cast<std::int64_t>(at::kDouble)}), "");
  EXPECT_EQ(of("aten::matmul", {m, m}), "aten::mm.out");
  EXPECT_EQ(of("aten::matmul", {m, v}), "");
  EXPECT_EQ(of("aten::linear", {m, m, v}), "aten::addmm.out");
  EXPECT_EQ(of("aten::linear", {m, m, Value()}), "");
  EXPECT_EQ(of("aten::linear", {v, m, v}), "");
  const OutVariant linear = find_out_variant(overload("aten::linear"), {m, m, v});
  ASSERT_EQ(linear.args.size(), 3u);
  EXPECT_EQ(linear.args[0].index, 2u);
  EXPECT_TRUE(linear.args[2].transposed);
  EXPECT_FALSE(linear.all_args);
}

}  // namespace
}  // namespace fx
