# A three-dimensional input would be normalised along its second axis: [N, C, L]. Nothing tells here that
# it is not one.
# RUN: fuse_conv_bn
# INPUT: x = f32[4, 5, 6]
# MODULE: lin = Linear(6, 5)
# MODULE: bn = BatchNorm1d(5)
# UNCHANGED
fx 1
%x = placeholder[target=x]
%lin = call_module[target=lin](args = (%x,))
%bn = call_module[target=bn](args = (%lin,))
return %bn
