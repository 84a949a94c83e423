# R-064: returned constants, when the caller does not write to them.
# RUN: constant_fold(fold_outputs)
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# CHECK-NOT: aten::exp
# CHECK: return {'x': %x, 'w': (%_folded
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%exp = call_function[target=aten::exp](args = (%w,))
%cos = call_function[target=aten::cos](args = (%w,))
return {'x': %x, 'w': (%exp, %cos)}
