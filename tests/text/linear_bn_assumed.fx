# RUN: fuse_conv_bn(assume_linear_2d)
# INPUT: x = f32[4, 6]
# MODULE: lin = Linear(6, 5)
# MODULE: bn = BatchNorm1d(5)
# CHECK-NOT: target=bn
# CHECK: return %lin
fx 1
%x = placeholder[target=x]
%lin = call_module[target=lin](args = (%x,))
%bn = call_module[target=bn](args = (%lin,))
return %bn
