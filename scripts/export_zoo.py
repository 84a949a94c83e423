#!/usr/bin/env python3
"""Export a zoo of PyTorch programs with inputs and expected outputs, for tests of the .pt2 import.

    python3 scripts/export_zoo.py FOLDER            everything
    python3 scripts/export_zoo.py FOLDER --small    only the small programs (about 15 kB each)
    python3 scripts/export_zoo.py FOLDER --only resnet18 cond
    python3 scripts/export_zoo.py FOLDER --part     some models of torchvision and of this script, half a minute
    python3 scripts/export_zoo.py --list

For each program NAME it writes NAME.pt2 (torch.export.save), the tensors that go in and come out as
.npy files, and an entry in FOLDER/manifest.json:

    {"name": "...", "file": "NAME.pt2", "covers": "what the program is there for",
     "expect": "run" | "unsupported", "rtol": ..., "atol": ...,
     "input_names": [...],           placeholders of the user inputs, in flattened order
     "output_names": [...],          values of the user outputs, in flattened order; null for a constant
     "calls": [{"inputs": [...], "outputs": [...]}],
     "state_dict": [...],            qualified names, in Python's order
     "state_after": {"name": "file.npy"}}   state that calls change, after all calls

What could not be exported is listed in the manifest: "left_out": [{"name": "...", "why": "..."}].

An input or output is {"file": "x.npy"} for a tensor and {"value": ...} for anything else; an input
that the call changes in place has also {"after": "x.npy"}. Calls run in order on one instance. Weights are random but seeded; models are in eval mode unless said.
Needs torch >= 2.9 and NumPy; torchvision, transformers and timm for the models of zoo_models.py, which are skipped with a
note where the library is absent.
"""

import argparse
import json
import pathlib
import re
import sys
import typing
from collections import OrderedDict, namedtuple

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers the operators of quantised programs
from torch import nn
from torch.utils import _pytree as pytree

Dim = torch.export.Dim
ENTRIES: dict[str, typing.Callable[[], "Entry"]] = {}


class Entry(typing.NamedTuple):
    """One program: how to export it and what to call it with (each call: args, kwargs)."""

    module: nn.Module
    calls: list[tuple[tuple, dict]]
    covers: str
    dynamic_shapes: typing.Any = None
    rtol: float = 1.3e-6
    atol: float = 1e-5
    expect: str = "run"
    functional: bool = False  # decompose to the functional form before saving


def entry(function):
    ENTRIES[function.__name__] = function
    return function


def randn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def settle_batch_norms(module: nn.Module, example: torch.Tensor) -> None:
    """Gives batch norms affine terms that a trained network could have, and the running statistics
    that `example` causes, so that values keep their size through the layers."""
    generator = torch.Generator().manual_seed(7)
    norms = [m for m in module.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    for norm in norms:
        norm.weight.data.copy_(torch.rand(norm.num_features, generator=generator) * 0.4 + 0.8)
        norm.bias.data.copy_(torch.randn(norm.num_features, generator=generator) * 0.1)
        norm.momentum = 1.0
    module.train()
    with torch.no_grad():
        module(example)
    for norm in norms:
        norm.momentum = 0.1
    module.eval()


# ---- large models -------------------------------------------------------------------------------


def vision(name: str, covers: str) -> Entry:
    import torchvision

    net = getattr(torchvision.models, name)(weights=None).eval()
    settle_batch_norms(net, randn(8, 3, 224, 224, seed=9))
    calls = [((randn(n, 3, 224, 224, seed=n),), {}) for n in (2, 1)]
    shapes = ({0: Dim("batch", min=1, max=256)},)
    return Entry(net, calls, covers, shapes, rtol=1e-4, atol=1e-4)


@entry
def resnet18() -> Entry:
    return vision("resnet18", "residual convolution network, dynamic batch")


@entry
def resnet50() -> Entry:
    return vision("resnet50", "the usual benchmark network, 98 MB of weights, dynamic batch")


@entry
def mobilenet_v3_large() -> Entry:
    return vision("mobilenet_v3_large", "depthwise convolution, hardswish, squeeze and excite")


@entry
def transformer_encoder() -> Entry:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    calls = [((randn(2, 10, 64),), {}), ((randn(3, 7, 64, seed=2),), {})]
    shapes = ({0: Dim("batch", min=1, max=64), 1: Dim("tokens", min=2, max=512)},)
    return Entry(net, calls, "attention, layer norm, two dynamic dims", shapes, rtol=1e-4)


# ---- small programs, one subject each -----------------------------------------------------------


def simple(covers: str, calls, dynamic_shapes=None, state=(), expect="run", **options):
    """Turns a forward function with `self` into an entry; `state(self)` sets up the module."""

    def wrap(forward):
        def make() -> Entry:
            class Program(nn.Module):
                def __init__(self):
                    super().__init__()
                    if state:
                        state(self)

            Program.__name__ = Program.__qualname__ = forward.__name__.title().replace("_", "")
            Program.forward = forward
            return Entry(
                Program().eval(), calls(), covers, dynamic_shapes, expect=expect, **options
            )

        make.__name__ = forward.__name__
        return entry(make)

    return wrap


@simple("one operator, static shape", lambda: [((randn(3, 4),), {})])
def relu(self, x):
    return torch.relu(x)


@simple("tuple in, tuple out", lambda: [(((randn(2, 3), randn(2, 3, seed=2)), randn(3)), {})])
def tuple_io(self, pair, z):
    return pair[0] + z, (pair[1] * z, pair[0] - pair[1])


@simple(
    "dict in, dict out; keys are not in alphabetical order",
    lambda: [(({"b": randn(2, 3), "a": randn(2, 3, seed=2)},), {})],
)
def dict_io(self, batch):
    return {"sum": batch["a"] + batch["b"], "diff": [batch["b"] - batch["a"]]}


Point = namedtuple("Point", ["x", "y"])
pytree._register_namedtuple(Point, serialized_type_name="zoo.Point")


@simple("namedtuple in and out", lambda: [((Point(randn(3), randn(3, seed=2)),), {})])
def namedtuple_io(self, p):
    return Point(y=p.x * 2, x=p.y + 1)


@simple(
    "OrderedDict out, None in the output, an input passed through",
    lambda: [((randn(3), randn(3, seed=2)), {})],
)
def odd_outputs(self, x, y):
    return OrderedDict(z=x + y, a=None, same=x, number=3)


@simple(
    "keyword inputs, given in another order than forward has them",
    lambda: [((randn(2, 3),), {"scale": randn(3), "bias": randn(3, seed=5)})],
)
def keyword_inputs(self, x, *, bias, scale):
    return x * scale + bias


@simple(
    "int, float, bool, str and None as inputs: constants of the program",
    lambda: [((randn(2, 3), 2, 0.5, True, "linear", None), {})],
)
def constant_inputs(self, x, n, alpha, flag, mode, nothing):
    y = torch.add(x, x, alpha=n) * alpha
    return y.abs() if flag and mode == "linear" and nothing is None else y


def buffers_state(self):
    self.register_buffer("mean", randn(4))
    self.register_buffer("scale", randn(4, seed=2), persistent=False)
    self.register_buffer("steps", torch.tensor(3, dtype=torch.int64))
    self.inner = nn.Module()
    self.inner.register_buffer("offset", randn(4, seed=3))


@simple(
    "persistent, non-persistent, nested and 0-d buffers",
    lambda: [((randn(2, 4),), {})],
    state=buffers_state,
)
def buffers(self, x):
    return (x - self.mean) * self.scale + self.inner.offset * self.steps


@simple(
    "three dynamic dims, one derived from another by an equation",
    lambda: [((randn(n, 6), randn(n, m, seed=2)), {}) for n, m in ((4, 5), (2, 9), (7, 3))],
    ({0: Dim("batch", min=1, max=128)}, {0: Dim("batch", min=1, max=128), 1: Dim("width", min=2)}),
)
def dynamic_batch(self, x, y):
    return torch.cat([x, y], 1), x.sum() / x.shape[0], y.reshape(-1)


@simple(
    "symbolic size arithmetic: +, *, //, %, max and sizes as arguments",
    lambda: [((randn(n, 12),), {}) for n in (6, 8, 10)],
    ({0: Dim("rows", min=4, max=100)},),
)
def symbolic_sizes(self, x):
    n = x.shape[0]
    a = torch.zeros(n * 2 + 1, n // 2)
    b = x.new_full((n % 4 * 2 + 2,), 1.5) if n > 3 else x
    c = torch.arange(n, dtype=torch.int64) * (n - 1)
    return a, b, c, x.reshape(n * 3, 4), x.expand(2, n, 12).contiguous().view(2 * n, -1)


def counter_state(self):
    self.register_buffer("count", torch.zeros((), dtype=torch.int64))
    self.register_buffer("total", torch.zeros(3))


@simple(
    "buffers changed by each call",
    lambda: [((randn(3),), {}), ((randn(3, seed=2),), {}), ((randn(3, seed=3),), {})],
    state=counter_state,
)
def buffer_mutation(self, x):
    self.count.add_(1)
    self.total.mul_(0.5).add_(x)
    return self.total / self.count


@simple("an input changed in place", lambda: [((randn(3), randn(3, seed=2)), {})])
def input_mutation(self, x, y):
    x.add_(y)
    return x * 2


@entry
def batch_norm_training() -> Entry:
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    calls = [((randn(4, 2, 6, 6),), {}), ((randn(4, 2, 6, 6, seed=2),), {})]
    return Entry(net, calls, "training mode: running statistics change", atol=1e-5)


@simple(
    "constants made in forward: lifted tensors, also 0-d and integer ones",
    lambda: [((randn(2, 3),), {})],
)
def lifted_constants(self, x):
    w = torch.tensor([[1.0, 2.0, 3.0]])
    index = torch.tensor([2, 0])
    return (x * w + torch.tensor(0.5))[:, index]


def attribute_constant_state(self):
    self.table = randn(4, 2)  # a plain attribute: neither parameter nor buffer


@simple(
    "a tensor attribute that is no buffer",
    lambda: [((torch.tensor([3, 0, 1]),), {})],
    state=attribute_constant_state,
)
def attribute_constant(self, i):
    return self.table[i]


def tied_state(self):
    self.embed = nn.Embedding(10, 6)
    self.head = nn.Linear(6, 10, bias=False)
    self.head.weight = self.embed.weight
    base = randn(5, 12, seed=9)
    self.register_buffer("left", base[:, :6])
    self.register_buffer("right_t", base[:, 6:].t())


@simple(
    "two names for one parameter; buffers that are views of one storage, one transposed",
    lambda: [((torch.tensor([[1, 2, 3], [4, 5, 0]]),), {})],
    state=tied_state,
)
def tied_weights(self, tokens):
    h = self.embed(tokens)
    return self.head(h), h @ self.left.t(), h.sum((0, 1)) @ self.right_t


@simple(
    "operators with several outputs, lists of tensors, unused outputs",
    lambda: [((randn(4, 6),), {})],
)
def multiple_outputs(self, x):
    values, indices = x.topk(2, dim=1)
    first, _, third = x.split([1, 2, 3], dim=1)
    top, _ = x.max(dim=0)
    a, b = torch.unbind(x[:2])
    return values, indices, first, third, top, torch.stack([a, b]), torch.var_mean(x, dim=1)


@simple(
    "lists with None, index with several tensors, index_put",
    lambda: [((randn(4, 5, 6), torch.tensor([0, 2]), torch.tensor([1, 3])), {})],
)
def advanced_indexing(self, x, i, j):
    y = x.clone()
    y[i, :, j] = 0.0
    return x[:, i, :], x[i, :, j], y


@simple("casts, dtype, device and memory format as arguments", lambda: [((randn(2, 3, 4, 4),), {})])
def dtypes(self, x):
    return (
        x.to(torch.float64),
        (x * 10).to(torch.int32),
        x.to(torch.bfloat16).float(),
        x > 0,
        (x * 3).to(torch.int8),
        x.contiguous(memory_format=torch.channels_last) + 1,
        torch.complex(x, x),
        torch.ones(2, dtype=torch.float16, device="cpu"),
    )


@simple("infinities and not-a-number as arguments", lambda: [((randn(2, 3),), {})])
def special_floats(self, x):
    return x.masked_fill(x > 0, float("-inf")), torch.nan_to_num(x.log(), nan=-1.0), x.clamp(
        min=-0.5, max=float("inf")
    )


@simple(
    "dropout and rrelu in eval mode, a string argument, einsum",
    lambda: [((randn(2, 3, 4), randn(4, 5, seed=2)), {})],
)
def arguments(self, x, w):
    y = nn.functional.gelu(torch.einsum("bij,jk->bik", x, w), approximate="tanh")
    z = torch.div(x, 0.3, rounding_mode="floor")
    return nn.functional.dropout(y, 0.5, False), z, nn.functional.interpolate(x, scale_factor=2.0)


@entry
def lstm() -> Entry:
    net = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True).eval()
    return Entry(net, [((randn(2, 4, 6),), {})], "recurrent network, nested outputs", atol=1e-5)


@simple(
    "views written through: recorded in functional form by export",
    lambda: [((randn(4, 4),), {})],
)
def views(self, x):
    y = x.clone()
    y[1:3].mul_(2)
    y.t()[0].fill_(1)
    return y, x.as_strided((2, 2), (4, 1), 1)


@simple("an empty tensor and sizes of zero and one", lambda: [((randn(0, 3), randn(1, 1)), {})])
def empty(self, x, y):
    return torch.cat([x, x]), y.expand(4, 3).sum(), x.sum(0)


def data_dependent_forward_calls():
    return [((torch.tensor([3]), randn(5)), {}), ((torch.tensor([2]), randn(5)), {})]


@simple(
    "item() and a size that depends on data: unbacked symbols, range checks",
    data_dependent_forward_calls,
)
def data_dependent(self, n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= 5)
    return x.narrow(0, 0, k) * k, torch.zeros(k)


@simple("nonzero: output size depends on data", lambda: [((randn(3, 4),), {})])
def nonzero(self, x):
    return torch.nonzero(x > 0), x[x > 0]


# Higher-order operators: their graphs are programs of their own.


@simple(
    "a branch on data: a higher-order operator with two graphs",
    lambda: [((randn(3).abs(),), {}), ((-randn(3).abs(),), {})],
)
def cond(self, x):
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() - 1, (x,))


@simple(
    "a branch on a symbolic size",
    lambda: [((randn(n, 4),), {}) for n in (5, 2)],
    dynamic_shapes=({0: Dim("rows", min=1, max=64)},),
)
def cond_on_size(self, x):
    return torch.cond(x.shape[0] > 3, lambda x: x.sin(), lambda x: (x * 2).cos(), (x,))


def while_state(self):
    self.linear = nn.Linear(4, 4)
    self.register_buffer("limit", torch.tensor(3))


@simple(
    "a loop on data with a branch inside, reading parameters and a buffer",
    lambda: [((randn(3, 4, seed=n),), {}) for n in (1, 2)],
    state=while_state,
)
def while_loop(self, x):
    def condition(i, y):
        return (i < self.limit) & (y.abs().amax() < 10)

    def body(i, y):
        grown = torch.cond(y.sum() > 0, lambda y: self.linear(y).sin(), lambda y: 3 - y, (y,))
        return i + 1, grown * 1.5

    return torch._higher_order_ops.while_loop(condition, body, (torch.tensor(0), x))


@simple(
    "a scan: a recurrent cell, with a parameter, over a dynamic number of steps",
    lambda: [((randn(n, 2, 4), randn(2, 4, seed=3)), {}) for n in (5, 3)],
    state=while_state,
    dynamic_shapes=({0: Dim("steps", min=2, max=64)}, None),
)
def scan(self, x, h):
    def step(carry, row):
        new = torch.tanh(self.linear(carry) + row)
        return new, new * 2

    return torch._higher_order_ops.scan(step, h, x, dim=0)


@simple(
    "an associative scan: a linear recurrence over a dynamic number of steps, and a sum along another dimension",
    lambda: [((randn(n, 3), randn(n, 3, seed=2)), {}) for n in (7, 4, 2)],
    dynamic_shapes=({0: Dim("steps", min=2, max=64)}, {0: Dim("steps", min=2, max=64)}),
)
def associative_scan(self, x, y):
    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    scan = torch._higher_order_ops.associative_scan
    sums = scan(lambda a, b: a + b, x * y, dim=1, reverse=True, combine_mode="pointwise")
    return scan(combine, (x, y), dim=0, combine_mode="pointwise"), sums


@simple("a map over rows, two results a row", lambda: [((randn(3, 4), randn(4, seed=2)), {})])
def map_rows(self, x, y):
    return torch._higher_order_ops.map(lambda row, y: (row.sin() + y, row.sum()), x, y)


@simple(
    "a part under autocast, with a part without, and a part without gradients",
    lambda: [((randn(3, 4),), {})],
    state=while_state,
    rtol=1.6e-2,
)
def autocast(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = self.linear(x)
        with torch.autocast("cpu", enabled=False):
            z = self.linear(x * 2)
    with torch.no_grad():
        w = y.sin()
    return y, z, w


@entry
def sixteen_bit() -> Entry:
    class SixteenBit(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc16 = nn.Linear(4, 4).half()
            self.fcbf = nn.Linear(4, 4).bfloat16()
            self.register_buffer("mask", torch.tensor([True, False, True, True]))
            self.register_buffer("byte", torch.arange(4, dtype=torch.uint8))

        def forward(self, x):
            y = self.fc16(x.half()).float() + self.fcbf(x.bfloat16()).float()
            return y * self.mask + self.byte

    calls = [((randn(2, 4),), {})]
    covers = "weights in float16, bfloat16, bool and uint8"
    return Entry(SixteenBit().eval(), calls, covers, rtol=1.6e-2, atol=1e-2)


def functional_twin(name: str) -> None:
    """The same program in functional form: mutation is in the signature, not in the graph."""

    def make() -> Entry:
        item = ENTRIES[name]()
        return item._replace(covers=item.covers + "; functional form", functional=True)

    ENTRIES[name + "_functional"] = make


for _name in ("buffer_mutation", "input_mutation", "batch_norm_training", "views", "symbolic_sizes"):
    functional_twin(_name)


@simple(
    "a part without gradients: a higher-order operator around a graph",
    lambda: [((randn(3, 4),), {})],
)
def no_grad_part(self, x):
    with torch.no_grad():
        y = x * 2
        z = y.sum()
    with torch.autocast("cpu", enabled=False):
        w = y.sin()
    return y + x, z * y, w


def quantized_calls():
    x = randn(3, 4, 6) * 20
    return [((x, randn(4, 8, seed=2)), {}), ((x * 0.01 - 3, randn(4, 8, seed=3) * 50), {})]


# What PT2E's convert inserts, operator by operator: rounding decides, so results have to be equal. Their
# bytes one after the other are the output, so that types have to be equal too.
@simple("every operator of quantized_decomposed", quantized_calls, rtol=0.0, atol=0.0)
def quantized_operators(self, x, w):
    q = torch.ops.quantized_decomposed
    results = []

    def both(quantized, back):
        results.extend((quantized, back))

    for dtype, low, high in (
        (torch.uint8, 0, 255), (torch.int8, -127, 127), (torch.int16, -5000, 5000),
        (torch.uint16, 0, 60000), (torch.int32, -(2**31), 2**31 - 1),
    ):  # fmt: skip
        args = (0.0371, 3, low, high, dtype)
        y = q.quantize_per_tensor.default(x, *args)
        both(y, q.dequantize_per_tensor.default(y, *args))
    for source in (x.half(), x.bfloat16()):
        args = (0.25, 128, 0, 255, torch.uint8)
        y = q.quantize_per_tensor.default(source, *args)
        both(y, q.dequantize_per_tensor.default(y, *args, out_dtype=torch.float16))
        both(*q.choose_qparams.tensor(source, 0, 255, 1e-5, torch.uint8))
    float8 = q.quantize_per_tensor.default(x, 0.5, 0, -448, 448, torch.float8_e4m3fn)
    both(
        float8.view(torch.uint8),
        q.dequantize_per_tensor.default(float8, 0.5, 0, -448, 448, torch.float8_e4m3fn),
    )
    bounds = torch.tensor([-128]), torch.tensor([127])
    for choose in (q.choose_qparams.tensor, q.choose_qparams_symmetric.tensor):
        for dtype, low, high in ((torch.int8, -128, 127), (torch.uint8, 0, 255)):
            scale, zero = choose(x, low, high, 1.1920928955078125e-07, dtype)
            both(scale, zero)
            args = (scale, zero, low, high, dtype)
            y = q.quantize_per_tensor.tensor(x, *args)
            both(y, q.dequantize_per_tensor.tensor(y, *args))
        args = (scale, zero - 128, *bounds, torch.int8)
        y = q.quantize_per_tensor.tensor2(x, *args)
        both(y, q.dequantize_per_tensor.tensor2(y, *args, out_dtype=torch.bfloat16).float())
    for axis in (0, 1, 2):
        n = x.shape[axis]
        scales = torch.arange(1, n + 1) * 0.013
        args = (scales, torch.arange(n) - 2, axis, -128, 127, torch.int8)
        y = q.quantize_per_channel.default(x, *args)
        both(y, q.dequantize_per_channel.default(y, *args))
        results.append(q.dequantize_per_channel.default(y, scales.double(), None, *args[2:]))
    for choose in (
        q.choose_qparams_per_token, q.choose_qparams_per_token_asymmetric,
    ):  # fmt: skip
        scales, zeros = choose(x, torch.int8)
        both(scales, zeros)
        args = (scales, zeros, -128, 127, torch.int8)
        y = q.quantize_per_token(x, *args)
        both(y, q.dequantize_per_token(y, *args, torch.float32))
    scales = torch.arange(1, 9).reshape(4, 2) * 0.07
    args = (scales, torch.arange(8, dtype=torch.int32).reshape(4, 2) - 4, -8, 7, torch.int8, 4)
    y = q.quantize_per_channel_group(w, *args)
    both(y, q.dequantize_per_channel_group(y, *args, torch.float32))
    results.append(
        q.dequantize_per_channel_group(y, scales, None, *args[2:], torch.bfloat16).float()
    )
    args = (torch.arange(1, 5) * 0.1, torch.arange(4), 0, -8, 7)
    results.append(q.fake_quant_per_channel(w, *args))
    results.append(q.convert_element_type.no_fuse(x, torch.int32))
    return torch.cat([y.contiguous().view(-1).view(torch.uint8) for y in results])


@torch.library.custom_op("zoo::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.library.custom_op("zoo::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@triple.register_fake
@halve.register_fake
def _(x):
    return torch.empty_like(x)


@simple(
    "operators that C++ does not have, two different ones",
    lambda: [((randn(3, 4),), {})],
    expect="unsupported",
)
def custom_operator(self, x):
    return triple(triple(x)).sin() + torch.cond(x.sum() > 0, halve, torch.cos, (x,))


# ---- writing ------------------------------------------------------------------------------------


def shorten_stack_traces(program: torch.export.ExportedProgram) -> None:
    """Keeps file names and lines in the recorded stack traces, drops this machine's folders."""

    def shorten(match: re.Match) -> str:
        path = match[1].replace("\\", "/")
        _, inside, rest = path.rpartition("site-packages/")
        return f'File "{rest if inside else path.rpartition("/")[2]}"'

    for submodule in program.graph_module.modules():
        for node in submodule.graph.nodes if isinstance(submodule, torch.fx.GraphModule) else ():
            if trace := node.meta.get("stack_trace"):
                node.meta["stack_trace"] = re.sub(r'File "(.*?)"', shorten, trace)


def describe(value, file: pathlib.Path) -> dict:
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.dtype == torch.bfloat16:  # as ml_dtypes writes it
            array = value.contiguous().view(torch.int16).numpy().view(np.dtype("V2"))
        else:
            array = value.numpy()
        np.save(file, array, allow_pickle=False)
        return {"file": file.name}
    return {"value": value}


def read_tensor(file: pathlib.Path) -> torch.Tensor:
    array = np.load(file)
    if array.dtype == np.dtype("V2"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def copy_tensors(tree):
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, tree)


def export_one(name: str, folder: pathlib.Path) -> dict:
    torch.manual_seed(sum(name.encode()))
    item = ENTRIES[name]()
    args, kwargs = copy_tensors(item.calls[0])
    program = torch.export.export(item.module, args, kwargs, dynamic_shapes=item.dynamic_shapes)
    if item.functional:
        program = program.run_decompositions({})
    shorten_stack_traces(program)
    torch.export.save(program, folder / f"{name}.pt2")
    before = {k: v.clone() for k, v in program.state_dict.items()}

    runnable = program.module()
    calls = []
    for number, (args, kwargs) in enumerate(item.calls):
        args, kwargs = copy_tensors((args, kwargs))
        flat, _ = pytree.tree_flatten((args, reorder(kwargs, program)))
        prefix = f"{name}.{number}"
        inputs = [describe(v, folder / f"{prefix}.in{i}.npy") for i, v in enumerate(flat)]
        with torch.no_grad():
            result = runnable(*args, **kwargs)
        outputs = pytree.tree_leaves(result)
        call = {
            "inputs": inputs,
            "outputs": [
                describe(v, folder / f"{prefix}.out{i}.npy") for i, v in enumerate(outputs)
            ],
        }
        for i, value in enumerate(flat):
            if isinstance(value, torch.Tensor):
                original = read_tensor(folder / inputs[i]["file"])
                if not torch.equal(original, value):
                    inputs[i]["after"] = describe(value, folder / f"{prefix}.after{i}.npy")["file"]
        calls.append(call)

    signature = program.graph_signature
    state_after = {}
    for key, value in runnable.state_dict().items():
        if key in before and not torch.equal(value, before[key]):
            state_after[key] = describe(value, folder / f"{name}.state.{key}.npy")["file"]
    user_inputs = [s.arg.name for s in signature.input_specs if s.kind.name == "USER_INPUT"]
    user_outputs = [
        getattr(s.arg, "name", None) or None
        for s in signature.output_specs
        if s.kind.name == "USER_OUTPUT"
    ]
    return {
        "name": name,
        "file": f"{name}.pt2",
        "covers": item.covers,
        "expect": item.expect,
        "rtol": item.rtol,
        "atol": item.atol,
        "input_names": user_inputs,
        "output_names": user_outputs,
        "calls": calls,
        "state_dict": list(program.state_dict),
        "state_after": state_after,
    }


def reorder(kwargs: dict, program: torch.export.ExportedProgram) -> dict:
    """Keyword arguments in the order in which the program's input tree has them."""
    spec = program.call_spec.in_spec
    # torch 2.15 made the children a method; before it was a list under another name.
    children = spec.children() if hasattr(spec, "children") else spec.children_specs
    return {k: kwargs[k] for k in children[1].context}


def library_models() -> None:
    """Adds the models of zoo_models.py to the entries."""
    import zoo_models

    def wrap(name, make):
        def build() -> Entry:
            torch.manual_seed(0)
            module, calls, covers, shapes, *options = make()
            tolerance = {"rtol": 1e-4, "atol": 1e-4, **(options[0] if options else {})}
            if not isinstance(module, torch.fx.GraphModule):  # those of exported programs have no modes
                module = module.eval()
            return Entry(module, calls, covers, shapes, **tolerance)

        build.__name__ = name
        return build

    for name, make in zoo_models.MODELS.items():
        ENTRIES[name] = wrap(name, make)


# Of each kind one, as far as torchvision and this script have it: what `make test` exports and runs.
PART = [
    "resnet18", "squeezenet1_0", "mobilenet_v3_small", "shufflenet_v2_x0_5", "vgg_features", "vision_transformer",
    "swin_transformer", "convnext", "video_resnet", "transformer_encoder", "lstm", "recommender", "speech_recognizer",
    "running_mean", "bfloat16_mlp", "cond", "while_loop", "dynamic_batch", "quantized_operators",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME",
                        help="these programs alone; others stay in the manifest")
    parser.add_argument("--small", action="store_true", help="leave the large models out")
    parser.add_argument("--part", action="store_true", help="these alone: " + ", ".join(PART))
    parser.add_argument("--list", action="store_true", help="names and subjects, then stop")
    small = set(ENTRIES) - {"resnet18", "resnet50", "mobilenet_v3_large"}
    library_models()
    options = parser.parse_args()
    if options.list or options.folder is None:
        print("\n".join(ENTRIES))
        return 0 if options.list else 2

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options.folder.mkdir(parents=True, exist_ok=True)
    manifest, left_out = [], []
    for name in options.only or (PART if options.part else ENTRIES):
        if options.small and name not in small:
            continue
        try:
            manifest.append(export_one(name, options.folder))
            print(f"{name:24} {(options.folder / f'{name}.pt2').stat().st_size:12,} bytes")
        except ImportError as error:
            left_out.append({"name": name, "why": f"a library is not there: {error}"})
            print(f"{name:24} skipped: {error}", file=sys.stderr)
        except Exception as error:  # one program must not hide the others
            left_out.append({"name": name, "why": f"{type(error).__name__}: {str(error)[:300]}"})
            print(f"{name:24} FAILED: {type(error).__name__}: {error}", file=sys.stderr)
    path = options.folder / "manifest.json"
    if options.only and path.exists():  # the other programs stay
        made = {entry["name"]: entry for entry in manifest}
        old = json.loads(path.read_text())
        manifest = [made.pop(entry["name"], entry) for entry in old["models"]] + list(made.values())
        left_out += [row for row in old.get("left_out", []) if row["name"] not in options.only]
    document = {"torch": torch.__version__.split("+")[0], "models": manifest, "left_out": left_out}
    text = json.dumps(document, indent=1, allow_nan=False)
    path.write_text(text + "\n")
    return 1 if any("library" not in row["why"] for row in left_out) else 0


if __name__ == "__main__":
    sys.exit(main())
