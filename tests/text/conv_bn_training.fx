# Normalisation by the statistics of the batch stays.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 3, 8, 8]
# MODULE: conv = Conv2d(3, 8, 3)
# MODULE: bn = BatchNorm2d(8) train
# UNCHANGED
fx 1
%x = placeholder[target=x]
%conv = call_module[target=conv](args = (%x,))
%bn = call_module[target=bn](args = (%conv,))
return %bn
