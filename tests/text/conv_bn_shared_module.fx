# F51: one convolution called three times, twice with a normalisation behind it: each of the two gets
# weights of its own, the third keeps the old ones.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 3, 8, 8]
# MODULE: conv = Conv2d(3, 3, 3, padding=1)
# MODULE: bn1 = BatchNorm2d(3)
# MODULE: bn2 = BatchNorm2d(3)
# CHECK: call_module[target=conv_fused0](args = (%x,)
# CHECK: call_module[target=conv_fused1](args = (%a,)
# CHECK: call_module[target=conv](args = (%b,)
# CHECK: return %c
fx 1
%x = placeholder[target=x]
%a = call_module[target=conv](args = (%x,))
%n1 = call_module[target=bn1](args = (%a,))
%b = call_module[target=conv](args = (%n1,))
%n2 = call_module[target=bn2](args = (%b,))
%c = call_module[target=conv](args = (%n2,))
return %c
