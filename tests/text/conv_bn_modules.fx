# S4-73: a convolution and its batch normalisation become one convolution under the old path.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 3, 8, 8]
# MODULE: conv = Conv2d(3, 8, 3, bias=False)
# MODULE: bn = BatchNorm2d(8)
# CHECK: %conv = call_module[target=conv](args = (%x,)
# CHECK-NOT: target=bn
# CHECK: return %conv
# CHECK: # attributes: conv.bias conv.weight
# CHECK-NOT: bn
fx 1
%x = placeholder[target=x]
%conv = call_module[target=conv](args = (%x,))
%bn = call_module[target=bn](args = (%conv,))
return %bn
