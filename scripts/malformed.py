#!/usr/bin/env python3
"""Writes docs/malformed.md: the list of malformed files, and the test of each.

    scripts/malformed.py            write the page
    scripts/malformed.py --check    fail if an item has no test, a test has no item, or the page is out of date

The items are docs/coverage/malformed.tsv. An item's test is the row of its id in the tables of tests/io/malformed_*.cpp, or
what its last column names: tests of GoogleTest, names of fxcpp_add_ctest, or a folder.
"""

import re
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "coverage" / "malformed.tsv"
PAGE = ROOT / "docs" / "malformed.md"
ROW = re.compile(r'^\s*\{"([ZAJTGX]\d\d[a-z]?)",', re.M)
HEAD = """# Malformed files

<!-- Written by scripts/malformed.py; edit docs/coverage/malformed.tsv or the tests instead. -->

What happens to files that somebody broke, on purpose or not: {items} kinds of damage. Those of the container, its records, JSON,
tensors and graphs are one fault each in a sound file (`tests/io/malformed_*.cpp`): a refusal has its error code and names the place,
what loads gives the sound file's results, nothing takes more than 1 s of processor time (some large ones 3 s) or more memory than
the file, 64 MB and 1 kB for each node, and no other file is made. [SECURITY.md](../SECURITY.md) says what is promised.
"""


def rows_of_tables():
    """id -> file, of the tables of damage."""
    found = {}
    for path in sorted((ROOT / "tests" / "io").glob("malformed_*.cpp")):
        for match in ROW.finditer(path.read_text(encoding="utf-8")):
            if match[1] in found:
                raise SystemExit(f"{path.name}: a second row {match[1]}")
            found[match[1]] = path.name
    return found


def page(items, titles, tables):
    out = [HEAD.format(items=sum(not item[0].startswith("goal") for item in items))]
    group = None
    for name, damage, wanted, tests in items:
        if name[0] != group:
            group = name[0]
            out += [f"## {titles[group]}", "", "| item | damage | what happens | test |", "| --- | --- | --- | --- |"]
        shown = ", ".join(f"`{test.strip()}`" for test in tests.split(",")) if tests else f"`{tables[name]}`"
        out.append(f"| {name} | {coverage.cell(damage)} | {coverage.cell(wanted)} | {shown} |")
        following = items[items.index((name, damage, wanted, tests)) + 1:]
        if following and following[0][0][0] != group:
            out.append("")
    return "\n".join(out) + "\n"


def main():
    rows, titles = coverage.read_rows(TABLE)
    tables = rows_of_tables()
    names = {name for name, _ in coverage.tests()}
    problems = [f"{file}: the row {name} is not in {TABLE.name}" for name, file in tables.items()
                if name not in {row[0] for row in rows}]
    for name, _, _, tests in rows:
        if not tests and name not in tables:
            problems.append(f"{TABLE.name}: no test has the row {name}")
        for test in filter(None, (part.strip() for part in tests.split(","))):
            if test not in names and not (ROOT / test.split()[0]).is_dir():
                problems.append(f"{TABLE.name}: {name} names {test}, which is no test")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    text = page(rows, titles, tables)
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/malformed.md is out of date; run scripts/malformed.py", file=sys.stderr)
        return 1
    print(f"malformed files: {len(rows)} items, each with its test")
    return 0


if __name__ == "__main__":
    sys.exit(main())
