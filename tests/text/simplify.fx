# What the graph alone says: rules that need no dtypes, and dtypes of conversions.
# RUN: simplify(use_metadata=false)
# INPUT: x = f32[2, 3]
# CHECK: %relu_1 = call_function[target=aten::relu](args = (%x,)
# CHECK: %clamp_1 = call_method[target=clamp](args = (%relu_1, 0, 1)
# CHECK: %low = call_method[target=to](args = (%clamp_1, torch.bfloat16)
# CHECK: %half = call_function[target=operator.mul](args = (%low, 0.25)
# CHECK-NOT: permute
# CHECK: aten::view](args = (%half, [6])
# CHECK: aten::expand](args = (%flat, [4, 6])
# CHECK: aten::slice.Tensor](args = (%wide, 1, 3, 5)
# CHECK: return %part_1
fx 1
%x = placeholder[target=x]
%relu = call_function[target=aten::relu](args = (%x,))
%relu_1 = call_function[target=aten::relu](args = (%relu,))
%clamp = call_method[target=clamp](args = (%relu_1, 0, 1))
%clamp_1 = call_method[target=clamp](args = (%clamp, 0, 1))
%low = call_method[target=to](args = (%clamp_1, torch.bfloat16))
%same = call_function[target=aten::to.dtype](args = (%low, torch.bfloat16))
%half = call_function[target=operator.truediv](args = (%same, 4))
%turned = call_function[target=aten::permute](args = (%half, [1, 0]))
%back = call_function[target=aten::transpose.int](args = (%turned, -1, 0))
%more = call_function[target=aten::unsqueeze](args = (%back, -1))
%less = call_function[target=aten::squeeze.dim](args = (%more, -1))
%view = call_function[target=aten::view](args = (%less, [3, 2]))
%flat = call_function[target=aten::view](args = (%view, [6]))
%tall = call_function[target=aten::expand](args = (%flat, [1, 6]))
%wide = call_function[target=aten::expand](args = (%tall, [4, 6]))
%part = call_function[target=aten::slice.Tensor](args = (%wide, 1, 1, 5))
%part_1 = call_function[target=aten::slice.Tensor](args = (%part, 1, 2, 9223372036854775807))
return %part_1
