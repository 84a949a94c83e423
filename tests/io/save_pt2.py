#!/usr/bin/env python3
"""What torch.export.load makes of the archives that test_io wrote: save_pt2.py FOLDER

FOLDER/jobs.json: [{"path": archive, "calls": [{"inputs": [...], "outputs": [...]}], "rtol", "atol",
"expect": {...}}], tensors as .npy files. Each archive is loaded and called on the flat inputs, and
its outputs are compared. Prints a line for each job that fails; status 1 if there is one.
"""

import json
import pathlib
import sys
import traceback
from collections import namedtuple

import numpy as np
import torch
from torch.utils import _pytree as pytree


Point = namedtuple("Point", ["x", "y"])  # of the zoo
pytree._register_namedtuple(Point, serialized_type_name="zoo.Point")


def read(item):
    if "file" not in item:
        return item["value"]
    array = np.load(item["file"])
    if array.dtype == np.dtype("V2"):  # bfloat16 of the zoo
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if item.get("bfloat16") else tensor


def check(job) -> None:
    program = torch.export.load(job["path"])
    for key, value in job.get("expect", {}).items():
        found = {
            "parameters": lambda: sorted(program.graph_signature.parameters),
            "buffers": lambda: sorted(program.graph_signature.buffers),
            "non_persistent": lambda: sorted(program.graph_signature.non_persistent_buffers),
            "constants": lambda: sorted(program.graph_signature.lifted_tensor_constants),
            "buffers_to_mutate": lambda: sorted(program.graph_signature.buffers_to_mutate.values()),
            "state_dict": lambda: list(program.state_dict),
            "ranges": lambda: sorted(
                [str(k), str(v.lower), str(v.upper)] for k, v in program.range_constraints.items()
            ),
            "guards": lambda: list(program._guards_code),
            "dialect": lambda: program.dialect,
            "shared": lambda: [
                program.state_dict[a].untyped_storage().data_ptr()
                == program.state_dict[b].untyped_storage().data_ptr()
                for a, b in [("tied.weight", "embed.weight")]
            ],
        }[key]()
        assert found == value, f"{key}: {found}, wanted {value}"
    module = program.module()
    for number, call in enumerate(job["calls"]):
        flat = [read(item) for item in call["inputs"]]
        args, kwargs = pytree.tree_unflatten(flat, program.call_spec.in_spec)
        leaves = pytree.tree_leaves(module(*args, **kwargs), is_leaf=lambda x: x is None)
        outputs = call["outputs"]
        assert len(leaves) == len(outputs), f"call {number}: {len(leaves)} outputs"
        for i, (leaf, item) in enumerate(zip(leaves, outputs)):
            wanted = read(item)
            what = f"call {number}, output {i}"
            if not isinstance(wanted, torch.Tensor):
                assert leaf == wanted, f"{what}: {leaf}, wanted {wanted}"
                continue
            assert leaf.dtype == wanted.dtype, f"{what}: {leaf.dtype}, wanted {wanted.dtype}"
            assert leaf.shape == wanted.shape, f"{what}: {leaf.shape}, wanted {wanted.shape}"
            assert torch.allclose(
                leaf, wanted, rtol=job["rtol"], atol=job["atol"], equal_nan=True
            ), f"{what}: largest difference {(leaf.double() - wanted.double()).abs().max()}"
    if job.get("decompose"):  # what torch.export has to be able to go on with
        program.run_decompositions()


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    failed = 0
    jobs = json.loads((folder / "jobs.json").read_text())
    for job in jobs:
        try:
            check(job)
        except Exception as error:  # noqa: BLE001
            failed += 1
            last = traceback.format_exc().strip().splitlines()
            print(f"{job['path']}: {type(error).__name__}: {error}\n  " + "\n  ".join(last[-40:]))
    print(f"{len(jobs) - failed} of {len(jobs)} archives are what was saved")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
