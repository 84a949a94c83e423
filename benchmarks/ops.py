#!/usr/bin/env python3
"""Single operators, compiled and by LibTorch: a table in Markdown of those that are slower compiled, in microseconds.

    benchmarks/ops.py --binary fxcpp_bench_ops [--samples build/dev/opinfo] [--write docs/operator-speed.md]

Random calls of each operator that has a lowering, of about 65,536 and about a million elements in various dtypes and
layouts, on one and two threads, and the samples of PyTorch's operator database with more than 10,000 elements
(scripts/export_opinfo.py). The two take turns and the fastest run of each counts. What is slower is measured again by
another process, and is an exception if it is slower in each round. A call of a compiled program costs up to a
microsecond more than that of an operator, which is allowed.
"""

import argparse
import collections
import json
import pathlib
import subprocess

SLOWER = 1.05
CALL_US = 1.0  # what a call itself may cost
PAGE = """# Operators that are slower compiled

`make bench-ops` times single operators by `fx::compile` and by LibTorch: {calls} random calls of the {operators} operators
that kernels know, of about {sizes} elements in various dtypes and layouts, and the {samples} samples of PyTorch's operator
database with more than 10,000 elements; each on one and on two threads, by turns, the fastest run of each. Of these
measurements {kernels} ran as kernels; the others are left to the operator, since a kernel would not be faster. Listed is
what takes more than {percent} % and {call_us:g} µs longer (a call of a compiled program is made of more than an operator's) in each of {rounds}
rounds; kernels alone, ratio of times: {better} are faster by more than 5 %, {equal} are equal, {worse} are slower.

"""


def run(binary, calls, elements, operator="", samples=None):
    """The lines of one run, by what was measured."""
    command = [binary, str(calls), str(elements), operator]
    if samples:
        command += [str(samples.parent), samples.stem]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    return {(row["source"], row["op"], row["call"], row["threads"]): row for row in rows}


def is_slower(row):
    return row["fx_us"] > SLOWER * row["eager_us"] and row["fx_us"] - row["eager_us"] > CALL_US


def measured(options):
    """All rows, each by its best round; what is slower runs in every round."""
    table = {}
    files = []
    if options.samples:
        files = [f for f in sorted(options.samples.glob("*.jsonl"))
                 if f.with_suffix(".safetensors").exists() and not f.name.endswith(".results.jsonl")]
    runs = [(options.calls, size, "", None) for size in options.elements] + [(0, 1, "", f) for f in files]
    for calls, size, operator, samples in runs:
        table.update(run(options.binary, calls, size, operator, samples))
        for _ in range(options.rounds - 1):
            # Exact names: an operator is asked for by a part of its name.
            slow = {key: row for key, row in table.items() if is_slower(row)}
            for operator in sorted({key[1] for key in slow if (key[0] == "random") == (samples is None)}):
                again = run(options.binary, calls, size, operator.split(" ")[0], samples)
                for key, row in again.items():
                    if key in slow and row["fx_us"] / row["eager_us"] < slow[key]["fx_us"] / slow[key]["eager_us"]:
                        table[key] = row
    return table


def page(table, options):
    rows = list(table.values())
    kernels = [row for row in rows if row["kernel"]]
    ratios = [row["fx_us"] / row["eager_us"] for row in kernels]
    worse = sum(map(is_slower, kernels))
    better = sum(ratio < 1 / SLOWER for ratio in ratios)
    text = PAGE.format(
        calls=len({key[:3] for key in table if key[0] == "random"}), operators=len({key[1] for key in table if key[0] == "random"}),
        sizes=" and ".join(f"{size:,}" for size in options.elements), samples=len({key[:3] for key in table if key[0] == "opinfo"}),
        kernels=len(kernels), percent=round(100 * (SLOWER - 1)), call_us=CALL_US, rounds=options.rounds, better=better,
        worse=worse, equal=len(kernels) - better - worse)
    slow = collections.defaultdict(list)
    for row in rows:
        if is_slower(row):
            slow[row["op"]].append(row)
    if not slow:
        return text + "None.\n"
    text += "| operator | call | threads | LibTorch | compiled | ratio | kernel |\n| --- | --- | ---: | ---: | ---: | ---: | --- |\n"
    for operator in sorted(slow):
        for row in sorted(slow[operator], key=lambda r: -r["fx_us"] / r["eager_us"])[:3]:
            call = row["call"].replace("|", "\\|")
            text += (f"| `{operator}` | {call} | {row['threads']} | {row['eager_us']:.1f} | {row['fx_us']:.1f} "
                     f"| {row['fx_us'] / row['eager_us']:.2f} | {'yes' if row['kernel'] else 'no'} |\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="fxcpp_bench_ops")
    parser.add_argument("--samples", type=pathlib.Path, help="a folder that scripts/export_opinfo.py wrote")
    parser.add_argument("--calls", type=int, default=4, help="of each operator")
    parser.add_argument("--elements", type=int, nargs="+", default=[65536, 1048576])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", type=pathlib.Path, help="the page; without it, the page is printed")
    options = parser.parse_args()
    if options.samples and not options.samples.is_dir():
        options.samples = None
    text = page(measured(options), options)
    if options.write:
        options.write.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
