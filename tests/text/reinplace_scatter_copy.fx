# Values from elsewhere are copied into the view; a scatter into an input stays.
# RUN: reinplace
# INPUT: x = f32[4, 4]
# INPUT: y = f32[4]
# CHECK: call_function[target=aten::slice.Tensor](args = (%zeros, 0, 1, 3), kwargs = {})
# CHECK: call_function[target=aten::copy_](args = (%
# CHECK: %kept = call_function[target=aten::select_scatter](args = (%x, %y, 0, 1), kwargs = {})
# CHECK: return (%zeros, %kept)
fx 1
%x = placeholder[target=x]
%y = placeholder[target=y]
%zeros = call_function[target=aten::zeros_like](args = (%x,))
%rows = call_function[target=aten::slice.Tensor](args = (%x, 0, 0, 2))
%scattered = call_function[target=aten::slice_scatter](args = (%zeros, %rows, 0, 1, 3))
%kept = call_function[target=aten::select_scatter](args = (%x, %y, 0, 1))
return (%scattered, %kept)
