# Left alone: overloads that nothing tells apart, methods, built-ins, and what is normal already.
# RUN: normalize_args
# INPUT: x = f32[2, 6]
# INPUT: y = f32[2, 6]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%max_1 = call_function[target=torch.max](args = (%x, %y))
%relu = call_method[target=relu](args = (%max_1,))
%sin = call_function[target=aten::sin](args = (), kwargs = {self: %relu})
%add = call_function[target=operator.add](args = (%sin, 1))
return %add
