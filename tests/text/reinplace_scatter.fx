# A view that is written to and scattered back is the same as writing to the memory itself.
# RUN: reinplace
# INPUT: x = f32[4, 4]
# CHECK: %copy = call_function[target=aten::clone](args = (%x,), kwargs = {})
# CHECK: %row = call_function[target=aten::select.int](args = (%copy, 0, 1), kwargs = {})
# CHECK: %cell = call_function[target=aten::select.int](args = (%row, 0, 2), kwargs = {})
# CHECK: call_function[target=aten::add_.Tensor](args = (%cell, 1), kwargs = {})
# CHECK-NOT: scatter
# CHECK: return %copy
fx 1
%x = placeholder[target=x]
%copy = call_function[target=aten::clone](args = (%x,))
%row = call_function[target=aten::select.int](args = (%copy, 0, 1))
%cell = call_function[target=aten::select.int](args = (%row, 0, 2))
%changed = call_function[target=aten::add.Tensor](args = (%cell, 1))
%row_back = call_function[target=aten::select_scatter](args = (%row, %changed, 0, 2))
%back = call_function[target=aten::select_scatter](args = (%copy, %row_back, 0, 1))
return %back
