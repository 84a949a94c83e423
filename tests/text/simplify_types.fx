# Rules that need dtypes and strides.
# RUN: shape_prop,simplify
# INPUT: x = f32[2, 3]
# INPUT: n = i64[2, 3]
# CHECK: %y = call_function[target=aten::abs](args = (%x,)
# CHECK: aten::relu](args = (%n,)
# CHECK-NOT: neg
# CHECK-NOT: bitwise_not
# CHECK-NOT: maximum
# CHECK-NOT: where
# CHECK: %z = call_function[target=aten::mul.Tensor](args = (%y, 0.125)
# CHECK: aten::add.Tensor](args = (%z, %a)
fx 1
%x = placeholder[target=x]
%n = placeholder[target=n]
%neg = call_function[target=aten::neg](args = (%x,))
%magnitude = call_function[target=aten::abs](args = (%neg,))
%y = call_function[target=aten::relu](args = (%magnitude,))
%positive = call_function[target=aten::relu](args = (%n,))
%a = call_function[target=aten::abs](args = (%positive,))
%turn = call_function[target=aten::bitwise_not](args = (%a,))
%turn_1 = call_function[target=operator.invert](args = (%turn,))
%neg_1 = call_method[target=neg](args = (%y,))
%neg_2 = call_function[target=operator.neg](args = (%neg_1,))
%largest = call_function[target=aten::maximum](args = (%neg_2, %neg_2))
%mask = call_function[target=aten::gt.Scalar](args = (%x, 0))
%chosen = call_function[target=aten::where.self](args = (%mask, %largest, %largest))
%z = call_function[target=aten::div.Tensor](args = (%chosen, 8.0))
%total = call_function[target=aten::add.Tensor](args = (%z, %turn_1))
return %total
