# RUN: shape_prop,remove_noops(static_shapes)
# INPUT: x = f32[2, 3]
# CHECK-NOT: aten::view
# CHECK-NOT: aten::expand
# CHECK: return %exp
fx 1
%x = placeholder[target=x]
%view = call_function[target=aten::view](args = (%x, [2, 3]))
%expand = call_function[target=aten::expand](args = (%view, [-1, 3]))
%exp = call_function[target=aten::exp](args = (%expand,))
return %exp
