# Modules are compared by the object that is called; two modules with equal weights are two.
# RUN: cse
# INPUT: x = f32[2, 3]
# MODULE: a = Linear(3, 3)
# MODULE: b = Linear(3, 3)
# ALIAS: again = a
# CHECK-COUNT-EXACTLY-1: call_module[target=a]
# CHECK-NOT: call_module[target=again]
# CHECK: call_module[target=b]
fx 1
%x = placeholder[target=x]
%a = call_module[target=a](args = (%x,))
%a_1 = call_module[target=a](args = (%x,))
%again = call_module[target=again](args = (%x,))
%b = call_module[target=b](args = (%x,))
%s = call_function[target=aten::add.Tensor](args = (%a, %a_1))
%t = call_function[target=aten::add.Tensor](args = (%s, %again))
%u = call_function[target=aten::add.Tensor](args = (%t, %b))
return %u
