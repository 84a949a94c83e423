# F9: a module that works in place changes its input.
# RUN: dce
# INPUT: x = f32[2, 3]
# MODULE: act = ReLU(inplace)
# MODULE: pure = ReLU()
# CHECK-NOT: call_module[target=pure]
# CHECK: call_module[target=act]
# CHECK: return
fx 1
%x = placeholder[target=x]
%p = call_module[target=pure](args = (%x,))
%a = call_module[target=act](args = (%x,))
return %x
