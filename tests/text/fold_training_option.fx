# RUN: constant_fold(fold_trainable)
# TRAIN
# INPUT: x = f32[3]
# PARAM: p = f32[3]
# CHECK-NOT: aten::exp
# CHECK: return
fx 1
%x = placeholder[target=x]
%p = get_attr[target=p]
%exp = call_function[target=aten::exp](args = (%p,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
return %mul
