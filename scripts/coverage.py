#!/usr/bin/env python3
"""Writes docs/coverage/*.md: which test checks which requirement, found by the names of the tests.

    scripts/coverage.py            write the pages
    scripts/coverage.py --check    fail if a test names an unknown row, or if a row that the checked-in page shows
                                   as tested has lost its tests
    scripts/coverage.py --open T12 print the rows of a theme or section that no test names
    scripts/coverage.py --self-test

A test names a row when the row's id, with `_` for `-` or without it, is a part of its name:
`TEST(Print, S3_46_S3_47_direct_building)`, `TEST(Matcher, R034_SimplePattern)`. Tests are GoogleTest's TEST macros
in tests/**/*.cpp, functions test_* in tests/**/*.py, and the names given to fxcpp_add_ctest.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "coverage"

# Ids of rows of the five articles and of corrections, of the inventory, and of its golden vectors.
ID = re.compile(r"(?<![A-Za-z0-9])(?:(S[0-4]|W)_?(\d{2,3})|([NGTMIPXFREZQ])_?(\d\d\d)|(A)_([1-6]))(?![0-9])")
CPP_TEST = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
PY_TEST = re.compile(r"^\s*def (test_\w+)", re.M)
CTEST = re.compile(r"\bfxcpp_add_ctest\(\s*(\w+)")


def tests():
    """(name, file) of every test, in the order of files."""
    folder = ROOT / "tests"
    for path in sorted(p for p in folder.rglob("*") if p.suffix in (".cpp", ".py") or p.name == "CMakeLists.txt"):
        text = path.read_text(encoding="utf-8", errors="replace")
        file = path.relative_to(ROOT).as_posix()
        if path.suffix == ".cpp":
            yield from ((f"{m[1]}.{m[2]}", file) for m in CPP_TEST.finditer(text))
        elif path.suffix == ".py":
            yield from ((m[1], file) for m in PY_TEST.finditer(text))
        else:
            yield from ((m[1], file) for m in CTEST.finditer(text))


def ids_in(name):
    for match in ID.finditer(name):
        yield "-".join(part for part in match.groups() if part)


def read_rows(path):
    """The lines of a table as tuples, and what its head says of the themes."""
    rows, themes = [], {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        if line.startswith("#"):
            if len(cells) == 2:
                themes[cells[0][1:]] = cells[1]
        else:
            rows.append(tuple(cells) + ("",) * (4 - len(cells)))
    return rows, themes


def covered_in(page):
    """Ids that a written page shows with a test."""
    if not page.exists():
        return set()
    found = set()
    for line in page.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| ([A-Z]\d?-\d+) \|.*\| `", line)
        if match:
            found.add(match[1])
    return found


def cell(text):
    """Text for a cell of a Markdown table."""
    return re.sub(r"([|*_<>\[\]\\])", r"\\\1", text)


def tests_cell(found):
    if not found:
        return "open"
    shown = [f"`{name}`" for name, _ in found[:3]]
    if len(found) > 3:
        shown.append(f"and {len(found) - 3} more")
    return ", ".join(shown)


def count_line(rows, by_id):
    done = sum(1 for row in rows if by_id.get(row[0]))
    return f"{done} of {len(rows)} rows are named by a test."


def rows_page(rows, themes, by_id):
    requirements = [row for row in rows if row[1] != "W"]
    corrections = [row for row in rows if row[1] == "W"]
    out = [
        "# Requirements and their tests",
        "",
        "<!-- Written by scripts/coverage.py; edit docs/coverage/rows.tsv or the names of tests instead. -->",
        "",
        f"The {len(requirements)} things that the library has to do, gathered from five articles about torch.fx (S0 to"
        " S4), and the tests that check them. A row is open until a test names it; a named row is as good as its test,"
        " so read the test. Rows with a W number were corrected to what torch.fx really does.",
        "",
        count_line(requirements, by_id),
        "",
        "| theme | rows | tested | open |",
        "| --- | ---: | ---: | ---: |",
    ]
    for theme, title in themes.items():
        mine = [row for row in requirements if row[1] == theme]
        done = sum(1 for row in mine if by_id.get(row[0]))
        out.append(f"| {theme} {cell(title)} | {len(mine)} | {done} | {len(mine) - done} |")
    for theme, title in themes.items():
        out += ["", f"## {theme} {title}", "", "| row | what has to hold | tests |", "| --- | --- | --- |"]
        for row in requirements:
            if row[1] == theme:
                note = f" ({row[3]})" if row[3] else ""
                out.append(f"| {row[0]} | {cell(row[2])}{note} | {tests_cell(by_id.get(row[0]))} |")
    out += ["", "## Corrections", "", "What the articles say and torch.fx does not do. The right-hand side was built.", ""]
    out += ["| row | torch.fx | tests |", "| --- | --- | --- |"]
    out += [f"| {row[0]} | {cell(row[2])} | {tests_cell(by_id.get(row[0]))} |" for row in corrections]
    return "\n".join(out) + "\n"


def inventory_page(rows, by_id):
    portable = [row for row in rows if row[2] != "N"]
    out = [
        "# torch.fx and our tests",
        "",
        "<!-- Written by scripts/coverage.py; edit docs/coverage/torch_fx.tsv or the names of tests instead. -->",
        "",
        "An inventory of torch.fx 2.15, its features (sections 1 to 5), its own test suite (section 6), golden vectors"
        " (A) and oddities (C), and the tests here that name a row. Y: taken over as it is; A: the same idea in C++"
        f" form. {len(rows) - len(portable)} further rows are Python only and left out.",
        "",
        count_line(portable, by_id) + " Many features are tested under the name of what they do, without a row's id:"
        " open means that no test claims the row.",
    ]
    sections = list(dict.fromkeys(row[1] for row in portable))
    out += ["", "| section | rows | tested | open |", "| --- | ---: | ---: | ---: |"]
    for section in sections:
        mine = [row for row in portable if row[1] == section]
        done = sum(1 for row in mine if by_id.get(row[0]))
        out.append(f"| {cell(section)} | {len(mine)} | {done} | {len(mine) - done} |")
    for section in sections:
        out += ["", f"## {section}", "", "| row | | what it is | tests |", "| --- | --- | --- | --- |"]
        for row in portable:
            if row[1] == section:
                out.append(f"| {row[0]} | {row[2]} | {cell(row[3])} | {tests_cell(by_id.get(row[0]))} |")
    return "\n".join(out) + "\n"


def self_test():
    """What is a row's id in the name of a test, and what is not; what a page shows as tested."""
    expected = {
        "Print.S3_46_S3_47_W_39_direct_building": ["S3-46", "S3-47", "W-39"],
        "CallModule.S4_109_sections": ["S4-109"],
        "Matcher.R034_SimplePattern": ["R-034"],
        "Print.A_5_G_072_N_046_str_of_a_graph": ["A-5", "G-072", "N-046"],
        "test_S0_12_missing_input": ["S0-12"],
        "Lint.F20_small_graphs": [],
        "Run.resnet_101_and_R2D2": [],
        "Names.S1_5_is_no_row": [],
    }
    for name, ids in expected.items():
        assert list(ids_in(name)) == ids, (name, list(ids_in(name)))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        rows = [("S0-01", "T01", "a | b", ""), ("S0-02", "T01", "c", "W-01"), ("W-01", "W", "d", "")]
        page.write_text(rows_page(rows, {"T01": "one"}, {"S0-02": [("Suite.S0_02_x", "file")]}), encoding="utf-8")
        assert covered_in(page) == {"S0-02"}, covered_in(page)
        assert "1 of 2 rows" in page.read_text(encoding="utf-8")
    print("coverage: self test passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--open", metavar="THEME")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return 0

    rows, themes = read_rows(FOLDER / "rows.tsv")
    inventory, _ = read_rows(FOLDER / "torch_fx.tsv")
    known = {row[0] for row in rows + inventory}
    by_id, problems = {}, []
    for name, file in tests():
        for row in dict.fromkeys(ids_in(name)):
            if row in known:
                by_id.setdefault(row, []).append((name, file))
            else:
                problems.append(f"{file}: {name} names {row}, which is in no table of docs/coverage")

    if options.open:
        for row in rows + inventory:
            if options.open in row[1] and not by_id.get(row[0]) and row[2] != "N":
                print("\t".join(row))
        return 0

    pages = {
        FOLDER / "rows.md": rows_page(rows, themes, by_id),
        FOLDER / "torch_fx.md": inventory_page(inventory, by_id),
    }
    if not options.check:
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
    for path, text in pages.items():
        lost = covered_in(path) - set(by_id)
        problems += [f"{path.relative_to(ROOT)}: no test names {row} any more" for row in sorted(lost)]
        if not problems and options.check and path.read_text(encoding="utf-8") != text:
            print(f"note: {path.relative_to(ROOT)} is out of date; run scripts/coverage.py", file=sys.stderr)
    for problem in problems:
        print(problem, file=sys.stderr)
    requirements = [row for row in rows if row[1] != "W"]
    print("requirements: " + count_line(requirements, by_id))
    print("torch.fx: " + count_line([row for row in inventory if row[2] != "N"], by_id))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
