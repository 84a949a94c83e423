// Faults of passes that random programs found, shrunk by hand and kept.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fx/graph/text.h"
#include "fx/passes/pass_manager.h"
#include "fx/passes/shape_prop.h"

namespace fx {
namespace {

// The outer graph writes to what the nested one returns: an attribute of the nested one.
TEST(Found, shape_prop_leaves_attributes_alone_that_a_nested_graph_returns) {
  for (const bool constant : {false, true}) {
    SCOPED_TRACE(constant ? "constant" : "buffer");
    const auto nested = std::make_shared<GraphModule>(
        parse_text("fx 1\n%x = placeholder[target=x]\n%state = get_attr[target=state]\n"
                   "%flat = call_method[target=flatten](args = (%state,))\nreturn %flat\n"));
    const at::Tensor state = torch::tensor({1.0f, 2.0f, 3.0f});
    if (constant)
      nested->set_constant("state", state);
    else
      nested->set_buffer("state", state);
    const auto module = std::make_shared<GraphModule>(
        parse_text("fx 1\n%x = placeholder[target=x]\n"
                   "%nested = call_module[target=nested](args = (%x,))\n"
                   "%zero = call_method[target=zero_](args = (%nested,))\nreturn %zero\n"));
    module->set_submodule("nested", nested);
    shape_prop(*module, {torch::ones({2})});
    EXPECT_TRUE(at::equal(state, torch::tensor({1.0f, 2.0f, 3.0f}))) << state;
  }
}

TEST(Found, shape_prop_leaves_constants_alone_that_a_nested_graph_writes_to) {
  const auto nested = std::make_shared<GraphModule>(
      parse_text("fx 1\n%x = placeholder[target=x]\n%state = get_attr[target=state]\n"
                 "%add = call_method[target=add_](args = (%state, 1))\nreturn %add\n"));
  const at::Tensor state = torch::tensor({1.0f, 2.0f, 3.0f});
  nested->set_constant("state", state);
  const auto module = std::make_shared<GraphModule>(
      parse_text("fx 1\n%x = placeholder[target=x]\n"
                 "%nested = call_module[target=nested](args = (%x,))\nreturn %nested\n"));
  module->set_submodule("nested", nested);
  shape_prop(*module, {torch::ones({2})});
  EXPECT_TRUE(at::equal(state, torch::tensor({1.0f, 2.0f, 3.0f}))) << state;
}

// type_as may return its second operand for all that is known of it: only when it is gone, the
// division does not reach the output.
TEST(Found, remove_noops_settles_in_one_run) {
  const auto module = std::make_shared<GraphModule>(
      parse_text("fx 1\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
                 "%div = call_function[target=aten::div.Scalar](args = (%x, 1))\n"
                 "%same = call_function[target=aten::type_as](args = (%y, %div))\n"
                 "%cos = call_function[target=aten::cos](args = (%div,))\n"
                 "return (%same, %cos)\n"));
  PassManagerOptions options{.check_claims = true};
  options.example_inputs = Values{torch::ones({2}), torch::ones({2})};
  EXPECT_TRUE(run_passes(*module, "shape_prop,remove_noops", options).changed);
  EXPECT_EQ(to_text(module->graph()),
            "fx 1\n%x = placeholder[target=x]\n%y = placeholder[target=y]\n"
            "%cos = call_function[target=aten::cos](args = (%x,), kwargs = {})\n"
            "return (%y, %cos)\n");
  EXPECT_FALSE(run_passes(*module, "shape_prop,remove_noops", options).changed);
}

}  // namespace
}  // namespace fx
