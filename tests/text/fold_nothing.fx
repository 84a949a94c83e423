# R-061: nothing to fold.
# RUN: constant_fold
# INPUT: x = f32[3]
# PARAM: w = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%mul = call_function[target=aten::mul.Tensor](args = (%x, %w))
return %mul
