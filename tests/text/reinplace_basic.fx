# Memory that the graph made is written over once nothing reads it any more; inputs never are.
# RUN: reinplace
# INPUT: x = f32[4, 4]
# CHECK: %add = call_function[target=aten::add.Tensor](args = (%x, 1), kwargs = {})
# CHECK: %mul = call_function[target=aten::mul_.Tensor](args = (%add, 2), kwargs = {})
# CHECK: %relu = call_function[target=aten::relu_](args = (%mul,), kwargs = {})
# CHECK: return %relu
fx 1
%x = placeholder[target=x]
%add = call_function[target=aten::add.Tensor](args = (%x, 1))
%mul = call_function[target=aten::mul.Tensor](args = (%add, 2))
%relu = call_function[target=aten::relu](args = (%mul,))
return %relu
