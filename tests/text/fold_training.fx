# In training mode parameters change: only buffers and parameters without gradient are constants.
# RUN: constant_fold
# TRAIN
# INPUT: x = f32[3]
# PARAM: p = f32[3]
# BUFFER: b = f32[3]
# CHECK: get_attr[target=p]
# CHECK: aten::exp](args = (%p,)
# CHECK: get_attr[target=_folded0]
# CHECK-NOT: aten::cos
fx 1
%x = placeholder[target=x]
%p = get_attr[target=p]
%b = get_attr[target=b]
%exp = call_function[target=aten::exp](args = (%p,))
%cos = call_function[target=aten::cos](args = (%b,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
%whole_sum = call_function[target=aten::mul.Tensor](args = (%mul, %cos))
return %whole_sum
