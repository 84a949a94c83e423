# Two returned tensors stay two, since the caller may write into one of them. What leads to them is
# shared.
# RUN: cse
# INPUT: x = f32[2, 3]
# CHECK-COUNT-EXACTLY-1: aten::cos
# CHECK-COUNT-EXACTLY-2: aten::sin
# CHECK: return (%sin, %sin_1)
fx 1
%x = placeholder[target=x]
%cos = call_function[target=aten::cos](args = (%x,))
%sin = call_function[target=aten::sin](args = (%cos,))
%cos_1 = call_function[target=aten::cos](args = (%x,))
%sin_1 = call_function[target=aten::sin](args = (%cos_1,))
return (%sin, %sin_1)
