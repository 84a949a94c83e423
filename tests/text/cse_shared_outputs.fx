# ... unless the option says that the caller will not write.
# RUN: cse(share_outputs)
# INPUT: x = f32[2, 3]
# CHECK-COUNT-EXACTLY-1: aten::sin
# CHECK: return (%sin, %sin)
fx 1
%x = placeholder[target=x]
%sin = call_function[target=aten::sin](args = (%x,))
%sin_1 = call_function[target=aten::sin](args = (%x,))
return (%sin, %sin_1)
