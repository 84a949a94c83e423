# E-033: a product that depends on another one stays, and so does one whose operand is written to in between.
# RUN: merge_matmul
# INPUT: a = f32[3, 3]
# INPUT: b = f32[3, 3]
# UNCHANGED
fx 1
%a = placeholder[target=a]
%b = placeholder[target=b]
%first = call_function[target=aten::mm](args = (%a, %b))
%second = call_function[target=aten::mm](args = (%first, %b))
%copy = call_function[target=aten::clone](args = (%b,))
%third = call_function[target=aten::mm](args = (%a, %copy))
%add = call_function[target=aten::add_.Tensor](args = (%copy, 1))
%fourth = call_function[target=aten::mm](args = (%second, %copy))
return (%second, %third, %fourth)
