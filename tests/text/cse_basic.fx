# R-058: equal calls on equal values are computed once, and so are those that depend on them.
# RUN: cse
# INPUT: x = f32[2, 3]
# CHECK-COUNT-EXACTLY-1: aten::cos
# CHECK-COUNT-EXACTLY-1: aten::sin
# CHECK: args = (%sin, %sin)
# CHECK: return %add
fx 1
%x = placeholder[target=x]
%cos = call_function[target=aten::cos](args = (%x,))
%sin = call_function[target=aten::sin](args = (%cos,))
%cos_1 = call_function[target=aten::cos](args = (%x,))
%sin_1 = call_function[target=aten::sin](args = (%cos_1,))
%add = call_function[target=aten::add.Tensor](args = (%sin, %sin_1))
return %add
