#!/usr/bin/env python3
"""Times that files take: opening them, a process from its start to the first output, and the most memory it holds.

  benchmarks/files.py [--bin FOLDER] [--python PYTHON] [--rounds 5] [--threads 2] [--only resnet50 bert_base]
                      [--folder build/bench_files] [--format md|json] [--strict]

ResNet-50 and BERT-base with random weights, one image and one text of 128 tokens, are exported once into the folder: as .pt2, and as
.onnx where onnx and onnxscript are installed. Then, by turns, for several rounds:

  open       fx::load of the warm .pt2 inside a process, against Python's torch.export.load inside one
  first      `fxcpp run FILE -i x=@x.npy -o OUT` from start to end, against a Python that imports onnxruntime, runs the .onnx and saves
             the result; the two results have to agree
  memory     the most resident memory of that `fxcpp run`, against weights + 1.3 x activations + LibTorch's own

Weights are the bytes of parameters and buffers. Activations are the most bytes of intermediate results that are alive at once when each
lives from its making to its last use. LibTorch's own is two things: the most resident memory of `fxcpp run` of a program of a small
convolution, matrix product and attention (code, tables, threads); and what its kernels take for this model (primitives, scratch,
packed weights), which is what a first call in Python adds to the resident memory at most, without the activations.
Of times the smallest counts. Missing libraries (torchvision; transformers: scripts/setup.sh zoo; onnx onnxscript onnxruntime) leave
rows out, with a note. --strict: status 1 when a bar is missed. Needs fxcpp_bench beside fxcpp.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from run import ROOT, find_python

MODELS = {"resnet50": "ResNet-50", "bert_base": "BERT-base"}
OPEN_BAR = 10  # times as fast as Python
ACTIVATIONS = 1.3

EXPORT = r"""
import json, pathlib, sys
import numpy as np
import torch

name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
torch.manual_seed(0)
if name == "small":
    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.head = torch.nn.Conv2d(8, 8, 3), torch.nn.Linear(8, 16)

        def forward(self, x):
            x = self.head(self.conv(x).transpose(1, 3))
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)

    net, inputs = Small(), (torch.randn(1, 8, 10, 10),)
elif name == "resnet50":
    import torchvision
    net, inputs = torchvision.models.resnet50(weights=None), (torch.randn(1, 3, 224, 224),)
else:
    import transformers
    config = transformers.BertConfig(attn_implementation="sdpa")

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel(config)

        def forward(self, ids, mask):
            return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    ids = torch.randint(1, 30000, (1, 128))
    net, inputs = Bert(), (ids, torch.ones_like(ids))
net = net.eval()
with torch.no_grad():
    program = torch.export.export(net, inputs)
torch.export.save(program, folder / f"{name}.pt2")
names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
for key, value in zip(names, inputs):
    np.save(folder / f"{name}.{key}.npy", value.numpy())


class Live(torch.fx.Interpreter):
    # The most bytes of results at once: each storage from its making to its last use, without inputs and weights.
    peak = 0

    def run_node(self, node):
        result = super().run_node(node)
        held = {}
        for user, value in (*self.env.items(), (node, result)):
            if user.op not in ("placeholder", "get_attr"):
                for leaf in torch.utils._pytree.tree_leaves(value):
                    if isinstance(leaf, torch.Tensor):
                        held[leaf.untyped_storage().data_ptr()] = leaf.untyped_storage().nbytes()
        given = {v.untyped_storage().data_ptr() for k, v in self.env.items()
                 if k.op in ("placeholder", "get_attr") and isinstance(v, torch.Tensor)}
        self.peak = max(self.peak, sum(n for p, n in held.items() if p not in given))
        return result


lifted = program.module()
live = Live(lifted)
with torch.no_grad():
    live.run(*inputs)
facts = {"names": names, "activations": live.peak,
         "weights": sum(v.numel() * v.element_size() for v in program.state_dict.values())}
if name != "small":
    try:
        torch.onnx.export(net, inputs, folder / f"{name}.onnx", dynamo=True, external_data=False, input_names=names, verbose=False)
    except Exception as error:
        facts["no_onnx"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
(folder / f"{name}.json").write_text(json.dumps(facts))
"""

OPEN = r"""
import sys, time
import torch
times = []
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    torch.export.load(sys.argv[1])
    times.append(time.perf_counter() - start)
print(min(times))
"""

SCRATCH = r"""
import sys
import numpy as np
import torch

def memory(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))

torch.set_num_threads(int(sys.argv[3]))
module = torch.export.load(sys.argv[1]).module()
inputs = [torch.from_numpy(np.load(file)) for file in sys.argv[4:]]
for tensor in module.state_dict().values():
    tensor.sum()
small = torch.export.load(sys.argv[2]).module()
with torch.no_grad():
    small(torch.randn(1, 8, 10, 10))
    before = memory("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")  # the most resident memory counts from here
    module(*inputs)
print(memory("VmHWM") - before)
"""

ONNX = r"""
import sys
import numpy as np
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
inputs = dict(zip([i.name for i in session.get_inputs()], map(np.load, sys.argv[4:])))
np.save(sys.argv[2], session.run(None, inputs)[0])
"""

AGREE = r"""
import sys
import numpy as np
a, b = map(np.load, sys.argv[1:])
print(np.abs(a - b).max() / np.abs(b).max())
"""


def say(*words):
    print("files.py:", *words, file=sys.stderr, flush=True)


def run(command, environment, **options):
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.strip()[-600:]}")
    return done.stdout


def measured(command, environment):
    """Seconds and the most resident bytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    text = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {text.decode(errors='replace')[-600:]}")
    return seconds, usage.ru_maxrss * 1024


class Model:
    """One program: its files, and the smallest figures so far."""

    def __init__(self, name, options, environment):
        self.name, self.options, self.environment = name, options, environment
        self.folder = options.folder
        if not (self.folder / f"{name}.json").exists():
            say(f"exporting {name}")
            run([options.python, "-c", EXPORT, name, self.folder], environment)
        self.facts = json.loads((self.folder / f"{name}.json").read_text())
        self.pt2 = self.folder / f"{name}.pt2"
        self.figures = {}

    def note(self, key, value):
        self.figures[key] = min(value, self.figures.get(key, value))

    def measure_open(self):
        environment = {**self.environment, "FXCPP_BENCH_PT2": str(self.pt2)}
        text = run([self.options.bin / "fxcpp_bench", "--benchmark_filter=^load_pt2", "--benchmark_format=json",
                    "--benchmark_min_time=0.2"], environment)
        self.note("open", json.loads(text)["benchmarks"][0]["min_us"] / 1e6)
        self.note("open_python", float(run([self.options.python, "-c", OPEN, self.pt2, 3], self.environment)))

    def measure_first(self):
        inputs = {key: self.folder / f"{self.name}.{key}.npy" for key in self.facts["names"]}
        mine, other = self.folder / f"{self.name}.fxcpp.npy", self.folder / f"{self.name}.onnx.npy"
        given = [word for key, file in inputs.items() for word in ("-i", f"{key}=@{file}")]
        seconds, memory = measured([self.options.bin / "fxcpp", "run", self.pt2, *given, "-o", mine, "--threads",
                                    self.options.threads, "-q"], self.environment)
        if "scratch" not in self.facts:
            grown = int(run([self.options.python, "-c", SCRATCH, self.pt2, self.folder / "small.pt2", self.options.threads,
                             *inputs.values()], self.environment))
            self.facts["scratch"] = max(0, grown - self.facts["activations"])
        self.note("first", seconds)
        self.note("memory", memory)
        onnx = self.folder / f"{self.name}.onnx"
        if not onnx.exists():
            return
        self.note("first_onnx", measured([self.options.python, "-c", ONNX, onnx, other, self.options.threads, *inputs.values()],
                                         self.environment)[0])
        error = float(run([self.options.python, "-c", AGREE, mine, other], self.environment))
        if not error < 1e-3:
            raise RuntimeError(f"{self.name}: the results of fxcpp and ONNX Runtime differ by {error:.1e}")


def rows_of(model, own):
    own += model.facts["scratch"]
    figures, name = model.figures, MODELS[model.name]
    rows = []

    def add(what, unit, mine, other, bar, holds):
        rows.append({"what": f"{name}, {what}", "unit": unit, "fxcpp": mine, "other": other, "bar": bar, "met": holds})

    ratio = figures["open_python"] / figures["open"]
    add("open", "ms", figures["open"] * 1e3, figures["open_python"] * 1e3, f"{OPEN_BAR}x as fast as torch.export.load",
        ratio >= OPEN_BAR)
    onnx = figures.get("first_onnx")
    add("start to first output", "ms", figures["first"] * 1e3, onnx and onnx * 1e3, "at most ONNX Runtime's",
        None if onnx is None else figures["first"] <= onnx)
    bound = model.facts["weights"] + ACTIVATIONS * model.facts["activations"] + own
    add("most memory", "MB", figures["memory"] / 1e6, bound / 1e6,
        f"weights {model.facts['weights'] / 1e6:.0f} + {ACTIVATIONS} x activations {model.facts['activations'] / 1e6:.1f} + "
        f"LibTorch's own {own / 1e6:.0f}", figures["memory"] <= bound)
    return rows


def table(rows):
    lines = ["| what | unit | fxcpp | other | bar | |", "|---|---|---:|---:|---|---|"]
    for row in rows:
        other = "" if row["other"] is None else f"{row['other']:.4g}"
        met = {None: "", True: "met", False: "missed"}[row["met"]]
        lines.append(f"| {row['what']} | {row['unit']} | {row['fxcpp']:.4g} | {other} | {row['bar']} | {met} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help="where fxcpp and fxcpp_bench are")
    parser.add_argument("--python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--folder", type=Path, default=ROOT / "build/bench_files")
    parser.add_argument("--format", choices=("md", "json"), default="md")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    options.python = find_python(options.python)
    if not options.python:
        raise SystemExit("files.py: no Python has torch: make python-ref, or set FXCPP_PYTHON")
    options.bin, options.folder = options.bin.resolve(), options.folder.resolve()
    for program in ("fxcpp", "fxcpp_bench"):
        if not shutil.which(options.bin / program):
            raise SystemExit(f"files.py: no {program} in {options.bin}: make bench builds it, or name another folder with --bin")
    options.folder.mkdir(parents=True, exist_ok=True)
    libraries = [str(ROOT / ".deps" / name) for name in ("zoo", "onnx")]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads),
                       PYTHONPATH=os.pathsep.join(libraries + [p for p in [os.environ.get("PYTHONPATH")] if p]))
    models = []
    for name in ["small", *options.only]:
        try:
            models.append(Model(name, options, environment))
        except RuntimeError as error:
            say(f"{name} is left out: {error}")
        if models and "no_onnx" in models[-1].facts:
            say(f"{name}: no ONNX file: {models[-1].facts['no_onnx']}")
    if not models or models[0].name != "small":
        raise SystemExit("files.py: the small program could not be exported")
    small, *models = models
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        small.measure_first()
        for model in models:
            model.measure_open()
            model.measure_first()
    rows = [row for model in models for row in rows_of(model, small.figures["memory"])]
    print(json.dumps(rows, indent=1) if options.format == "json" else table(rows))
    return 1 if options.strict and any(row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
