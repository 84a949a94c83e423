# R-058: an argument may be given by position, by keyword or by default.
# RUN: cse
# INPUT: x = f32[2, 3]
# CHECK-COUNT-EXACTLY-1: aten::sum
# CHECK: args = (%a, %a)
# CHECK: args = (%e, %a)
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::sum.dim_IntList](args = (%x, [1]))
%b = call_function[target=aten::sum.dim_IntList](args = (%x, [1], False))
%c = call_function[target=aten::sum.dim_IntList](args = (%x,), kwargs = {keepdim: False, dim: [1]})
%d = call_function[target=aten::sum.dim_IntList](args = (%x, [1]), kwargs = {dtype: None})
%e = call_function[target=aten::add.Tensor](args = (%a, %b))
%f = call_function[target=aten::add.Tensor](args = (%e, %c))
%g = call_function[target=aten::add.Tensor](args = (%f, %d))
return %g
