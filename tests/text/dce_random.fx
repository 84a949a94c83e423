# R-054: drawing random numbers is an effect.
# RUN: dce
# INPUT: x = f32[2, 3]
# UNCHANGED
# CHECK: aten::rand_like
fx 1
%x = placeholder[target=x]
%r = call_function[target=aten::rand_like](args = (%x,))
return %x
