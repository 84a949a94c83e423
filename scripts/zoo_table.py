#!/usr/bin/env python3
"""Runs in Python what zoo_report wrote again, and writes the table docs/zoo.md: zoo_table.py FOLDER [--check]

With --check it writes no page. FOLDER holds manifest.json of export_zoo.py, report.json of zoo_report, and again/NAME.pt2. Status 1 if a program that has
to run does not, if its round trip gives something else, or if a program could not be exported.
"""

import json
import pathlib
import sys
from collections import namedtuple

import torch
import torch.ao.quantization.fx._decomposed  # registers operators, for torch.export.load
from torch.utils import _pytree as pytree

from export_zoo import read_tensor

ROOT = pathlib.Path(__file__).resolve().parent.parent
Point = namedtuple("Point", ["x", "y"])
pytree._register_namedtuple(Point, serialized_type_name="zoo.Point")

HEAD = """# The model zoo

{count} programs that `scripts/export_zoo.py` exports with torch {torch}, random weights (but minilm) and small configurations. Each is
loaded, linted, printed and parsed again, run by the Interpreter and by its plan, written as `.pt2` and as `.fxa`, loaded and
run from both, and run by Python's `torch.export.load` from the `.pt2` that was written. *Max error* is the largest
difference from Python's outputs in all runs; the tolerance is 1e-4 for models (1.6e-2 for bfloat16), 1.3e-6 for the small
programs and 0 for quantised ones. Times are of one load with warm files. `make test-zoo` makes this page.

| model | covers | nodes | loads | runs | max error | round trip | load ms |
| --- | --- | ---: | --- | --- | ---: | --- | ---: |
"""


def read(folder: pathlib.Path, item):
    return read_tensor(folder / item["file"]) if "file" in item else item["value"]


def round_trip(folder: pathlib.Path, entry) -> None:
    program = torch.export.load(folder / "again" / f"{entry['name']}.pt2")
    module = program.module()
    for number, call in enumerate(entry["calls"]):
        flat = [read(folder, item) for item in call["inputs"]]
        args, kwargs = pytree.tree_unflatten(flat, program.call_spec.in_spec)
        leaves = pytree.tree_leaves(module(*args, **kwargs), is_leaf=lambda x: x is None)
        wanted = [read(folder, item) for item in call["outputs"]]
        assert len(leaves) == len(wanted), f"call {number}: {len(leaves)} outputs"
        for leaf, value in zip(leaves, wanted):
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(
                    leaf, value, rtol=entry["rtol"], atol=entry["atol"], equal_nan=True
                )
            else:
                assert leaf == value, f"call {number}: {leaf}, wanted {value}"


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    manifest = json.loads((folder / "manifest.json").read_text())
    report = json.loads((folder / "report.json").read_text())
    rows = {row["name"]: row for row in report["rows"]}
    lines, notes, bad = [], [], 0
    torch.set_num_threads(1)
    for entry in manifest["models"]:
        row = rows[entry["name"]]
        trip = "no"
        if row["state"] == "ok":
            try:
                with torch.no_grad():
                    round_trip(folder, entry)
                trip = "equal"
            except Exception as error:  # one program must not hide the others
                bad += 1
                notes.append(f"{entry['name']}: Python: {type(error).__name__}: {str(error)[:300]}")
        elif entry["expect"] == "run":
            bad += 1
        if row["state"] != "ok":
            notes.append(f"{entry['name']}: {row['state']}: {row.get('why', '')}")
        loads = "no" if row["state"] == "load" else "yes"
        runs = "yes" if row["state"] == "ok" else "no"
        error = f"{row['max_error']:.1e}" if "max_error" in row else ""
        load_ms = f"{row['load_ms']:.1f}" if "load_ms" in row else ""
        lines.append(
            f"| {entry['name']} | {entry['covers']} | {row.get('nodes', '')} | {loads} | {runs} "
            f"| {error} | {trip} | {load_ms} |"
        )
        print(f"{entry['name']:32} {row['state']:10} round trip {trip}", flush=True)
    for row in manifest.get("left_out", []):
        bad += 1
        notes.append(f"{row['name']}: not exported: {row['why']}")
        lines.append(f"| {row['name']} | | | not exported | no | | no | |")
    text = HEAD.format(count=len(lines), torch=manifest["torch"]) + "\n".join(lines) + "\n"
    if notes:
        text += "\n## What does not run, and why\n\n" + "\n".join(f"- {n}" for n in notes) + "\n"
    if "--check" not in sys.argv:
        (ROOT / "docs" / "zoo.md").write_text(text)
    elif notes:
        print("\n".join(notes))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
