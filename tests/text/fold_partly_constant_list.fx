# A list of constants that a call with an input takes becomes a list of attributes.
# RUN: constant_fold
# INPUT: x = f32[2, 2]
# CONST: index = [0, 1]
# CHECK-NOT: aten::split
# CHECK: aten::index.Tensor](args = (%x, [%_folded0, %_folded1])
fx 1
%x = placeholder[target=x]
%index = get_attr[target=index]
%s = call_function[target=aten::split.Tensor](args = (%index, 1))
%at = call_function[target=aten::index.Tensor](args = (%x, %s))
return %at
