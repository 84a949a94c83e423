# Neutral elements, where the dtype is known. x + 0.0 turns -0.0 into 0.0, so it is none.
# RUN: shape_prop,remove_noops
# INPUT: x = f32[3]
# INPUT: n = i64[3]
# CHECK-NOT: operator.mul
# CHECK-NOT: operator.sub
# CHECK: operator.add](args = (%x, 0.0)
# CHECK: operator.truediv](args = (%n, 1)
# CHECK-NOT: operator.add](args = (%n, 0)
# CHECK: aten::exp](args = (%add,)
fx 1
%x = placeholder[target=x]
%n = placeholder[target=n]
%mul = call_function[target=operator.mul](args = (%x, 1))
%sub = call_function[target=operator.sub](args = (%mul, 0))
%div = call_function[target=operator.truediv](args = (%sub, 1.0))
%add = call_function[target=operator.add](args = (%div, 0.0))
%ndiv = call_function[target=operator.truediv](args = (%n, 1))
%nadd = call_function[target=operator.add](args = (%n, 0))
%exp = call_function[target=aten::exp](args = (%add,))
%nexp = call_function[target=aten::exp](args = (%nadd,))
%total = call_function[target=aten::add.Tensor](args = (%exp, %nexp))
%whole_sum = call_function[target=aten::add.Tensor](args = (%total, %ndiv))
return %whole_sum
