# Not written over: what is read later, also through a view; what is returned; what is given twice; attributes; operands
# of another dtype or shape; rows that share memory.
# RUN: reinplace
# INPUT: x = f32[4, 4]
# PARAM: w = f32[4, 4]
# UNCHANGED
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%a = call_function[target=aten::sin](args = (%x,))
%view = call_function[target=aten::select.int](args = (%a, 0, 1))
%b = call_function[target=aten::add.Tensor](args = (%a, 1))
%late = call_function[target=aten::add.Tensor](args = (%b, %view))
%c = call_function[target=aten::cos](args = (%x,))
%returned = call_function[target=aten::neg](args = (%c,))
%d = call_function[target=aten::exp](args = (%x,))
%square = call_function[target=aten::mul.Tensor](args = (%d, %d))
%own = call_function[target=aten::relu](args = (%w,))
%e = call_function[target=aten::abs](args = (%x,))
%other_dtype = call_function[target=aten::ge.Scalar](args = (%e, 0.5))
%row = call_function[target=aten::mean.dim](args = (%x, [0], True))
%other_shape = call_function[target=aten::mul.Tensor](args = (%row, %x))
%f = call_function[target=aten::sum.dim_IntList](args = (%x, [0], True))
%wide = call_function[target=aten::expand](args = (%f, [4, 4]))
%overlapping = call_function[target=aten::add.Tensor](args = (%wide, 1))
return (%late, %b, %c, %returned, %square, %own, %other_dtype, %other_shape, %overlapping)
