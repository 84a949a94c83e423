# A call stays where memory is written to between, and -(-x) where it is returned or would have other strides.
# RUN: shape_prop,simplify
# INPUT: x = f32[2, 3]
# INPUT: y = f32[3, 2]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%neg = call_function[target=aten::neg](args = (%x,))
%neg_1 = call_function[target=aten::neg](args = (%neg,))
%exp = call_function[target=aten::exp](args = (%x,))
%magnitude = call_function[target=aten::abs](args = (%exp,))
%add_ = call_method[target=add_](args = (%exp, 1.0))
%magnitude_1 = call_function[target=aten::abs](args = (%magnitude,))
%turned = call_function[target=aten::transpose.int](args = (%exp, 0, 1))
%back = call_function[target=aten::transpose.int](args = (%turned, 0, 1))
%wide = call_function[target=aten::slice.Tensor](args = (%y, 1, 0, 1))
%turn = call_function[target=aten::neg](args = (%wide,))
%turn_1 = call_function[target=aten::neg](args = (%turn,))
%total = call_function[target=aten::sum](args = (%turn_1,))
return (%neg_1, %magnitude_1, %back, %total)
