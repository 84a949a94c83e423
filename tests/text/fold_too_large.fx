# A result beyond max_bytes is not made, nor is a huge tensor on the way to a small one. Smaller ones are.
# RUN: constant_fold(max_bytes=4096)
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# CHECK: aten::zeros](args = ([1000000],)
# CHECK: aten::sum
# CHECK: get_attr[target=_folded0]
# CHECK-NOT: aten::exp
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%zeros = call_function[target=aten::zeros](args = ([1000000],))
%total = call_function[target=aten::sum](args = (%zeros,))
%exp = call_function[target=aten::exp](args = (%w,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
%add = call_function[target=aten::add.Tensor](args = (%mul, %total))
return %add
