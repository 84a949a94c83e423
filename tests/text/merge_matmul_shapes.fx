# Of torch.matmul it has to be known that it multiplies matrices.
# RUN: shape_prop,merge_matmul
# INPUT: a = f32[2, 3]
# INPUT: b = f32[5, 3]
# INPUT: v = f32[3]
# PARAM: w = f32[3, 4]
# CHECK-COUNT-EXACTLY-2: target=torch.matmul
# CHECK: args = (%v, %
fx 1
%a = placeholder[target=a]
%b = placeholder[target=b]
%v = placeholder[target=v]
%w = get_attr[target=w]
%w_1 = get_attr[target=w]
%first = call_function[target=torch.matmul](args = (%a, %w))
%second = call_function[target=torch.matmul](args = (%b, %w_1))
%vector = call_function[target=torch.matmul](args = (%v, %w))
return (%first, %second, %vector)
