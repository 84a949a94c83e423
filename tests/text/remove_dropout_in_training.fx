# RUN: remove_dropout(even_in_training)
# INPUT: x = f32[2, 3]
# MODULE: active = Dropout(0.5) train
# RESULTS-DIFFER
# CHECK-NOT: dropout
# CHECK: return %x
fx 1
%x = placeholder[target=x]
%active = call_module[target=active](args = (%x,))
%c = call_function[target=aten::dropout](args = (%active, 0.5, True))
return %c
