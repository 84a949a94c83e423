# Several passes in a row, with options.
# RUN: remove_noops, cse , dce, constant_fold(max_bytes=4096, fold_outputs=false)
# INPUT: x = f32[3]
# BUFFER: w = f32[3]
# CHECK: get_attr[target=_folded0]
# CHECK-COUNT-EXACTLY-1: aten::mul
# CHECK-NOT: aten::neg
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%e = call_function[target=aten::exp](args = (%w,))
%w_1 = get_attr[target=w]
%e_1 = call_function[target=aten::exp](args = (%w_1,))
%a = call_function[target=aten::mul.Tensor](args = (%x, %e))
%b = call_function[target=aten::mul.Tensor](args = (%x, %e_1))
%n = call_function[target=aten::neg](args = (%a,))
%s = call_function[target=aten::add.Tensor](args = (%a, %b))
return %s
