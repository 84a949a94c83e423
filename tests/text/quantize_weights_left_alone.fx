# Small weights, weights that others read, and modules in training mode.
# RUN: quantize_weights(min_numel=20)
# INPUT: x = f32[2, 4]
# PARAM: small = f32[4, 4]
# PARAM: shared = f32[5, 4]
# MODULE: training = Linear(5, 4) train
# UNCHANGED
fx 1
%x = placeholder[target=x]
%small = get_attr[target=small]
%shared = get_attr[target=shared]
%a = call_function[target=aten::linear](args = (%x, %small))
%b = call_function[target=aten::linear](args = (%a, %shared))
%c = call_module[target=training](args = (%b,))
%d = call_function[target=aten::linear](args = (%c, %shared))
return %d
