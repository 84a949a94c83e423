# Every argument by its name, defaults included; "self" is "input" where Python calls it so.
# RUN: normalize_args
# INPUT: x = f32[2, 6]
# MODULE: lin = Linear(6, 3)
# CHECK: target=lin](args = (), kwargs = {input: %x})
# CHECK: target=aten::sum.dim_IntList](args = (), kwargs = {self: %lin, dim: [1], keepdim: False, dtype: None})
# CHECK: target=torch.flatten](args = (), kwargs = {input: %lin, start_dim: 0, end_dim: -1})
# CHECK: target=torch.nn.functional.softplus](args = (), kwargs = {input: %flat, beta: 2.0})
# CHECK: target=operator.mul](args = (%soft, 2), kwargs = {})
fx 1
%x = placeholder[target=x]
%lin = call_module[target=lin](args = (%x,))
%sum_1 = call_function[target=aten::sum.dim_IntList](args = (%lin, [1]))
%flat = call_function[target=torch.flatten](args = (%lin,))
%soft = call_function[target=torch.nn.functional.softplus](args = (%flat,), kwargs = {beta: 2.0})
%mul = call_function[target=operator.mul](args = (%soft, 2))
return (%sum_1, %mul)
