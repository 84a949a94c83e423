# R-060: what depends on attributes alone is computed once; the state_dict stays.
# RUN: constant_fold
# INPUT: x = f32[2, 3]
# PARAM: a = f32[3]
# PARAM: b = f32[3]
# CHECK: get_attr[target=_folded0]
# CHECK-NOT: aten::exp
# CHECK: args = (%x, %_folded0)
# CHECK: # attributes: _folded0 a b
fx 1
%x = placeholder[target=x]
%a = get_attr[target=a]
%b = get_attr[target=b]
%total = call_function[target=aten::add.Tensor](args = (%a, %b))
%exp = call_function[target=aten::exp](args = (%total,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
return %mul
