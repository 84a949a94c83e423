# Types from schemas, attributes and classes of modules; those that are there stay.
# RUN: annotate_types
# INPUT: x = f32[2, 6]
# PARAM: w = f32[6]
# MODULE: lin = Linear(6, 6)
# CHECK: %w : torch.Tensor
# CHECK: %lin : torch.Tensor
# CHECK: %max_1 : Tuple[torch.Tensor, torch.Tensor]
# CHECK: %chunk : List[torch.Tensor]
# CHECK: %size : int
# CHECK: %mine : Mine
fx 1
%x = placeholder[target=x]
%w = get_attr[target=w]
%lin = call_module[target=lin](args = (%x,))
%max_1 = call_function[target=aten::max.dim](args = (%lin, 1))
%chunk = call_function[target=aten::chunk](args = (%lin, 2))
%size = call_function[target=aten::size.int](args = (%lin, 0))
%mine : Mine = call_function[target=aten::add.Tensor](args = (%lin, %w))
return (%max_1, %chunk, %size, %mine)
