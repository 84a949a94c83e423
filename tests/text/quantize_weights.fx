# S4-72: weights as 8-bit integers with a scale for each channel; modules become functional calls.
# RUN: quantize_weights(min_numel=1)
# INPUT: x = f32[2, 4, 9]
# MODULE: conv = Conv1d(4, 8, 3, stride=2)
# PARAM: lin.weight = f32[5, 4]
# PARAM: lin.bias = f32[5]
# RESULTS-DIFFER
# CHECK: get_attr[target=conv.weight_int8]
# CHECK: aten::to.dtype
# CHECK: get_attr[target=conv.weight_scale]
# CHECK: aten::mul.Tensor
# CHECK: %conv = call_function[target=aten::conv1d](args = (%x, %mul_tensor, %conv_bias, [2], [0], [1], 1)
# CHECK: get_attr[target=lin.weight_int8]
# CHECK: aten::linear](args = (%turned, %mul_tensor_1, %b)
# CHECK: # attributes: conv.bias conv.weight_int8 conv.weight_scale lin.bias lin.weight_int8 lin.weight_scale
fx 1
%x = placeholder[target=x]
%conv = call_module[target=conv](args = (%x,))
%w = get_attr[target=lin.weight]
%b = get_attr[target=lin.bias]
%cut = call_function[target=aten::slice.Tensor](args = (%conv, 1, 0, 4))
%turned = call_function[target=aten::transpose.int](args = (%cut, 1, 2))
%lin = call_function[target=aten::linear](args = (%turned, %w, %b))
return %lin
