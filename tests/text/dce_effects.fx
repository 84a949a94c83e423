# F7, F8: whatever changes something that is seen stays, unused as it is.
# RUN: dce
# INPUT: x = f32[2, 3]
# BUFFER: mean = f32[3]
# BUFFER: out = f32[2, 3]
# BUFFER: var = f32[3]
# BUFFER: count = i64[3]
# UNCHANGED
# CHECK: aten::mul_.Tensor
# CHECK: operator.iadd
# CHECK: call_method[target=add_]
# CHECK: aten::add.out
# CHECK: aten::batch_norm
fx 1
%x = placeholder[target=x]
%mean = get_attr[target=mean]
%out_buffer = get_attr[target=out]
%var = get_attr[target=var]
%count = get_attr[target=count]
%mul_ = call_function[target=aten::mul_.Tensor](args = (%x, 2.0))
%iadd = call_function[target=operator.iadd](args = (%count, 1))
%add_ = call_method[target=add_](args = (%x, 1.0))
%out = call_function[target=aten::add.out](args = (%x, %x), kwargs = {out: %out_buffer})
%bn = call_function[target=aten::batch_norm](args = (%x, None, None, %mean, %var, True, 0.1, 1e-05, False))
return (%x, %count)
