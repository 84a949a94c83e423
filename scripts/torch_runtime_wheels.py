#!/usr/bin/env python3
"""Prints, one a line, what pip must install beside a torch wheel so that libtorch_cpu.so can be loaded.

Run by the Python of the environment that has the wheel. libtorch_cpu.so of a CUDA wheel is linked to the CUDA
runtime and to CUPTI. The wheel's metadata pins them, either by name or as extras of cuda-toolkit. Prints nothing
for a CPU-only wheel.
"""

import importlib.metadata
import re


def main():
    for requirement in importlib.metadata.requires("torch") or []:
        text = requirement.split(";")[0].strip()
        if re.match(r"cuda-toolkit\[", text):
            version = text.split("]", 1)[1].strip()
            print(f"cuda-toolkit[cudart,cupti]{version}")
        elif re.match(r"nvidia-cuda-(runtime|cupti)(-cu\d+)?\b", text):
            print(text.replace(" ", ""))


if __name__ == "__main__":
    main()
