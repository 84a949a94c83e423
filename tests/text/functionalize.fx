# Writes through views become functional; the input is written once, at the end.
# RUN: functionalize
# INPUT: x = f32[2, 6]
# CHECK: %select_scatter
# CHECK: aten::copy_](args = (%x,
# CHECK-NOT: mul_
fx 1
%x = placeholder[target=x]
%row = call_function[target=aten::select.int](args = (%x, 0, 1))
%mul = call_function[target=aten::mul_.Scalar](args = (%row, 2))
%y = call_function[target=aten::add.Tensor](args = (%x, %x))
return %y
