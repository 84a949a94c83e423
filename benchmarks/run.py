#!/usr/bin/env python3
"""Compares fxcpp with Python's torch.fx on this machine, now: one table of both figures, their ratio and the bar.

  benchmarks/run.py [--binary FILE] [--python PYTHON] [--rounds 3] [--quick] [--only PART ...] [--format md|json]
                    [-o FILE]

The two take turns, part by part, for several rounds; of each row the smallest time counts, and the median is shown
in the JSON form. So a busy machine makes both slower, not one of them. Without a Python that has torch, only the
rows that need none are judged. Nothing is written but to -o. The exit status is 0 whether or not all bars are met:
times are measured, not asserted (--strict makes it 1).
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# At least this many times as fast as Python.
SPEEDUP = 20

# (row, what it is, unit). Rows with a bar of SPEEDUP; {n} is each size that both sides measure.
COMPARED = [
    ("build_graph/{n}", "build a graph", "node"),
    ("lint/{n}", "lint", "node"),
    ("deepcopy/{n}", "deep copy of a graph", "node"),
    ("erase_node/{n}", "erase_node", "node"),
    ("dead_code_none/{n}", "eliminate_dead_code, nothing dead", "node"),
    ("dead_code_all/{n}", "eliminate_dead_code, all dead", "node"),
    ("replace_all_uses/{n}", "replace_all_uses_with, n/2 nodes", "node"),
    ("replace_all_uses_hub/{n}", "replace_all_uses_with, one node of n users", "user"),
    ("recompile/{n}", "recompile", "node"),
    ("symbolic_trace/resnet18", "symbolic_trace ResNet-18", "node"),
    ("symbolic_trace/resnet50", "symbolic_trace ResNet-50", "node"),
    ("symbolic_trace/encoder12", "symbolic_trace 12-layer encoder", "node"),
    ("replace_pattern/1000_matches", "replace_pattern, 1,000 matches in 10,000 nodes", "match"),
    ("str/{n}", "str", "node"),
    ("print_tabular/{n}", "print_tabular (Python: if the package tabulate is there)", "node"),
    ("save_module", "save of 10,000 nodes, 5,000 parameters, no flush (Python: pickle.dumps, in memory)", "node"),
    ("load_module", "load of the same (Python: pickle.loads)", "node"),
    ("deepcopy_module", "deep copy of the same GraphModule", "node"),
    ("split_module/2", "split_module, 10,000 nodes in 2 parts", "node"),
    ("split_module/100", "split_module, 10,000 nodes in 100 parts", "node"),
    ("partitioner/1000", "propose_partitions, 1,000 nodes", "node"),
]

# Rows that are shown without a bar.
SHOWN = [
    ("iterate/{n}", "iterate", "node"),
    ("rewrite/{n}", "relu to sigmoid: insert, replace uses, erase", "node"),
    ("transform/{n}", "Transformer", "node"),
    ("print_text/{n}", "print the text form", "node"),
    ("parse/{n}", "parse the text form (Python has none)", "node"),
    ("tracer/resnet18", "Tracer.trace ResNet-18", "node"),
    ("tracer/resnet50", "Tracer.trace ResNet-50", "node"),
    ("tracer/encoder12", "Tracer.trace 12-layer encoder", "node"),
    ("make_fx/resnet50", "make_fx of ResNet-50, 1x3x64x64 (bar: 10x)", "capture"),
    ("make_fx/attention12", "make_fx of a 12-layer encoder, 16 tokens of 64 (bar: 10x)", "capture"),
    ("capture_overhead/resnet50", "make_fx of ResNet-50 above eager's time (bar: 3 us)", "operator"),
    ("capture_overhead/attention12", "make_fx of the encoder above eager's time (bar: 3 us)", "operator"),
    ("replay/resnet50", "captured ResNet-50 (Python: eager)", "call"),
    ("replay/attention12", "captured encoder (Python: eager)", "call"),
    ("training_graphs/resnet50", "joint graph of ResNet-50 and its partition (Python: aot_function)", "capture"),
    ("training_graphs/attention12", "joint graph of the encoder and its partition", "capture"),
    ("recompile/resnet50", "recompile ResNet-50", "node"),
    ("recompile/encoder12", "recompile 12-layer encoder", "node"),
    ("deepcopy/resnet50", "deep copy of ResNet-50's graph", "node"),
    ("deepcopy/encoder12", "deep copy of the encoder's graph", "node"),
    ("replace_pattern/no_match", "replace_pattern, no match in 10,000 nodes", "node"),
    ("save_module_flushed", "save of the same, flushed to the disk", "node"),
    ("partitioner/10000", "propose_partitions, 10,000 nodes", "node"),
    ("partitioner/40000", "propose_partitions, 40,000 nodes", "node"),
    ("pass/cse", "pass manager with cse, 10,000 nodes", "node"),
    ("pass/dce", "pass manager with dce, 10,000 nodes", "node"),
    ("pass/constant_fold", "pass manager with constant_fold, 10,000 nodes", "node"),
    ("run_modules/interpreter", "Interpreter, call of an Identity module", "call"),
    ("run_modules/module", "GraphModule, call of an Identity module", "call"),
]

CHAINS = ["neg/no_grad", "neg/inference_mode", "add/no_grad", "add/inference_mode"]

# What must not cost more per node in a graph of a million nodes than in one of a hundred thousand (which no cache
# holds either), beyond this factor: an algorithm of n log n would stay below it too, one of n^1.4 would not.
LINEAR = ["build_graph", "lint", "iterate", "deepcopy", "erase_node", "dead_code_none", "dead_code_all",
          "replace_all_uses", "replace_all_uses_hub", "rewrite", "recompile", "str", "print_text", "parse"]
LINEAR_FACTOR = 2.5

# Parts that take turns: name, filter of our rows, arguments of the Python side ({n}: one size).
PARTS = {
    "build": "^build_graph/",
    "edit": "^(lint|iterate|deepcopy|erase_node|dead_code_.*|replace_all_uses.*|rewrite|recompile|str|print_.*|parse|"
            "transform)/[0-9]",
    "trace": "^(tracer|symbolic_trace|recompile|deepcopy|make_fx|capture_overhead|replay|functionalize|"
             "training_graphs)/[a-z]",
    "run": "^run_",
    "rewrite": "^(replace_pattern|split_module|partitioner|pass)/",
    "save": "^(save|load|deepcopy)_module",
    "load": "^load_pt2",
}


def say(*words):
    print("run.py:", *words, file=sys.stderr, flush=True)


def find_python(wanted):
    """A Python that can import torch, or None."""
    candidates = [wanted] if wanted else [os.environ.get("FXCPP_PYTHON"), sys.executable, "python3",
                                          str(ROOT / ".deps/pyref/bin/python3")]
    for candidate in candidates:
        if candidate and shutil.which(candidate):
            probe = subprocess.run([candidate, "-c", "import torch, torch.fx"], capture_output=True, check=False)
            if probe.returncode == 0:
                return candidate
    return None


class Results:
    """Figures of one side: of each row the smallest minimum, and the median of the medians."""

    def __init__(self):
        self.figures = {}

    def add(self, row, figure):
        self.figures.setdefault(row, []).append(figure)

    def min(self, row, key="min_us"):
        found = [figure[key] for figure in self.figures.get(row, []) if key in figure]
        return min(found) if found else None

    def median(self, row, key="median_us"):
        found = [figure[key] for figure in self.figures.get(row, []) if key in figure]
        return statistics.median(found) if found else None


def run_ours(options, results, pattern, pt2):
    """Runs the rows that match and adds them; messages of rows that cannot run are returned."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if pt2:
        environment["FXCPP_BENCH_PT2"] = str(pt2)
    command = [str(options.binary), f"--benchmark_filter={pattern}", "--benchmark_format=json",
               f"--benchmark_min_time={0.1 if options.quick else 0.4}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        if "Failed to match any" in done.stderr + done.stdout:
            return []
        raise SystemExit(f"run.py: {' '.join(command)} failed:\n{done.stderr[-3000:]}")
    problems = []
    for entry in json.loads(done.stdout)["benchmarks"]:
        row = re.sub(r"/(manual_time|real_time|iterations:\d+|min_time:[\d.]+)", "", entry["name"])
        if entry.get("error_occurred"):
            problems.append(f"{row}: {entry['error_message']}")
            continue
        if "min_us" in entry or "bytes_per_node" in entry:
            results.add(row, entry)
        for way in ("eager", "boxed", "interpreter", "module"):
            if f"{way}_min_us" in entry:
                figure = {"min_us": entry[f"{way}_min_us"]}
                if f"{way}_median_us" in entry:
                    figure["median_us"] = entry[f"{way}_median_us"]
                results.add(f"{row}/{way}", figure)
    return problems


def run_peer(python, results, arguments):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    done = subprocess.run([python, str(HERE / "peer_torch_fx.py"), *map(str, arguments)], capture_output=True,
                          text=True, env=environment, check=False)
    if done.returncode != 0:
        say(f"peer_torch_fx.py {' '.join(map(str, arguments))} failed:", done.stderr.strip()[-1000:])
        return None
    answer = json.loads(done.stdout)
    for row, figure in answer["rows"].items():
        results.add(row, figure)
    return answer


def measure(options, python, pt2):
    """Both sides by turns. Returns (ours, theirs, facts, problems)."""
    ours, theirs, facts, problems = Results(), Results(), {}, []
    peer_sizes = [10000] if options.quick else [10000, 100000]
    parts = {name: pattern for name, pattern in PARTS.items() if not options.only or name in options.only}
    for round_number in range(options.rounds):
        for name, pattern in parts.items():
            say(f"round {round_number + 1} of {options.rounds}, {name}")
            if options.quick and name in ("build", "edit"):
                pattern = pattern.removesuffix("[0-9]") + "10000/"
            problems += run_ours(options, ours, pattern, pt2)
            if not python or (name == "load" and not pt2):
                continue
            arguments = ["--part", name, "--reps", 3 if options.quick else 5, "--sizes", *peer_sizes]
            if name == "load":
                arguments += ["--pt2", pt2]
            answer = run_peer(python, theirs, arguments)
            if answer:
                facts = {"torch": answer["torch"], "python": answer["python"]}
    if not options.only or "memory" in options.only:
        say("memory")
        for size in [10000] if options.quick else [10000, 1000000]:
            run_ours(options, ours, f"^memory/{size}/", pt2)  # a process for each: an empty heap to start with
        if python:
            run_peer(python, theirs, ["--memory", peer_sizes[-1]])
    return ours, theirs, facts, sorted(set(problems))


def expand(table, sizes):
    for row, what, unit in table:
        if "{n}" not in row:
            yield row, what, unit
            continue
        for n in sizes:
            yield row.format(n=n), f"{what}, n = {n:,}", unit


def verdict(holds):
    return "" if holds is None else "PASS" if holds else "FAIL"


def table_of(ours, theirs):
    """Rows of the result: dicts of row, what, unit, python, fxcpp, ratio, bar, verdict, and the medians."""
    sizes = sorted({int(row.split("/")[1]) for row in ours.figures if re.match(r"build_graph/\d+$", row)} |
                   {int(row.split("/")[1]) for row in ours.figures if re.match(r"lint/\d+$", row)})
    rows = []

    def add(row, what, unit, python, fxcpp, ratio, bar, holds, **more):
        rows.append({"row": row, "what": what, "unit": unit, "python": python, "fxcpp": fxcpp, "ratio": ratio,
                     "bar": bar, "verdict": verdict(holds), **more})

    for table, has_bar in ((COMPARED, True), (SHOWN, False)):
        for row, what, unit in expand(table, sizes):
            mine, other = ours.min(row), theirs.min(row)
            if mine is None or (other is None and has_bar and "/1000000" in row):
                continue
            ratio = other / mine if other is not None else None
            bar = f"at least {SPEEDUP}x" if has_bar else ""
            holds = ratio >= SPEEDUP if has_bar and ratio is not None else None
            add(row, what, f"us/{unit}", other, mine, ratio, bar, holds, python_median=theirs.median(row),
                fxcpp_median=ours.median(row))
    for n in (10000, 1000000):
        mine = ours.min(f"memory/{n}", "bytes_per_node")
        other = theirs.min(f"memory/{n}", "bytes_per_node") or theirs.min("memory/100000", "bytes_per_node")
        if mine is not None:
            add(f"memory/{n}", f"memory, n = {n:,}", "bytes/node", other, mine, other / mine if other else None,
                "at most 400", mine <= 400)
    for chain in CHAINS:
        boxed = ours.min(f"run_chain/{chain}/boxed")
        if boxed is None:
            continue
        add(f"run_chain/{chain}/boxed", f"boxed call, {chain}", "us/call", None, boxed, None, "", None)
        for way, what in (("eager", "eager loop"), ("interpreter", "Interpreter"), ("module", "GraphModule")):
            mine, other = ours.min(f"run_chain/{chain}/{way}"), theirs.min(f"run_chain/{chain}/{way}")
            add(f"run_chain/{chain}/{way}", f"{what}, {chain}", "us/call", other, mine,
                other / mine if other else None, "", None, python_median=theirs.median(f"run_chain/{chain}/{way}"),
                fxcpp_median=ours.median(f"run_chain/{chain}/{way}"))
        for way, what in (("interpreter", "Interpreter"), ("module", "GraphModule")):
            added = ours.min(f"run_chain/{chain}/{way}") - boxed
            add(f"run_chain/{chain}/{way}_adds", f"{what} adds to the boxed call, {chain}", "us/call", None, added, None,
                "at most 0.3", added <= 0.3)
    mine, other = ours.min("load_pt2"), theirs.min("load_pt2")
    if mine is not None:
        add("load_pt2", "load ResNet-50 from a .pt2, warm", "ms", other / 1e3 if other else None, mine / 1e3,
            other / mine if other else None, "at most 100 ms", mine <= 1e5)
    for name in LINEAR:
        small, medium, large = (ours.min(f"{name}/{n}") for n in (10000, 100000, 1000000))
        if medium and large:
            add(f"linear/{name}", f"{name}: a million nodes ({large:.3g}) against 100,000 ({medium:.3g}) and 10,000 "
                f"({small:.3g})", "us/node ratio", None, large / medium, None, f"at most {LINEAR_FACTOR}",
                large / medium <= LINEAR_FACTOR)
    small, large = ours.min("partitioner/10000"), ours.min("partitioner/40000")
    if small and large:
        add("linear/partitioner", f"partitioner: 40,000 nodes ({large:.3g}) against 10,000 ({small:.3g}); Python's is "
            "quadratic in memory", "us/node ratio", None, large / small, None, f"at most {LINEAR_FACTOR}",
            large / small <= LINEAR_FACTOR)
    return rows


def number(value):
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def markdown(rows, header, problems):
    lines = [header, "", "| what | unit | Python | fxcpp | ratio | bar | |", "|---|---|---:|---:|---:|---|---|"]
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{number(row['ratio'])}x"
        lines.append(f"| {row['what']} | {row['unit']} | {number(row['python'])} | {number(row['fxcpp'])} | {ratio} | "
                     f"{row['bar']} | {row['verdict']} |")
    lines += [""] + [f"Not run: {problem}" for problem in problems]
    failed = [row["what"] for row in rows if row["verdict"] == "FAIL"]
    passed = sum(row["verdict"] == "PASS" for row in rows)
    lines.append(f"{passed} bars met, {len(failed)} missed" + (": " + "; ".join(failed) if failed else ""))
    return "\n".join(line for line in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/fxcpp_bench")
    parser.add_argument("--python", help="a Python with torch; default: FXCPP_PYTHON, python3, .deps/pyref")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="one round, 10,000 nodes")
    parser.add_argument("--only", nargs="*", choices=[*PARTS, "memory"])
    parser.add_argument("--format", choices=["md", "json"], default="md")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    if not options.binary.exists():
        raise SystemExit(f"run.py: there is no {options.binary}: run `make bench`, or name it with --binary")
    python = find_python(options.python)
    if not python:
        say("no Python with torch was found: its column stays empty (`make python-ref` makes one)")
    with tempfile.TemporaryDirectory(prefix="fxcpp-bench-") as folder:
        pt2 = None
        if python and (not options.only or "load" in options.only):
            pt2 = Path(folder) / "resnet50.pt2"
            say("exporting ResNet-50")
            exported = subprocess.run([python, str(HERE / "peer_torch_fx.py"), "--export", str(pt2)],
                                      capture_output=True, text=True, check=False)
            if exported.returncode != 0:
                say("ResNet-50 could not be exported, so it is not loaded:", exported.stderr.strip()[-500:])
                pt2 = None
        ours, theirs, facts, problems = measure(options, python, pt2)
    rows = table_of(ours, theirs)
    if options.format == "json":
        text = json.dumps({"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), **facts,
                           "rounds": options.rounds, "rows": rows, "not_run": problems}, indent=1) + "\n"
    else:
        against = f"torch {facts['torch']}, Python {facts['python']}" if facts else "no Python"
        text = markdown(rows, f"fxcpp against torch.fx ({against}); {os.cpu_count()} cores, {options.rounds} rounds, "
                        "smallest times.", problems)
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text)
    if options.strict and any(row["verdict"] == "FAIL" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
