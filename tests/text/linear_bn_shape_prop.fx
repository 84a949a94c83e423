# Shapes tell that it is two-dimensional.
# RUN: shape_prop,fuse_conv_bn
# INPUT: x = f32[4, 6]
# PARAM: w = f32[5, 6]
# BUFFER: m = f32[5]
# BUFFER: v = [0.5, 1.0, 1.5, 2.0, 2.5]
# CHECK-NOT: batch_norm
# CHECK: return %lin
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%m = get_attr[target=m]
%v = get_attr[target=v]
%lin = call_function[target=aten::linear](args = (%x, %w))
%bn = call_function[target=aten::batch_norm](args = (%lin, None, None, %m, %v, False, 0.1, 1e-05, True))
return %bn
