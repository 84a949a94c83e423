# The caller may pass one tensor as both inputs: writing to x may change y.
# RUN: cse
# INPUT: x = f32[3]
# INPUT: y = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%a = call_function[target=aten::cos](args = (%y,))
%w = call_function[target=aten::add_.Tensor](args = (%x, 1.0))
%b = call_function[target=aten::cos](args = (%y,))
return (%a, %b)
