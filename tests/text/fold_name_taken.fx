# R-060: names that the model uses itself.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: _folded0 = f32[3]
# CHECK: get_attr[target=_folded1]
fx 1
%x = placeholder[target=x]
%a = get_attr[target=_folded0]
%exp = call_function[target=aten::exp](args = (%a,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
return %mul
