// What the sample programs in examples/ print, section by section.

#include <gtest/gtest.h>

#include "tests/docs/page.h"

namespace fx::docs_test {
namespace {

TEST(NodeInputs, S0_34_the_model_runs_interpreted_as_it_does_eagerly) {
  EXPECT_EQ(example_output("node_inputs", "plain run"),
            R"(opcode         name    target        args        kwargs
-------------  ------  ------------  ----------  ------
placeholder    x       x             ()          {}
placeholder    y       y             ()          {}
get_attr       param   param         ()          {}
call_function  add     operator.add  (x, param)  {}
call_function  mul     operator.mul  (y, add)    {}
call_module    linear  linear        (mul,)      {}
output         output  output        (linear,)   {}
eager: [10, 5]
interpreted: [10, 5]
first row: tensor([ 0.6886, -1.5187,  1.6724,  0.6682, -0.6187])
equal: True
)");
}

TEST(NodeInputs, S0_34_W_01_the_wrong_shape_is_reported_at_its_node) {
  EXPECT_EQ(
      example_output("node_inputs", "wrong shape"),
      R"(The size of tensor a (5) must match the size of tensor b (10) at non-singleton dimension 0

While executing %add : [num_users=1] = call_function[target=operator.add](args = (%x, %param), kwargs = {})
  x: Tensor f32[5, 20]
  param: Tensor f32[10, 20]. To mend it: see the nested error for the cause. [FX308]
)");
}

TEST(NodeInputs, S0_39_seven_nodes_with_their_inputs_and_results) {
  EXPECT_EQ(example_output("node_inputs", "debug run"), R"(node x: placeholder x
  result: Tensor f32[10, 20]
node y: placeholder y
  result: Tensor f32[10, 1]
node param: get_attr param
  result: Tensor f32[10, 20]
node add: call_function operator.add
  arg: Tensor f32[10, 20]
  arg: Tensor f32[10, 20]
  result: Tensor f32[10, 20]
node mul: call_function operator.mul
  arg: Tensor f32[10, 1]
  arg: Tensor f32[10, 20]
  result: Tensor f32[10, 20]
node linear: call_module linear
  arg: Tensor f32[10, 20]
  result: Tensor f32[10, 5]
node output: output output
  arg: Tensor f32[10, 5]
  result: Tensor f32[10, 5]
equal: True
)");
}

TEST(NodeInputs, S0_47_W_02_zeros_for_one_function_leave_the_bias) {
  EXPECT_EQ(example_output("node_inputs", "zero inputs"),
            R"(aten::add.Tensor, result as before: True
zeros for operator.add
output: [10, 5]
close to zero: False
first row: tensor([-0.1168,  0.0022,  0.0925,  0.0175,  0.0187])
every row is the bias: True
)");
}

TEST(NodeInputs, S0_57_one_module_gets_inputs_of_ones) {
  EXPECT_EQ(example_output("node_inputs", "own inputs for one node"), R"(own inputs for linear
[5, 10]
tensor([ 0.2349, -0.6122,  0.1075, -0.4157, -0.8467,  0.1362,  0.6592, -0.0438, -0.3627, -0.0549])
is linear(ones): True
)");
}

TEST(NodeInputs, S0_70_W_03_W_04_an_edited_constant_gives_210) {
  EXPECT_EQ(example_output("node_inputs", "edited graph"),
            R"(opcode         name    target        args        kwargs
-------------  ------  ------------  ----------  ------
placeholder    x       x             ()          {}
call_function  add     operator.add  (x, 1.0)    {}
call_function  mul     operator.mul  (add, 2.0)  {}
output         output  output        (mul,)      {}
called before the edit: tensor(12.)
node add now has (x, 100.0)
opcode         name    target        args        kwargs
-------------  ------  ------------  ----------  ------
placeholder    x       x             ()          {}
call_function  add     operator.add  (x, 100.0)  {}
call_function  mul     operator.mul  (add, 2.0)  {}
output         output  output        (mul,)      {}
interpreted: 210.0
called: 210.0
)");
}

TEST(EditNodes, S1_12_W_17_update_arg_makes_six_nine) {
  EXPECT_EQ(example_output("edit_nodes", "update_arg"), R"(before: (add, 2)
after: (add, 3)
gm(1, 2) = 9
)");
}

TEST(EditNodes, S1_42_S1_46_a_constant_changes_16_to_80) {
  EXPECT_EQ(example_output("edit_nodes", "a constant"),
            R"(opcode         name    target        args      kwargs
-------------  ------  ------------  --------  ------
placeholder    x       x             ()        {}
call_function  add     operator.add  (x, 5)    {}
call_function  mul     operator.mul  (add, 2)  {}
output         output  output        (mul,)    {}
original: 16.0
opcode         name    target        args       kwargs
-------------  ------  ------------  ---------  ------
placeholder    x       x             ()         {}
call_function  add     operator.add  (x, 5)     {}
call_function  mul     operator.mul  (add, 10)  {}
output         output  output        (mul,)     {}
modified: 80.0
)");
}

TEST(EditNodes, S1_49_another_node_changes_30_to_40) {
  EXPECT_EQ(example_output("edit_nodes", "another node as argument"),
            R"(opcode         name    target        args      kwargs
-------------  ------  ------------  --------  ------
placeholder    x       x             ()        {}
call_function  add     operator.add  (x, 10)   {}
call_function  sub     operator.sub  (add, 5)  {}
call_function  mul     operator.mul  (sub, 2)  {}
output         output  output        (mul,)    {}
original: 30.0
before: (sub, 2)
after: (add, 2)
opcode         name    target        args      kwargs
-------------  ------  ------------  --------  ------
placeholder    x       x             ()        {}
call_function  add     operator.add  (x, 10)   {}
call_function  sub     operator.sub  (add, 5)  {}
call_function  mul     operator.mul  (add, 2)  {}
output         output  output        (mul,)    {}
modified: 40.0
)");
}

TEST(EditNodes, S1_55_W_15_a_keyword_lifts_the_clamp) {
  EXPECT_EQ(example_output("edit_nodes", "update_kwarg"), R"(before: {'min': -5, 'max': 5}, 5.0
after: {'min': -5, 'max': 10}, 7.0
)");
}

TEST(EditNodes, S1_61_replace_all_uses_with_an_insertion_point) {
  EXPECT_EQ(example_output("edit_nodes", "replace_all_uses_with"), R"(nodes: x, add_1, mul, output
gm(3) = 10.0
)");
}

TEST(EditNodes, S1_61_W_21_lint_refuses_it_without_one) {
  EXPECT_EQ(
      example_output("edit_nodes", "without an insertion point"),
      R"(Argument 'add_1' of Node 'mul' was used before it has been defined! Please check that Nodes in the graph are topologically ordered. To mend it: move the producer before its user (prepend, append). [FX153]
)");
}

TEST(EditNodes, S1_67_a_sum_in_place_of_a_product) {
  EXPECT_EQ(example_output("edit_nodes", "another operation"), R"(nodes: x, add, output
gm(5) = 7.0
)");
}

TEST(EditNodes, S1_74_relu_in_front_of_the_product) {
  EXPECT_EQ(example_output("edit_nodes", "a node in between"), R"(nodes: x, sub, relu, mul, output
gm([-3, 4]) = tensor([0., 6.])
)");
}

TEST(WatchValues, S2_05_W_25_values_of_a_random_input) {
  EXPECT_EQ(example_output("watch_values", "random input"),
            R"(x: tensor([[ 1.5410, -0.2934, -2.1788],
        [ 0.5684, -1.0845, -1.3986]])
relu: tensor([[1.5410, 0.0000, 0.0000],
        [0.5684, 0.0000, 0.0000]])
add: tensor([[2.5410, 1.0000, 1.0000],
        [1.5684, 1.0000, 1.0000]])
output: tensor([[2.5410, 1.0000, 1.0000],
        [1.5684, 1.0000, 1.0000]])
result: tensor([[2.5410, 1.0000, 1.0000],
        [1.5684, 1.0000, 1.0000]])
recorded:
  x: tensor([[ 1.5410, -0.2934, -2.1788],
        [ 0.5684, -1.0845, -1.3986]])
  relu: tensor([[1.5410, 0.0000, 0.0000],
        [0.5684, 0.0000, 0.0000]])
  add: tensor([[2.5410, 1.0000, 1.0000],
        [1.5684, 1.0000, 1.0000]])
  output: tensor([[2.5410, 1.0000, 1.0000],
        [1.5684, 1.0000, 1.0000]])
)");
}

TEST(WatchValues, S2_24_W_25_the_recorder_sees_each_node_once) {
  EXPECT_EQ(example_output("watch_values", "recorder"), R"(x: tensor([1., 2.])
add: tensor([2., 3.])
mul: tensor([4., 6.])
output: tensor([4., 6.])
result: tensor([4., 6.])
recorded:
  x: tensor([1., 2.])
  add: tensor([2., 3.])
  mul: tensor([4., 6.])
  output: tensor([4., 6.])
)");
}

TEST(WatchValues, S2_28_W_26_recorded_text_does_not_flow) {
  EXPECT_EQ(example_output("watch_values", "processed values"), R"(  x: Processed: tensor([3., 4.])
  add: Processed: tensor([4., 5.])
  mul: Processed: tensor([ 8., 10.])
  output: Processed: tensor([ 8., 10.])
result: tensor([ 8., 10.])
)");
}

TEST(WatchValues, S2_30_two_listings_by_kind_of_node) {
  EXPECT_EQ(example_output("watch_values", "by kind of node"), R"(relu, absolute:
  relu: tensor([0., 2.])
others:
  x: tensor([-1.,  2.])
  add: tensor([1., 3.])
  output: tensor([1., 3.])
result: tensor([1., 3.])
)");
}

TEST(WatchValues, S2_34_W_27_env_holds_the_output_or_all) {
  EXPECT_EQ(example_output("watch_values", "env"), R"(x: tensor([1., 2.])
add: tensor([2., 3.])
mul: tensor([4., 6.])
output: tensor([4., 6.])
env after the run:
  output: tensor([4., 6.])
x: tensor([1., 2.])
add: tensor([2., 3.])
mul: tensor([4., 6.])
output: tensor([4., 6.])
env after the run, values kept:
  x: tensor([1., 2.])
  add: tensor([2., 3.])
  mul: tensor([4., 6.])
  output: tensor([4., 6.])
)");
}

TEST(WatchValues, S2_38_an_own_store_keeps_what_env_drops) {
  EXPECT_EQ(example_output("watch_values", "own store"), R"(x: tensor([1., 2.])
add: tensor([2., 3.])
mul: tensor([4., 6.])
output: tensor([4., 6.])
result: tensor([4., 6.])
stored:
  x: tensor([1., 2.])
  add: tensor([2., 3.])
  mul: tensor([4., 6.])
  output: tensor([4., 6.])
)");
}

TEST(WatchValues, S2_42_W_28_hooks_see_each_value) {
  EXPECT_EQ(example_output("watch_values", "hooks"), R"(hook: x: tensor([1., 2.])
hook: add: tensor([2., 3.])
hook: mul: tensor([4., 6.])
hook: output: tensor([4., 6.])
result: tensor([4., 6.])
stored:
  x: tensor([1., 2.])
  add: tensor([2., 3.])
  mul: tensor([4., 6.])
  output: tensor([4., 6.])
)");
}

TEST(TraceFunctions, S3_34_W_31_W_32_a_function_of_two_inputs) {
  EXPECT_EQ(example_output("trace_functions", "a function of two inputs"), R"(Tensor f32[2, 3]
tensor([[ 3.8887,  1.0892, -5.7961],
        [ 0.3302, -3.3623, -2.4331]])
graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : [num_users=1] = placeholder[target=y]
    %add : [num_users=1] = call_function[target=operator.add](args = (%x, %y), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, 2), kwargs = {})
    return mul
)");
}

TEST(TraceFunctions, S3_39_W_65_two_layers) {
  EXPECT_EQ(example_output("trace_functions", "a module"), R"(Tensor f32[1, 5]
tensor([[-0.1477, -0.0860, -0.2921, -0.0985,  0.4388]])
graph():
    %x : [num_users=1] = placeholder[target=x]
    %linear1 : [num_users=1] = call_module[target=linear1](args = (%x,), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.relu](args = (%linear1,), kwargs = {})
    %linear2 : [num_users=1] = call_module[target=linear2](args = (%relu,), kwargs = {})
    return linear2
)");
}

TEST(TraceFunctions, S3_42_operators) {
  EXPECT_EQ(example_output("trace_functions", "operators"), R"(Tensor f32[5]
tensor([ 7.6230,  2.1197, -3.5364,  4.7053, -0.2536])
graph():
    %a : [num_users=1] = placeholder[target=a]
    %add : [num_users=1] = call_function[target=operator.add](args = (%a, 1), kwargs = {})
    %mul : [num_users=1] = call_function[target=operator.mul](args = (%add, 3), kwargs = {})
    return mul
)");
}

TEST(TraceFunctions, S3_52_W_39_a_graph_by_hand) {
  EXPECT_EQ(example_output("trace_functions", "a graph by hand"), R"(graph():
    %input_1 : [num_users=1] = placeholder[target=input]
    %tensor : [num_users=1] = call_function[target=torch.tensor](args = ([2.0],), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%input_1, %tensor), kwargs = {})
    return add
node input_1 reads input input
tensor([ 3.5410,  1.7066, -0.1788])
is x + 2: True
)");
}

TEST(TraceFunctions, S3_55_W_41_one_node_all_nodes_step_by_step) {
  EXPECT_EQ(example_output("trace_functions", "stepping"), R"(first node gives the input: True
result: tensor([[-0.0137,  0.1524, -0.0641]])
env: output
ran x
ran linear
ran output
)");
}

TEST(TraceFunctions, S3_63_W_43_an_own_tracer_tags_the_nodes) {
  EXPECT_EQ(example_output("trace_functions", "an own tracer"), R"(linear comes from module linear
relu comes from module relu
)");
}

TEST(CallModule, S4_11_one_linear) {
  EXPECT_EQ(example_output("call_module", "one linear"), R"([1, 5]
tensor([[-0.4349,  0.5173,  0.2658, -1.5306,  0.7478]])
)");
}

TEST(CallModule, S4_47_S4_52_W_54_both_leaf_policies_give_the_eager_result) {
  EXPECT_EQ(example_output("call_module", "nested modules"), R"([1, 5]
tensor([[-0.1477, -0.0860, -0.2921, -0.0985,  0.4388]])
opcode         name                 target               args                    kwargs
-------------  -------------------  -------------------  ----------------------  ------
placeholder    x                    x                    ()                      {}
call_module    sub_module_a_linear  sub_module_a.linear  (x,)                    {}
call_function  relu                 torch.relu           (sub_module_a_linear,)  {}
call_module    sub_module_b_linear  sub_module_b.linear  (relu,)                 {}
output         output               output               (sub_module_b_linear,)  {}
equals the eager result
opcode         name          target        args             kwargs
-------------  ------------  ------------  ---------------  ------
placeholder    x             x             ()               {}
call_module    sub_module_a  sub_module_a  (x,)             {}
call_function  relu          torch.relu    (sub_module_a,)  {}
call_module    sub_module_b  sub_module_b  (relu,)          {}
output         output        output        (sub_module_b,)  {}
equals the eager result
)");
}

TEST(CallModule, S4_56_S4_62_calls_are_logged_and_counted) {
  EXPECT_EQ(example_output("call_module", "logged calls"), R"(call of sub_module_a.linear
call of sub_module_b.linear
call of another_linear
[1, 2]
tensor([[0.2661, 0.1351]])
another_linear: 1
equals the eager result
call of sub_module_a
  its input: [1, 10]
call of sub_module_b
call of another_linear
[1, 2]
tensor([[0.2661, 0.1351]])
another_linear: 1
equals the eager result
)");
}

TEST(CallModule, S4_67_a_direct_call) {
  EXPECT_EQ(example_output("call_module", "direct call"),
            R"(opcode         name     target      args        kwargs
-------------  -------  ----------  ----------  ------
placeholder    x        x           ()          {}
call_module    linear1  linear1     (x,)        {}
call_function  relu     torch.relu  (linear1,)  {}
call_module    linear2  linear2     (relu,)     {}
output         output   output      (linear2,)  {}
[1, 2]
tensor([[-0.3768,  0.3060]])
equals the eager result
)");
}

TEST(CallModule, S4_74_S4_79_S4_87_W_55_without_the_batch_norm) {
  EXPECT_EQ(example_output("call_module", "without a module"),
            R"(opcode       name    target  args     kwargs
-----------  ------  ------  -------  ------
placeholder  x       x       ()       {}
call_module  conv    conv    (x,)     {}
call_module  bn      bn      (conv,)  {}
call_module  relu    relu    (bn,)    {}
call_module  pool    pool    (relu,)  {}
output       output  output  (pool,)  {}
leaving out bn
opcode       name    target  args     kwargs
-----------  ------  ------  -------  ------
placeholder  x       x       ()       {}
call_module  conv    conv    (x,)     {}
call_module  relu    relu    (conv,)  {}
call_module  pool    pool    (relu,)  {}
output       output  output  (pool,)  {}
[1, 16, 16, 16]
sum: 2250.78
is conv, relu, pool: True
equals the eager result
sum of the original: 4218.24
close to the original: False
)");
}

}  // namespace
}  // namespace fx::docs_test
