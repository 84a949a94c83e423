# R-058: random numbers are drawn anew each time; so is dropout that is active.
# RUN: cse
# INPUT: x = f32[2, 3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%a = call_function[target=aten::rand_like](args = (%x,))
%b = call_function[target=aten::rand_like](args = (%x,))
%c = call_function[target=aten::dropout](args = (%x, 0.5, True))
%d = call_function[target=aten::dropout](args = (%x, 0.5, True))
%e = call_function[target=aten::randn](args = ([2, 3],))
%f = call_function[target=aten::randn](args = ([2, 3],))
return [%a, %b, %c, %d, %e, %f]
