# R-068: what draws random numbers is no constant; nor is what comes from it.
# RUN: constant_fold
# INPUT: x = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%rand = call_function[target=aten::rand](args = ([3],))
%exp = call_function[target=aten::exp](args = (%rand,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
return %mul
