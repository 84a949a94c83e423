# Of an input it is not known whether it is a tensor.
# RUN: normalize_operators
# INPUT: x = f32[2, 3]
# CHECK: target=torch.add](args = (%x, 2), kwargs = {})
# CHECK: target=operator.mul](args = (%add, %x), kwargs = {})
fx 1
%x = placeholder[target=x]
%add = call_function[target=torch.add](args = (%x, 2))
%mul = call_function[target=torch.mul](args = (%add, %x))
return %mul
