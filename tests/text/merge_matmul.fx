# E-033: products with the same right-hand side become one, whatever the numbers of rows are.
# RUN: merge_matmul
# INPUT: a = f32[2, 3]
# INPUT: b = f32[5, 3]
# INPUT: d = f32[1, 3]
# INPUT: c = f32[3, 4]
# CHECK-COUNT-EXACTLY-1: aten::mm
# CHECK: aten::split_with_sizes
fx 1
%a = placeholder[target=a]
%b = placeholder[target=b]
%d = placeholder[target=d]
%c = placeholder[target=c]
%first = call_function[target=aten::mm](args = (%a, %c))
%relu = call_function[target=aten::relu](args = (%first,))
%sin = call_function[target=aten::sin](args = (%b,))
%second = call_function[target=aten::mm](args = (%sin, %c))
%third = call_function[target=aten::mm](args = (%d, %c))
return (%relu, %second, %third)
