#!/usr/bin/env python3
"""Proves the direction of the includes. Prints each violation as file:line, exits 1 if there is any.

Rules
  stages    a stage includes itself and the stages below it in cmake/layers.txt, nothing else of fx/
  above     tools, tests, benchmarks, examples, fuzz and fx/fx.h may include every stage
  llvm      only fx/compile/llvm includes llvm/* and llvm-c/*
  torch.nn  torch/nn*, torch/torch.h and torch/all.h only in the places named in TORCH_NN_ALLOWED
  form      a header of ours is included as fx/stage/file.h, with quotes or angle brackets, and exists

Usage: check_layers.py [ROOT]        check the tree at ROOT (default: this repository)
       check_layers.py --self-test   check that planted violations of every rule are found
"""

import pathlib
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".def", ".inc"}
# Folders beside fx/ whose code may include everything.
USERS = ("tools", "tests", "benchmarks", "examples", "fuzz", "models")
# Prefixes of paths that may know torch::nn.
TORCH_NN_ALLOWED = (
    "fx/capture/",
    "fx/compile/",
    "fx/interpret/",
    "fx/graph/graph_module",
    "fx/graph/module",
    "fx/io/saved_classes",
    "fx/passes/",
    "fx/run/",
    "fx/fx.h",
)
TORCH_NN = re.compile(r"^torch/(nn(/|\.h)|torch\.h|all\.h|csrc/api/include/torch/)")


def read_layers(path):
    """Returns {stage: set of all stages below it} from layers.txt."""
    below = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        stage, _, rest = line.partition(":")
        below[stage] = set()
        for name in rest.split():
            if name not in below:
                raise SystemExit(f"{path}:{number}: {stage} stands on {name}, which is not above it in the file")
            below[stage] |= below[name] | {name}
    return below


def includes(path):
    """Yields (line number, bracket, included path), comments left out."""
    in_comment = False
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if in_comment:
            if "*/" not in line:
                continue
            line = line.split("*/", 1)[1]
            in_comment = False
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)
            line = line[match.end():]
        if "/*" in line.split("//")[0] and "*/" not in line.split("/*", 1)[1]:
            in_comment = True


def check_include(root, layers, name, bracket, target):
    """Returns what is wrong with `#include target` in the file called name, or None."""
    parts = name.split("/")
    in_fx = parts[0] == "fx" and len(parts) > 2
    stage = parts[1] if in_fx else None
    if target.startswith(("llvm/", "llvm-c/")) and not name.startswith("fx/compile/llvm/"):
        return "only fx/compile/llvm may include LLVM"
    if in_fx and TORCH_NN.match(target) and not name.startswith(TORCH_NN_ALLOWED):
        return "this place must not know torch::nn: allowed are " + ", ".join(TORCH_NN_ALLOWED)
    if target.startswith("fx/"):
        if not (root / target).is_file():
            return "there is no such file"
        target_parts = target.split("/")
        if not in_fx:
            return None
        if len(target_parts) < 3:
            return "the umbrella header is for users of the library"
        other = target_parts[1]
        if other not in layers:
            return f"{other} is not a stage of cmake/layers.txt"
        if other != stage and other not in layers[stage]:
            allowed = ", ".join(s for s in layers if s in layers[stage]) or "nothing"
            return f"{stage} must not include {other}: below it are {allowed}"
        return None
    if parts[0] == "fx" and bracket == '"':
        if target.startswith(".") or (root / name).parent.joinpath(target).is_file():
            return "headers of the project are included as fx/stage/file.h"
    elif parts[0] == "fx" and target.split("/")[0] in layers and (root / "fx" / target).is_file():
        return "headers of the project are included as fx/stage/file.h"
    return None


def check(root):
    """Returns ([violation text], number of files checked)."""
    layers = read_layers(root / "cmake" / "layers.txt")
    problems, count = [], 0
    for top in ("fx",) + USERS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            count += 1
            name = path.relative_to(root).as_posix()
            parts = name.split("/")
            if top == "fx" and len(parts) > 2 and parts[1] not in layers:
                problems.append(f"{name}:1: {parts[1]} is not a stage of cmake/layers.txt")
                continue
            for number, bracket, target in includes(path):
                problem = check_include(root, layers, name, bracket, target)
                if problem:
                    problems.append(f"{name}:{number}: #include {target}: {problem}")
    return problems, count


def self_test():
    """Plants one violation of each kind, and code that is right, and checks what is reported."""
    layers = (pathlib.Path(__file__).resolve().parent.parent / "cmake" / "layers.txt").read_text()
    good = {
        "fx/base/error.h": "#include <string>\n",
        "fx/graph/graph.h": '#include <fx/base/error.h>\n#include "fx/graph/node.h"\n',
        "fx/graph/node.h": "// #include <fx/io/x.h>\n/* #include <fx/io/x.h>\n#include <fx/io/x.h>\n*/\n",
        "fx/graph/graph_module.cpp": "#include <torch/nn/module.h>\n",
        "fx/capture/tracer.h": "#include <torch/nn/module.h>\n#include <fx/graph/graph.h>\n",
        "fx/interpret/interpreter.h": "#include <fx/base/error.h>\n#include <fx/graph/graph.h>\n",
        "fx/analysis/alias.h": "#include <fx/graph/graph.h>\n",
        "fx/passes/dce.h": "#include <fx/capture/tracer.h>\n#include <fx/analysis/alias.h>\n",
        "fx/io/read.h": "#include <fx/passes/dce.h>\n",
        "fx/plan/plan.h": "#include <fx/analysis/alias.h>\n",
        "fx/run/run.h": "#include <fx/plan/plan.h>\n",
        "fx/fx.h": "#include <fx/io/read.h>\n#include <fx/run/run.h>\n",
        "tests/io/x_test.cpp": "#include <fx/fx.h>\n#include <torch/torch.h>\n",
        "tools/fxcpp/main.cpp": "#include <fx/fx.h>\n#include <fx/run/run.h>\n",
    }
    bad = {  # file: lines, each of them a violation
        "fx/base/bad.h": ["#include <fx/graph/graph.h>", "#include <fx/base/missing.h>"],
        "fx/ops/bad.h": ["#include <fx/graph/graph.h>"],
        "fx/graph/bad.h": ["#include <fx/interpret/interpreter.h>", "#include <torch/nn/module.h>",
                           "#include <torch/torch.h>"],
        "fx/capture/bad.h": ["#include <fx/interpret/interpreter.h>", "#  include <fx/analysis/alias.h>"],
        "fx/interpret/bad.cpp": ["#include <fx/capture/tracer.h>"],
        "fx/analysis/bad.cpp": ["#include <fx/passes/dce.h>"],
        "fx/passes/bad.cpp": ["#include <fx/io/read.h>", "#include <fx/plan/plan.h>"],
        "fx/io/bad.cpp": ["#include <fx/run/run.h>", "#include <fx/fx.h>", '#include "read.h"',
                          '#include "../base/error.h"', "#include <torch/nn.h>"],
        "fx/plan/bad.cpp": ["#include <fx/passes/dce.h>", "#include <fx/capture/tracer.h>"],
        "fx/run/bad.cpp": ["#include <fx/io/read.h>", "#include <llvm/IR/IRBuilder.h>",
                           "#include <plan/plan.h>"],
        "tests/run/bad.cpp": ["#include <llvm/IR/IRBuilder.h>", "#include <fx/run/missing.h>"],
        "fx/nostage/bad.cpp": ["// a folder that is no stage"],
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        files = {"cmake/layers.txt": layers, **good, **{k: "\n".join(v) + "\n" for k, v in bad.items()}}
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = {":".join(p.split(":")[:2]) for p in check(root)[0]}
    wanted = {f"{name}:{number}" for name, lines in bad.items() for number in range(1, len(lines) + 1)}
    for place in sorted(wanted - found):
        print(f"not found: {place}")
    for place in sorted(found - wanted):
        print(f"wrongly reported: {place}")
    print(f"self-test: {len(wanted & found)} of {len(wanted)} planted violations found")
    return 0 if wanted == found else 1


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__)
        return 2
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    problems, count = check(root)
    for problem in problems:
        print(problem)
    print(f"layers: {count} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
