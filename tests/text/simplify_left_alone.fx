# No rule: other options, unknown or unfit dtypes, numbers that have no inverse, what is no inverse of the other.
# RUN: shape_prop,simplify
# INPUT: x = f32[2, 3]
# INPUT: i = i64[2, 3]
# PARAM: w = f32[2, 3]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%i = placeholder[target=i]
%w = get_attr[target=w]
%n = call_function[target=aten::to.dtype](args = (%i, torch.uint8))
%c = call_function[target=aten::complex](args = (%x, %x))
%clamp = call_function[target=aten::clamp](args = (%x, 0, 1))
%clamp_1 = call_function[target=aten::clamp](args = (%clamp, 0, 2))
%magnitude = call_function[target=aten::abs](args = (%w,))
%relu = call_function[target=aten::relu](args = (%magnitude,))
%third = call_function[target=aten::div.Tensor](args = (%clamp_1, 3.0))
%far = call_function[target=aten::div.Tensor](args = (%third, 65536.0))
%floor = call_function[target=aten::div.Tensor_mode](args = (%far, 2.0), kwargs = {rounding_mode: "floor"})
%parts = call_function[target=aten::div.Tensor](args = (%c, 2.0))
%neg = call_function[target=aten::neg](args = (%n,))
%of_neg = call_function[target=aten::abs](args = (%neg,))
%rounded = call_function[target=aten::to.dtype](args = (%x, torch.float16))
%wide = call_function[target=aten::to.dtype](args = (%rounded, torch.float64))
%whole = call_function[target=aten::to.dtype](args = (%wide, torch.int64))
%turned = call_function[target=aten::permute](args = (%whole, [1, 0]))
%flat = call_function[target=aten::reshape](args = (%turned, [6]))
%square = call_function[target=aten::reshape](args = (%flat, [2, 3]))
%more = call_function[target=aten::unsqueeze](args = (%square, 0))
%less = call_function[target=aten::squeeze.dim](args = (%more, -3))
%whole_1 = call_function[target=aten::squeeze](args = (%more,))
%every = call_function[target=aten::slice.Tensor](args = (%whole_1, 1, 0, 3, 2))
%one = call_function[target=aten::slice.Tensor](args = (%every, 1, 0, 1))
%back = call_function[target=aten::slice.Tensor](args = (%one, 1, -1, 5))
%logical = call_function[target=aten::logical_not](args = (%n,))
%once = call_function[target=aten::logical_not](args = (%logical,))
return (%relu, %floor, %parts, %of_neg, %less, %back, %once)
