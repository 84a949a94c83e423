#!/usr/bin/env python3
"""Writes docs/opinfo.md from what opinfo_report found: opinfo_table.py FOLDER [--check]

FOLDER holds manifest.json and DTYPE.jsonl of export_opinfo.py, and DTYPE.results.jsonl of opinfo_report. With --check it writes
no page. Status 1 if a sample has no result, or a result that differs.
"""
import json
import pathlib
import sys
from collections import Counter, defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHORT = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "complex64": "c64", "complex128": "c128",
         "complex32": "c32", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool",
         "uint16": "u16", "uint32": "u32", "uint64": "u64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
         "float8_e4m3fnuz": "f8e4m3z", "float8_e5m2fnuz": "f8e5m2z",
         "errors": "errors"}
WAYS = {"text": "interpret", "interpret": "interpret", "plan": "plan", "replay": "plan", "core": "core", "llvm": "llvm",
        "llvm among others": "llvm", "all": "interpret"}

HEAD = """# PyTorch's operator database

The samples of OpInfo, by which PyTorch tests its own operators (torch {torch}): {operators} entries, {samples:,} samples, all of float32,
the first three of each other dtype, and the calls that operators have to refuse (*errors*). `scripts/export_opinfo.py` writes each as
a graph with inputs and outputs, and `opinfo_report` runs it; `make test-opinfo` makes this page.

- **Programs.** Each sample is the operators that Python dispatches for it. Where it stands for one call, it is also that call by its
  torch function, as a method of its tensor, and as the method that writes to its tensor. Text and lint of each are checked, too.
- **interpret** is the Interpreter; **plan** is `GraphModule::forward`, and the mode `reduce-overhead` of the backend `plan`, called twice;
  **core** is the graph that `fx::run_decompositions` makes of it, without composite operators and those of
  `core_aten_decompositions()`, and what that gives (strides apart);
  **llvm** is `fx::compile`, called twice, of the operators as they are and of the same operators between products by 1 (also with
  `reduce-overhead`), since a single operator pays for no kernel. *kernel*: an operator of the sample became part of a kernel;
  *operators*: none did.
- **equal** means: kind, dtype, sizes and strides as in Python (no strides between products), integers exactly, others within the
  tolerance of `torch.testing.assert_close` for the dtype, or, for kernels and decompositions, as near to the result in double as Python's; NaN where NaN
  is; a decomposition may be four times as far from it as the farthest number of Python's. Errors have Python's message. Random numbers have Python's seed, and so are compared like all others. What differs from run to run
  in Python, since it is memory that nobody wrote, is judged by dtype, sizes and strides: *shape*.
- **not exported** samples are listed in the last column.

| dtype | samples | equal | shape | differ | not exported | with a kernel | operators only |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{totals}

Why no operator of a sample is in a kernel, for the most frequent reasons: {reasons}.

| operator | samples | dtypes | interpret | plan | core | llvm | notes |
| --- | ---: | --- | --- | --- | --- | --- | --- |
{rows}
"""


class Row:
    """What is known of one operator."""

    def __init__(self):
        self.samples = Counter()  # by dtype
        self.states = defaultdict(Counter)  # way -> (state, dtype)
        self.llvm = defaultdict(set)  # "kernel", "operators" -> dtypes
        self.notes = Counter()

    def add(self, dtype, sample, result):
        self.samples[dtype] += 1
        if "missing" in sample:
            self.notes[(f"not exported: {sample['missing']}", dtype)] += 1
            return "not exported"
        judge = "equal" if sample["judge"] == "values" else "shape"
        states = dict.fromkeys(("interpret", "plan", "core", "llvm"), judge)
        for bad in result.get("bad", []):
            states[WAYS[bad["way"]]] = "differs"
            self.notes[(f"{bad['way']}, {bad['form']}: {bad['what'].splitlines()[0]}", dtype)] += 1
        for way, state in states.items():
            self.states[way][(state, dtype)] += 1
        if "llvm" in result:
            self.llvm[result["llvm"]].add(dtype)
        return "differs" if "differs" in states.values() else judge

    def dtypes(self, some):
        some = set(some)
        return "all" if some == set(self.samples) and len(some) > 1 else " ".join(SHORT[d] for d in SHORT if d in some)

    def cell(self, way):
        states = self.states[way]
        kinds = list(dict.fromkeys(state for state, _ in sorted(states)))
        if len(kinds) == 1:
            text = kinds[0]
        else:
            text = ", ".join(f"{k}: {self.dtypes(d for s, d in states if s == k)}" for k in kinds)
        if way == "llvm" and text and "differs" not in text:
            kinds = sorted(self.llvm)
            if len(kinds) == 1:
                return f"{text}, {kinds[0]}"
            if kinds:  # a dtype with both counts as one with kernels
                rest = self.llvm["operators"] - self.llvm["kernel"]
                return f"{text}, kernel" + (f" ({self.dtypes(self.llvm['kernel'])}), operators ({self.dtypes(rest)})" if rest else "")
        return text

    def text(self, name):
        notes = defaultdict(dict)
        for (what, dtype), count in self.notes.items():
            notes[what][dtype] = count
        listed = [f"{sum(counts.values())} ({self.dtypes(counts)}) {what}" for what, counts in notes.items()]
        if not self.samples:
            listed.append("no dtype with samples on the CPU")
        cells = [name, sum(self.samples.values()), " ".join(SHORT[d] for d in SHORT if d in self.samples),
                 self.cell("interpret"), self.cell("plan"), self.cell("core"), self.cell("llvm"), "; ".join(listed[:4])]
        return "| " + " | ".join(str(c).replace("|", "\\|").replace("_", "\\_") for c in cells) + " |"


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    manifest = json.loads((folder / "manifest.json").read_text())
    rows = {name: Row() for name in manifest["operators"]}
    totals, reasons, bad = [], Counter(), 0
    for dtype in manifest["samples"]:
        samples = [json.loads(line) for line in (folder / f"{dtype}.jsonl").open()]
        results = [json.loads(line) for line in (folder / f"{dtype}.results.jsonl").open()]
        if len(samples) != len(results):
            print(f"{dtype}: {len(results)} results for {len(samples)} samples")
            bad += 1
        count = Counter()
        for sample, result in zip(samples, results):
            state = rows[sample["op"]].add(dtype, sample, result)
            count[state] += 1
            count[result.get("llvm")] += 1
            if result.get("reason"):
                reasons[result["reason"].split(" is not lowered")[0]] += 1
            for what in result.get("bad", [])[:1]:
                print(f"{sample['op']} {dtype} {sample['sample']}: {what['way']}, {what['form']}: {what['what'][:300]}")
        bad += count["differs"]
        totals.append(f"| {dtype} | {len(samples)} | {count['equal']} | {count['shape']} | {count['differs']} "
                      f"| {count['not exported']} | {count['kernel']} | {count['operators']} |".replace("_", "\\_"))
        print(f"{dtype}: {len(samples)} samples, {dict(count)}", flush=True)
    if "--check" not in sys.argv:
        most = ", ".join(f"{reason.replace('_', chr(92) + '_')} ({count})" for reason, count in reasons.most_common(12))
        text = HEAD.format(torch=manifest["torch"].split("+")[0], operators=len(rows),
                           samples=sum(manifest["samples"].values()), totals="\n".join(totals), reasons=most,
                           rows="\n".join(row.text(name) for name, row in rows.items()))
        (ROOT / "docs" / "opinfo.md").write_text(text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
