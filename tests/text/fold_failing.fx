# What fails when evaluated is left for the run, where the error belongs.
# RUN: constant_fold
# BUFFER: a = f32[2]
# BUFFER: b = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%a = get_attr[target=a]
%b = get_attr[target=b]
%total = call_function[target=aten::add.Tensor](args = (%a, %b))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %total))
return %mul
