# Transposed convolutions, saved statistics in use, trained or written weights, and normalisation of
# inputs.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 4, 9]
# BUFFER: w = f32[4, 4, 3]
# BUFFER: m = f32[4]
# BUFFER: v = [0.5, 1.0, 1.5, 2.0]
# BUFFER: changing = f32[4, 4, 3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%m = get_attr[target=m]
%v = get_attr[target=v]
%changing = get_attr[target=changing]
%t = call_function[target=aten::convolution](args = (%x, %w, None, [1], [0], [1], True, [0], 1))
%tn = call_function[target=aten::batch_norm](args = (%t, None, None, %m, %v, False, 0.1, 1e-05, True))
%c = call_function[target=aten::conv1d](args = (%x, %w))
%cn = call_function[target=aten::native_batch_norm](args = (%c, None, None, %m, %v, False, 0.1, 1e-05))
%c0 = call_function[target=operator.getitem](args = (%cn, 0))
%c1 = call_function[target=operator.getitem](args = (%cn, 1))
%d = call_function[target=aten::conv1d](args = (%x, %changing))
%dn = call_function[target=aten::batch_norm](args = (%d, None, None, %m, %v, False, 0.1, 1e-05, True))
%e = call_function[target=aten::batch_norm](args = (%x, None, None, %m, %v, False, 0.1, 1e-05, True))
%add_ = call_function[target=aten::add_.Tensor](args = (%changing, 1.0))
return [%tn, %c0, %c1, %dn, %e]
