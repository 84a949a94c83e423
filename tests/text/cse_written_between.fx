# R-059: what is read before and after a write differs, also when the write goes through a view.
# RUN: cse
# INPUT: x = f32[2, 3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::cos](args = (%x,))
%row = call_function[target=aten::select.int](args = (%x, 0, 1))
%w = call_function[target=aten::add_.Tensor](args = (%row, 1.0))
%b = call_function[target=aten::cos](args = (%x,))
%total = call_function[target=aten::add.Tensor](args = (%a, %b))
return %total
