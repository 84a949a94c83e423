# aten::convolution with a bias, and the forms of batch norm that return three values.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 4, 9]
# PARAM: w = f32[8, 4, 3]
# PARAM: cb = f32[8]
# BUFFER: m = f32[8]
# BUFFER: v = [0.5, 1.0, 1.5, 2.0, 0.5, 1.0, 1.5, 2.0]
# PARAM: w2 = f32[8, 8, 1]
# CHECK-NOT: batch_norm
# CHECK-NOT: getitem
# CHECK: return %conv2
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%cb = get_attr[target=cb]
%m = get_attr[target=m]
%v = get_attr[target=v]
%w2 = get_attr[target=w2]
%conv = call_function[target=aten::convolution](args = (%x, %w, %cb, [1], [0], [1], False, [0], 1))
%n = call_function[target=aten::_native_batch_norm_legit_no_training](args = (%conv, None, None, %m, %v, 0.1, 1e-05))
%n0 = call_function[target=operator.getitem](args = (%n, 0))
%conv2 = call_function[target=aten::conv1d](args = (%n0, %w2))
%k = call_function[target=aten::native_batch_norm](args = (%conv2, None, None, %m, %v, False, 0.1, 1e-05))
%k0 = call_function[target=operator.getitem](args = (%k, 0))
return %k0
