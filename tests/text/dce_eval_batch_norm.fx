# F8: batch normalisation is pure in evaluation mode, as a module and as a function.
# RUN: dce
# INPUT: x = f32[2, 3]
# MODULE: bn = BatchNorm1d(3)
# BUFFER: mean = f32[3]
# BUFFER: var = f32[3]
# CHECK-NOT: batch_norm
# CHECK-NOT: call_module
# CHECK: return %x
fx 1
%x = placeholder[target=x]
%mean = get_attr[target=mean]
%var = get_attr[target=var]
%f = call_function[target=aten::batch_norm](args = (%x, None, None, %mean, %var, False, 0.1, 1e-05, False))
%m = call_module[target=bn](args = (%x,))
return %x
