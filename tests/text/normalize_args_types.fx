# Overloads that differ are told apart by what shape_prop saw.
# RUN: shape_prop,normalize_args
# INPUT: x = f32[2, 6]
# INPUT: y = f32[6]
# CHECK: target=torch.add](args = (), kwargs = {input: %x, other: %y, alpha: 1})
# CHECK: target=torch.max](args = (), kwargs = {input: %add, other: %x})
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%add = call_function[target=torch.add](args = (%x, %y))
%max_1 = call_function[target=torch.max](args = (%add, %x))
return %max_1
