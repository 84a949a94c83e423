#!/usr/bin/env python3
"""Compiled kernels beside eager and torch.compile (Inductor): a table in Markdown, times in milliseconds.

Both programs run by turns; each figure is the best of all rounds. The figures of one run compare with each other and with
nothing else: the machine, its other load and the allocator are those of the run. "copy" is how long the machine takes to
move as many bytes from memory to memory as the inputs and the result have; "compute" is how long its arithmetic takes at
least: the vector instructions in the loops of the kernel (benchmarks/roofline.h) at the rates at which the machine does
products, divisions and everything together, measured in the same run; the slowest of the three counts. For cases that are one kernel over all elements. The roofline is the
larger of the two, and "of roofline" ours over it (below 1: the data lies in caches). "compile" is the first call without the capture
of the program and its example run.
"""

import argparse
import json
import subprocess


def rows_of(command):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="fxcpp_bench_kernels")
    parser.add_argument("--python", help="a Python with torch; without one there are no peers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--budget-ms", type=float, default=300, help="time for each figure in each round")
    options = parser.parse_args()

    table = {}
    for _ in range(options.rounds):
        commands = [[options.binary, str(options.budget_ms)]]
        if options.python:
            commands.append([options.python, __file__.replace("kernels.py", "peer_kernels.py"),
                             "--budget-ms", str(options.budget_ms)])
        for command in commands:
            for row in rows_of(command):
                known = table.setdefault(row["case"], {})
                for key, value in row.items():
                    if not key.endswith("_ms"):
                        continue
                    if key == "first_ms" and "inductor_ms" in row:
                        key = "inductor_first_ms"
                    known[key] = min(known.get(key, float("inf")), value)

    print("| case | eager | Inductor | fx::compile | best peer / ours | copy | compute | of roofline | first call, Inductor | first call, ours | compile |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, row in table.items():
        peers = [row[key] for key in ("eager_ms", "inductor_ms") if key in row]

        def cell(key, digits=3):
            return f"{row[key]:.{digits}f}" if key in row else ""

        compute = cell("compute_ms") if row["compute_ms"] else ""
        of_roofline = f"{row['fx_ms'] / max(row['copy_ms'], row['compute_ms']):.2f}" if compute else ""
        print(f"| {name} | {cell('eager_ms')} | {cell('inductor_ms')} | {cell('fx_ms')} | {min(peers) / row['fx_ms']:.2f} "
              f"| {cell('copy_ms')} | {compute} | {of_roofline} | {cell('inductor_first_ms', 0)} | {cell('first_ms', 1)} | {cell('compile_ms', 1)} |")


if __name__ == "__main__":
    main()
