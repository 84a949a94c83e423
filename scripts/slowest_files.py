#!/usr/bin/env python3
"""Prints the files that took longest to compile in a build folder: slowest_files.py BUILD_DIR [COUNT]."""

import pathlib
import sys


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        print(__doc__)
        return 2
    log = pathlib.Path(arguments[0]) / ".ninja_log"
    count = int(arguments[1]) if len(arguments) == 2 else 15
    if not log.is_file():
        print(f"{log} does not exist: nothing has been built yet")
        return 1
    seconds = {}  # the last entry of an output is its last build
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith((".o", ".gch", ".pch")):
            seconds[output] = (int(end) - int(start)) / 1000
    print(f"slowest of {len(seconds)} compiled files, {sum(seconds.values()):.0f} s in all:")
    for output, time in sorted(seconds.items(), key=lambda item: -item[1])[:count]:
        print(f"{time:7.1f} s  {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
