# Attributes are compared by the tensor they hold: tied weights are one value, equal ones are not.
# RUN: cse
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# BUFFER: other = [1.0, 1.0, 1.0]
# BUFFER: like_other = [1.0, 1.0, 1.0]
# ALIAS: tied = w
# CHECK: get_attr[target=w]
# CHECK-NOT: get_attr[target=tied]
# CHECK: get_attr[target=other]
# CHECK: get_attr[target=like_other]
# CHECK-COUNT-EXACTLY-3: aten::mul
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%tied = get_attr[target=tied]
%other = get_attr[target=other]
%like_other = get_attr[target=like_other]
%a = call_function[target=aten::mul.Tensor](args = (%x, %w))
%b = call_function[target=aten::mul.Tensor](args = (%x, %tied))
%c = call_function[target=aten::mul.Tensor](args = (%x, %other))
%d = call_function[target=aten::mul.Tensor](args = (%x, %like_other))
%ab = call_function[target=aten::add.Tensor](args = (%a, %b))
%cd = call_function[target=aten::add.Tensor](args = (%c, %d))
%total = call_function[target=aten::add.Tensor](args = (%ab, %cd))
return %total
