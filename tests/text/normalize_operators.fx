# E-024: torch functions of tensors become operators; with other arguments, or of numbers alone, they stay.
# RUN: normalize_operators(inputs_are_tensors)
# INPUT: x = f32[2, 3]
# CHECK: %add = call_function[target=operator.add](args = (%x, 2), kwargs = {})
# CHECK: %div = call_function[target=operator.truediv](args = (%add, %x), kwargs = {})
# CHECK: %mod = call_function[target=operator.mod](args = (%div, 2), kwargs = {})
# CHECK: %lt = call_function[target=operator.lt](args = (%mod, %x), kwargs = {})
# CHECK: %scaled = call_function[target=torch.add](args = (%mod, %x), kwargs = {alpha: 2})
# CHECK: %number = call_function[target=torch.mul](args = (2, 3), kwargs = {})
fx 1
%x = placeholder[target=x]
%add = call_function[target=torch.add](args = (%x, 2))
%div = call_function[target=torch.div](args = (%add, %x))
%mod = call_function[target=torch.remainder](args = (%div, 2))
%lt = call_function[target=torch.lt](args = (%mod, %x))
%scaled = call_function[target=torch.add](args = (%mod, %x), kwargs = {alpha: 2})
%number = call_function[target=torch.mul](args = (2, 3))
return (%lt, %scaled, %number)
