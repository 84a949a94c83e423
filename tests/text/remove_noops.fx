# Nodes that return their input as it is, whatever the shapes.
# RUN: remove_noops
# INPUT: x = f32[2, 3]
# MODULE: id = Identity()
# CHECK-NOT: target=id
# CHECK-NOT: aten::alias
# CHECK: aten::slice.Tensor](args = (%x, 0, 1)
# CHECK: aten::permute](args = (%part, [1, 0])
# CHECK: return %turned
fx 1
%x = placeholder[target=x]
%id_1 = call_module[target=id](args = (%x,))
%alias = call_function[target=aten::alias](args = (%id_1,))
%whole = call_function[target=aten::slice.Tensor](args = (%alias, 0, 0, 9223372036854775807))
%part = call_function[target=aten::slice.Tensor](args = (%whole, 0, 1))
%same = call_function[target=aten::permute](args = (%part, [0, 1]))
%turned = call_function[target=aten::permute](args = (%same, [1, 0]))
return %turned
