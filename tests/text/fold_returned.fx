# A new tensor that is returned must be new in every run; up to it everything is folded.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# CHECK: get_attr[target=_folded0]
# CHECK: aten::cos](args = (%_folded0,)
# CHECK: return (%x, %cos)
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%exp = call_function[target=aten::exp](args = (%w,))
%cos = call_function[target=aten::cos](args = (%exp,))
return (%x, %cos)
