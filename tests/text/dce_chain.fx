# Unused nodes go, from the end to the start; placeholders and unused inputs stay.
# RUN: dce
# INPUT: x = f32[2, 3]
# INPUT: unused = f32[1]
# PARAM: w = f32[3]
# CHECK: %unused = placeholder
# CHECK-NOT: get_attr
# CHECK-NOT: aten::neg
# CHECK-NOT: aten::exp
# CHECK: return %relu
fx 1
%x = placeholder[target=x]
%unused = placeholder[target=unused]
%w = get_attr[target=w]
%add = call_function[target=aten::add.Tensor](args = (%x, %w))
%neg = call_function[target=aten::neg](args = (%add,))
%exp = call_function[target=aten::exp](args = (%neg,))
%relu = call_function[target=aten::relu](args = (%x,))
return %relu
