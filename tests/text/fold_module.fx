# R-067: a call of a module on a constant.
# RUN: constant_fold
# INPUT: x = f32[2, 3]
# BUFFER: w = f32[2, 4]
# MODULE: lin = Linear(4, 3)
# CHECK-NOT: call_module
# CHECK: args = (%x, %_folded0)
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%lin = call_module[target=lin](args = (%w,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %lin))
return %mul
