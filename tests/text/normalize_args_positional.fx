# What is given by position may stay there; only what is left out is added.
# RUN: normalize_args(only_kwargs=false)
# INPUT: x = f32[2, 6]
# CHECK: args = (%x, [1]), kwargs = {keepdim: True, dtype: None}
fx 1
%x = placeholder[target=x]
%sum_1 = call_function[target=aten::sum.dim_IntList](args = (%x, [1]), kwargs = {keepdim: True})
return %sum_1
