#!/usr/bin/env python3
"""Makes the files of this folder with the reference library (safetensors 0.8.0, torch 2.15)."""
import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent
DTYPES = [
    "bool", "uint8", "int8", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "int16", "uint16",
    "float16", "bfloat16", "int32", "uint32", "float32", "complex64", "float64", "int64", "uint64",
]  # fmt: skip


def tensor(name: str) -> torch.Tensor:
    dtype = getattr(torch, name)
    if dtype == torch.bool:
        return torch.tensor([True, False, True])
    values = torch.tensor([1.0, 2.0, 0.5, 4.0, 8.0, 1.0]).reshape(2, 3)
    if not dtype.is_floating_point and not dtype.is_complex:
        values = torch.arange(6).reshape(2, 3)
    return values.to(dtype)


save_file({f"t.{name}": tensor(name) for name in DTYPES}, FOLDER / "dtypes.safetensors")
save_file(
    {"b": torch.zeros(0, 3), "a": torch.tensor(2.5), "c.\u00e9 \"q\"": torch.ones(2, 2)},
    FOLDER / "odd.safetensors",
    metadata={"format": "pt", "note": "line\nbreak"},
)
