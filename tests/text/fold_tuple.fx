# F13: a call with several results of which some are constant, and one that is used as a whole.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: w = f32[4, 3]
# CHECK-NOT: aten::split
# CHECK-NOT: operator.getitem
# CHECK: aten::mul.Tensor](args = (%_folded1, %x)
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%s = call_function[target=aten::split.Tensor](args = (%w, 2))
%a = call_function[target=operator.getitem](args = (%s, 0))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %a))
%cat = call_function[target=aten::cat](args = (%s, 0))
%use = call_function[target=aten::mul.Tensor](args = (%cat, %x))
%whole_sum = call_function[target=aten::cat](args = ([%mul, %use], 0))
return %whole_sum
