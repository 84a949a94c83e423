# A linear layer behind a flatten has rows of features, so its normalisation works on features.
# RUN: fuse_conv_bn
# INPUT: x = f32[4, 3, 2]
# MODULE: flat = Flatten()
# MODULE: lin = Linear(6, 5)
# MODULE: bn = BatchNorm1d(5)
# CHECK-NOT: target=bn
# CHECK: return %lin
fx 1
%x = placeholder[target=x]
%flat = call_module[target=flat](args = (%x,))
%lin = call_module[target=lin](args = (%flat,))
%bn = call_module[target=bn](args = (%lin,))
return %bn
