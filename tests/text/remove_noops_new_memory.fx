# x * 1 is a new tensor: it stays when it is returned, or when it or x is written to.
# RUN: shape_prop,remove_noops
# INPUT: x = f32[3]
# INPUT: y = f32[3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%zeros = call_function[target=aten::zeros_like](args = (%x,))
%a = call_function[target=operator.mul](args = (%x, 1))
%b = call_function[target=operator.mul](args = (%zeros, 1))
%add_ = call_method[target=add_](args = (%b, 1.0))
%c = call_function[target=aten::add.Tensor](args = (%b, %y))
return (%a, %c, %zeros)
