# The functional form, as exported programs have it; a bias appears beside the weight.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 3, 8, 8]
# PARAM: conv.weight = f32[8, 3, 3, 3]
# PARAM: bn.weight = f32[8]
# PARAM: bn.bias = f32[8]
# BUFFER: bn.running_mean = f32[8]
# BUFFER: bn.running_var = [0.5, 1.0, 1.5, 2.0, 0.5, 1.0, 1.5, 2.0]
# BUFFER: bn.num_batches_tracked = i64[1]
# CHECK: %w = get_attr[target=conv.weight]
# CHECK: get_attr[target=conv.bias]
# CHECK: aten::conv2d](args = (%x, %w, %conv_bias, [2, 2])
# CHECK-NOT: batch_norm
# CHECK: # attributes: conv.bias conv.weight
# CHECK-NOT: bn
fx 1
%x = placeholder[target=x]
%w = get_attr[target=conv.weight]
%g = get_attr[target=bn.weight]
%b = get_attr[target=bn.bias]
%m = get_attr[target=bn.running_mean]
%v = get_attr[target=bn.running_var]
%conv = call_function[target=aten::conv2d](args = (%x, %w, None, [2, 2]))
%bn = call_function[target=aten::batch_norm](args = (%conv, %g, %b, %m, %v, False, 0.1, 1e-05, True))
return %bn
