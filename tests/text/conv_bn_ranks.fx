# One and three dimensions, groups, stride and padding; no affine part.
# RUN: fuse_conv_bn
# INPUT: a = f32[2, 4, 9]
# INPUT: b = f32[2, 2, 5, 5, 5]
# MODULE: conv1 = Conv1d(4, 8, 3, groups=2, stride=2, padding=1)
# MODULE: bn1 = BatchNorm1d(8, affine=False)
# MODULE: conv3 = Conv3d(2, 4, 3)
# MODULE: bn3 = BatchNorm3d(4)
# CHECK-NOT: target=bn1
# CHECK-NOT: target=bn3
# CHECK: return (%conv1, %conv3)
fx 1
%a = placeholder[target=a]
%b = placeholder[target=b]
%conv1 = call_module[target=conv1](args = (%a,))
%bn1 = call_module[target=bn1](args = (%conv1,))
%conv3 = call_module[target=conv3](args = (%b,))
%bn3 = call_module[target=bn3](args = (%conv3,))
return (%bn1, %bn3)
