#!/usr/bin/env python3
"""One program run in several ways (C++, Interpreter, GraphModule, compiled): a table of ratios, each with its bar.

  benchmarks/ways.py --binary fxcpp_bench_ways [--rounds 3] [--budget-ms 500] [--format md|json] [--strict]

Within a run of the binary the ways of a row take turns; of all rounds the best ratio of medians counts, since noise
only ever makes one of the two slower. --strict makes the exit status 1 when a bar is missed; without it times are
measured, not asserted.
"""

import argparse
import json
import subprocess

# (row, what it is, the way that may be slower, the way that has to be faster, at least how many times as fast)
BARS = [
    ("pointwise_chain/64", "16 pointwise operators on 64 floats", "interpreter", "compiled", 1.0),
    ("pointwise_chain/64", "16 pointwise operators on 64 floats", "eager", "compiled", 1.0),
    ("pointwise_chain/1000000", "16 pointwise operators on a million floats", "interpreter", "compiled", 1.0),
    ("pointwise_chain/1000000", "16 pointwise operators on a million floats", "eager", "compiled", 1.0),
    ("sample_3_layers", "linear, relu, linear on 1 x 10", "interpreter", "module", 1.0),
    ("sample_3_layers", "linear, relu, linear on 1 x 10", "module", "eager", None),
    ("fused_chain", "exp, tanh, gelu, sigmoid on 4096 x 1024", "eager", "compiled", 2.0),
]


def run(binary, budget_ms):
    """The rows that one run of the binary prints, by name."""
    out = subprocess.run([binary, str(budget_ms)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {row["row"]: row for row in map(json.loads, out.splitlines())}


def judge(rounds):
    """One dict for each bar: row, what, the two ways with their times, ratio, bar, met, facts."""
    judged = []
    for row, what, slow, fast, bar in BARS:
        found = [(ways[slow], ways[fast]) for ways in (each[row]["ways"] for each in rounds)]
        best = max(found, key=lambda pair: pair[0]["median_us"] / pair[1]["median_us"])
        ratio = best[0]["median_us"] / best[1]["median_us"]
        judged.append({"row": row, "what": what, "slow": slow, "slow_us": best[0]["median_us"],
                       "slow_min_us": best[0]["min_us"], "fast": fast, "fast_us": best[1]["median_us"],
                       "fast_min_us": best[1]["min_us"], "ratio": ratio, "bar": bar,
                       "met": None if bar is None else ratio >= bar,
                       "error": max(way["error"] for pair in found for way in pair),
                       "facts": rounds[0][row]["facts"]})
    runs = max((each["compiled_runs"] for each in rounds), key=lambda one: one["runs_us"][0] / max(one["runs_us"][1:]))
    ratio = runs["runs_us"][0] / max(runs["runs_us"][1:])
    judged.append({"row": "compiled_runs", "what": "compiled linear, relu, linear: run 1 beside each of runs 2 to 6",
                   "slow": "run 1", "slow_us": runs["runs_us"][0], "fast": "slowest of runs 2 to 6",
                   "fast_us": max(runs["runs_us"][1:]), "runs_us": runs["runs_us"], "ratio": ratio, "bar": 1.0,
                   "met": ratio > 1.0, "error": max(runs["errors"]), "compilations": runs["compilations"],
                   "facts": runs["facts"]})
    return judged


def markdown(judged):
    lines = ["| what | | us | | us | ratio | bar | |", "|---|---|---:|---|---:|---:|---|---|"]
    for one in judged:
        bar = "" if one["bar"] is None else f"at least {one['bar']:g}x"
        met = "" if one["met"] is None else "met" if one["met"] else "missed"
        lines.append(f"| {one['what']} | {one['slow']} | {one['slow_us']:.4g} | {one['fast']} | {one['fast_us']:.4g} | "
                     f"{one['ratio']:.3g}x | {bar} | {met} |")
    runs = next(one["runs_us"] for one in judged if one["row"] == "compiled_runs")
    lines += ["", "Runs 1 to 6 of the compiled model, microseconds: " + ", ".join(f"{us:.4g}" for us in runs)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="fxcpp_bench_ways")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget-ms", type=float, default=500, help="time for each row in each round")
    parser.add_argument("--format", choices=["md", "json"], default="md")
    parser.add_argument("--strict", action="store_true", help="exit status 1 when a bar is missed")
    options = parser.parse_args()
    judged = judge([run(options.binary, options.budget_ms) for _ in range(options.rounds)])
    print(markdown(judged) if options.format == "md" else json.dumps(judged, indent=1))
    if options.strict and any(one["met"] is False for one in judged):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
