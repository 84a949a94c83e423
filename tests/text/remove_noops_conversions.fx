# Conversions to what the value is already; a copy that is asked for stays.
# RUN: shape_prop,remove_noops
# INPUT: x = f32[2, 3]
# CHECK-NOT: contiguous
# CHECK-NOT: call_method[target=to](args = (%x, torch.float32))
# CHECK: aten::to.dtype](args = (%x, torch.float32, False, True)
# CHECK: aten::view](args = (%copy, [2, 3])
# CHECK: torch.float64
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::contiguous](args = (%x,))
%b = call_method[target=to](args = (%a, torch.float32))
%copy = call_function[target=aten::to.dtype](args = (%b, torch.float32, False, True))
%view = call_function[target=aten::view](args = (%copy, [2, 3]))
%wide = call_method[target=to](args = (%view, torch.float64))
return %wide
