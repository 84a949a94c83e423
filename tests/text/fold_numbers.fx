# Numbers become literals.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: w = f32[5, 7]
# CHECK-NOT: getattr
# CHECK: args = (%x, 7)
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%shape = call_function[target=builtins.getattr](args = (%w, 'shape'))
%n = call_function[target=operator.getitem](args = (%shape, 1))
%mul = call_function[target=operator.mul](args = (%x, %n))
return %mul
