# Dropout that does nothing goes; active dropout stays.
# RUN: remove_dropout
# INPUT: x = f32[2, 3]
# MODULE: idle = Dropout(0.5)
# MODULE: active = Dropout(0.5) train
# CHECK-NOT: target=idle
# CHECK: call_module[target=active](args = (%x,)
# CHECK: aten::dropout](args = (%active, 0.5, True)
# CHECK: return %c
fx 1
%x = placeholder[target=x]
%idle = call_module[target=idle](args = (%x,))
%active = call_module[target=active](args = (%idle,))
%a = call_function[target=aten::dropout](args = (%active, 0.5, False))
%b = call_function[target=aten::dropout](args = (%a, 0.0, True))
%c = call_function[target=aten::dropout](args = (%b, 0.5, True))
return %c
