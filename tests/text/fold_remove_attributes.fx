# With the option, attributes that nothing reads any more go; those in use stay.
# RUN: constant_fold(remove_unused_attributes)
# INPUT: x = f32[2, 3]
# PARAM: layer.a = f32[3]
# PARAM: b = f32[3]
# CHECK: # attributes: _folded0 b
# CHECK-NOT: layer.a
fx 1
%x = placeholder[target=x]
%a = get_attr[target=layer.a]
%b = get_attr[target=b]
%exp = call_function[target=aten::exp](args = (%a,))
%y = call_function[target=aten::mul.Tensor](args = (%x, %b))
%mul = call_function[target=aten::mul.Tensor](args = (%y, %exp))
return %mul
