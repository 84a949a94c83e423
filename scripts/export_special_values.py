#!/usr/bin/env python3
"""Writes tests/compile/special_values.jsonl: what eager answers for special values.

    scripts/export_special_values.py EXPRESSIONS > tests/compile/special_values.jsonl

EXPRESSIONS is a file with a Python expression a line ("#" begins a comment) over torch, F, T = torch.tensor and dtypes
by short names; what follows " -> " is ignored. Each expression is evaluated once; every ATen operator that it calls
becomes a line: the call with its tensors' bytes, and the results' bytes or "error".
"""
import json
import sys

import torch
import torch.nn.functional as F  # noqa: F401  (in expressions)
from torch.utils._python_dispatch import TorchDispatchMode

NAMES = {"torch": torch, "F": F, "T": torch.tensor, "inf": float("inf"), "nan": float("nan"), "f16": torch.float16,
         "bf": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8,
         "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
# Nothing is computed.
SKIPPED = {"aten::lift_fresh", "aten::detach", "aten::_local_scalar_dense", "aten::empty_like"}
LARGEST = 200  # elements of a tensor


class TooLarge(Exception):
    pass


def encoded(value):
    if isinstance(value, torch.Tensor):
        if value.numel() > LARGEST or value.dtype.is_complex:
            raise TooLarge
        data = value.detach().contiguous().reshape(-1)
        data = data.view(torch.uint8) if data.numel() else data
        return {"t": str(value.dtype).removeprefix("torch."), "sizes": list(value.shape), "hex": bytes(data.tolist()).hex()}
    if isinstance(value, (list, tuple)):
        return {"l": [encoded(item) for item in value]}
    if isinstance(value, float):
        return {"f": value.hex()}
    if isinstance(value, (bool, int, str, type(None))):
        return {"v": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    if isinstance(value, torch.layout):
        return {"layout": str(value).removeprefix("torch.")}
    raise TooLarge


def has_tensor(value):
    if isinstance(value, (list, tuple)):
        return any(has_tensor(item) for item in value)
    return isinstance(value, torch.Tensor)


class Recorder(TorchDispatchMode):
    def __init__(self, text, out):
        super().__init__()
        self.text, self.out = text, out

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.name()
        if name in SKIPPED or func._schema.is_mutable or not any(has_tensor(a) for a in args):
            return func(*args, **kwargs)
        line = None
        try:
            line = {"expression": self.text, "op": name,
                    "args": [encoded(a) for a in args], "kwargs": {k: encoded(v) for k, v in kwargs.items()}}
        except TooLarge:
            pass
        try:
            result = func(*args, **kwargs)
        except Exception:
            if line:
                self.out.append({**line, "error": True})
            raise
        if line and func._schema.returns:
            results = result if isinstance(result, (list, tuple)) else [result]
            try:
                self.out.append({**line, "results": [encoded(r) for r in results]})
            except TooLarge:
                pass
        return result


def main():
    torch.set_num_threads(1)
    seen = set()
    for text in open(sys.argv[1]):
        text = text.split(" -> ")[0].strip()
        if not text or text.startswith("#"):
            continue
        calls = []
        try:
            with Recorder(text, calls):
                eval(text, dict(NAMES))
        except Exception:
            pass  # the answer
        for call in calls:
            key = json.dumps({k: v for k, v in call.items() if k != "expression"})
            if key not in seen:
                seen.add(key)
                print(json.dumps(call, separators=(",", ":")))


main()
