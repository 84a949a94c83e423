# R-059: two equal results of which one is written to later are two.
# RUN: cse
# INPUT: x = f32[2, 3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::cos](args = (%x,))
%b = call_function[target=aten::cos](args = (%x,))
%view = call_function[target=aten::view](args = (%b, [3, 2]))
%w = call_method[target=add_](args = (%view, 1.0))
%total = call_function[target=aten::add.Tensor](args = (%a, %b))
return %total
