# A write to other memory does not get in the way.
# RUN: cse
# INPUT: x = f32[2, 3]
# CHECK-COUNT-EXACTLY-1: aten::cos
# CHECK: aten::add_
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::cos](args = (%x,))
%z = call_function[target=aten::zeros_like](args = (%x,))
%w = call_function[target=aten::add_.Tensor](args = (%z, 1.0))
%b = call_function[target=aten::cos](args = (%x,))
%total = call_function[target=aten::add.Tensor](args = (%a, %b))
%whole_sum = call_function[target=aten::add.Tensor](args = (%total, %w))
return %whole_sum
