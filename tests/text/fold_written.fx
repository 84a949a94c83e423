# An attribute that the graph writes to is no constant, by whatever name it is read.
# RUN: constant_fold
# INPUT: x = f32[3]
# BUFFER: state = f32[3]
# ALIAS: same = state
# UNCHANGED
fx 1
%x = placeholder[target=x]
%state = get_attr[target=state]
%same = get_attr[target=same]
%exp = call_function[target=aten::exp](args = (%same,))
%mul = call_function[target=aten::mul.Tensor](args = (%x, %exp))
%add_ = call_function[target=aten::add_.Tensor](args = (%state, 1.0))
return %mul
