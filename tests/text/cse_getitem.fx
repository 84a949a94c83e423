# Results of one call that are taken out twice.
# RUN: cse
# INPUT: x = f32[4, 3]
# CHECK-COUNT-EXACTLY-1: aten::split
# CHECK-COUNT-EXACTLY-2: operator.getitem
fx 1
%x = placeholder[target=x]
%s = call_function[target=aten::split.Tensor](args = (%x, 2))
%s_1 = call_function[target=aten::split.Tensor](args = (%x, 2))
%a = call_function[target=operator.getitem](args = (%s, 0))
%b = call_function[target=operator.getitem](args = (%s_1, 1))
%c = call_function[target=operator.getitem](args = (%s_1, 0))
%cat = call_function[target=aten::cat](args = ([%a, %b, %c], 0))
return %cat
