# F12: nothing that depends on the shape of an input is folded.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%n = call_function[target=aten::sym_size.int](args = (%x, 0))
%full = call_function[target=aten::full](args = ([%n], %n))
%mul = call_function[target=aten::mul.Tensor](args = (%w, %full))
return %mul
