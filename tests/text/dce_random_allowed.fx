# ... unless the option says otherwise.
# RUN: dce(impure_random=false)
# INPUT: x = f32[2, 3]
# CHECK-NOT: aten::rand_like
# CHECK: return
fx 1
%x = placeholder[target=x]
%r = call_function[target=aten::rand_like](args = (%x,))
return %x
