# A module that updates statistics or draws numbers runs as often as it is called.
# RUN: cse
# INPUT: x = f32[4, 3]
# MODULE: bn = BatchNorm1d(3) train
# MODULE: drop = Dropout(0.5) train
# UNCHANGED
fx 1
%x = placeholder[target=x]
%a = call_module[target=bn](args = (%x,))
%b = call_module[target=bn](args = (%x,))
%c = call_module[target=drop](args = (%x,))
%d = call_module[target=drop](args = (%x,))
return [%a, %b, %c, %d]
