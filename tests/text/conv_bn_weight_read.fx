# F51: the weight is read by somebody else too.
# RUN: fuse_conv_bn
# INPUT: x = f32[2, 3, 8, 8]
# MODULE: conv = Conv2d(3, 8, 3)
# MODULE: bn = BatchNorm2d(8)
# CHECK: get_attr[target=conv.weight]
# CHECK: call_module[target=conv_fused0]
# CHECK-NOT: target=bn
# CHECK: return
fx 1
%x = placeholder[target=x]
%w = get_attr[target=conv.weight]
%conv = call_module[target=conv](args = (%x,))
%bn = call_module[target=bn](args = (%conv,))
%norm = call_function[target=aten::sum](args = (%w,))
%add = call_function[target=aten::add.Tensor](args = (%bn, %norm))
return %add
