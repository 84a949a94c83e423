// What a capture takes for granted: listed with the line of the program, checked by the graph.
#include <torch/torch.h>

#include <cmath>

#include "fx/capture/make_fx.h"
#include "fx/interpret/interpreter.h"
#include "tests/graph/graphs.h"

namespace fx {
namespace {

using at::Tensor;

std::vector<Assumption> of_kind(const GraphModule& module, Assumption::Kind kind) {
  std::vector<Assumption> out;
  for (const Assumption& each : *module.meta().get<Assumptions>("assumptions"))
    if (each.kind == kind) out.push_back(each);
  return out;
}

Tensor halve_if_large(const Tensor& x) {
  return x.max().item<float>() > 1 ? x / 2 : x * 3;  // line 23
}

TEST(Assumptions, a_value_that_was_read_is_checked_where_it_was_read) {
  auto gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})});
  EXPECT_TRUE(
      torch::equal((*gm)(torch::tensor({4.f, 3.f})).toTensor(), torch::tensor({2.f, 1.5f})));
  const Tensor small = torch::tensor({0.5f, 0.25f});
  EXPECT_FX_ERROR((*gm)(small), RunError, kNodeFailed,
                  "aten::item gave 4.0 when it was captured, and now 0.5; it might go another way");
  EXPECT_FX_ERROR(Interpreter(*gm).run({small}), RunError, kNodeFailed, "and now 0.5");
  EXPECT_FALSE(gm->graph().eliminate_dead_code()) << "a check is an effect";
  gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})}, {.guard_values = false});
  EXPECT_EQ(gm->graph().find_calls("torch._assert").size(), 0u);
  EXPECT_EQ(of_kind(*gm, Assumption::Kind::kValue).size(), 1u) << "listed all the same";
  EXPECT_TRUE(torch::equal((*gm)(small).toTensor(), small / 2));
}

TEST(Assumptions, bools_ints_and_nan_are_checked) {
  auto of_equal = make_fx([](Tensor x, Tensor y) { return torch::equal(x, y) ? x : x + y; },
                          {torch::ones({2}), torch::ones({2})});
  EXPECT_NO_THROW((*of_equal)(torch::zeros({2}), torch::zeros({2})));
  EXPECT_FX_ERROR((*of_equal)(torch::zeros({2}), torch::ones({2})), RunError, kNodeFailed,
                  "aten::equal gave True when it was captured, and now False");
  auto of_int =
      make_fx([](Tensor n) { return torch::ones({n.item<std::int64_t>()}); }, {torch::tensor(3)});
  EXPECT_EQ((*of_int)(torch::tensor(3)).toTensor().numel(), 3);
  EXPECT_FX_ERROR((*of_int)(torch::tensor(4)), RunError, kNodeFailed, "gave 3 when it was");
  auto of_nan = make_fx([](Tensor x) { return std::isnan(x.item<double>()) ? x * 0 : x; },
                        {torch::tensor(std::nan(""))});
  EXPECT_NO_THROW((*of_nan)(torch::tensor(std::nan(""))));
  EXPECT_FX_ERROR((*of_nan)(torch::tensor(1.f)), RunError, kNodeFailed, "and now 1.0");
}

TEST(Assumptions, checks_are_in_generated_code) {
  auto gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})});
  EXPECT_THAT(gm->code(), testing::HasSubstr(".equal(4.0)"));
  EXPECT_THAT(gm->code(), testing::HasSubstr("when it was captured, and now\", \" \", item,"));
  EXPECT_THAT(gm->python_code(), testing::HasSubstr("torch._assert(eq, ("));
  gm = make_fx([](Tensor x, Tensor y) { return torch::equal(x, y) ? x : x + y; },
               {torch::ones({2}), torch::ones({2})});
  EXPECT_THAT(gm->code(), testing::HasSubstr("TORCH_CHECK("));
}

TEST(Assumptions, have_the_line_of_the_program) {
  auto gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})});
  const auto values = of_kind(*gm, Assumption::Kind::kValue);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_THAT(values[0].where.source(), testing::HasSubstr("assumptions_test.cpp:23"));
  EXPECT_THAT(values[0].where.source(), testing::HasSubstr("halve_if_large"));
  const Tensor outside = torch::ones({2});
  gm = make_fx([&](Tensor x) { return x + outside; }, {torch::ones({2})});
  EXPECT_THAT(of_kind(*gm, Assumption::Kind::kConstant).at(0).where.source(),
              testing::HasSubstr("assumptions_test.cpp:"));
  EXPECT_FX_ERROR(make_fx(halve_if_large, {torch::tensor({2.f, 4.f})}, {.strict = true}),
                  TraceError, kConcreteValue, "assumptions_test.cpp:23");
}

TEST(Assumptions, nodes_have_lines_on_request) {
  auto gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})}, {.source_lines = true});
  EXPECT_THAT(gm->graph().find_calls("aten::max").at(0)->stack_trace(),
              testing::HasSubstr("assumptions_test.cpp:23"));
  EXPECT_FX_ERROR((*gm)(torch::zeros({2})), RunError, kNodeFailed,
                  "Original traceback:\n" __FILE__ ":23");
  gm = make_fx(halve_if_large, {torch::tensor({2.f, 4.f})});
  EXPECT_EQ(gm->graph().find_calls("aten::max").at(0)->stack_trace(), "");
}

TEST(Assumptions, order_in_memory_counts_where_memory_is_written_or_returned) {
  auto layouts = [](const std::function<Tensor(Tensor)>& program, const Tensor& x) {
    return of_kind(*make_fx(program, {x}), Assumption::Kind::kLayout).size();
  };
  EXPECT_EQ(layouts([](Tensor x) { return x.contiguous().add_(1); }, torch::ones({2, 3})), 1u);
  EXPECT_EQ(layouts([](Tensor x) { return x.view({-1}); }, torch::ones({2, 3})), 1u);
  EXPECT_EQ(layouts([](Tensor x) { return x + 1; }, torch::ones({2, 3})), 0u);
  EXPECT_EQ(layouts([](Tensor x) { return x.contiguous().add_(1); }, torch::ones({3, 2}).t()), 0u)
      << "contiguous() is in the graph";
}

}  // namespace
}  // namespace fx
