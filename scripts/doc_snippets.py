#!/usr/bin/env python3
"""Keeps the C++ in docs/guide/ and docs/passes.md equal to compiled and tested code.

    scripts/doc_snippets.py          check; fails with the places that differ
    scripts/doc_snippets.py --fix    write the code into the pages

A block

    <!-- code: examples/edit_nodes.cpp update_arg -->
    ```cpp
    ...
    ```

holds the lines of that file between `// [update_arg]` and `// [end]`, without their common indentation. Several
regions of one file may be named, separated by commas; they follow each other with a blank line in between. A C++
block that is not run says why: `<!-- not run: the file does not exist -->`. In README.md, where comments would be
in the way, each C++ block has to be made of regions of tests/docs/readme_test.cpp, which says of which.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?:^<!-- (code|not run): (.*?) -->\n)?^```cpp\n(.*?)^```$", re.M | re.S)
REGION = re.compile(r"^[ \t]*// \[([a-z0-9_]+)\]\n(.*?)^[ \t]*// \[end\]$", re.M | re.S)


def regions(path):
    """Name to code of the regions of a source file."""
    found = {}
    for match in REGION.finditer((ROOT / path).read_text(encoding="utf-8")):
        if match[1] in found:
            sys.exit(f"{path}: two regions are called {match[1]}")
        found[match[1]] = textwrap.dedent(match[2])
    return found


def check_page(page, fix, problems):
    path = ROOT / page
    text = path.read_text(encoding="utf-8")

    def place(match):
        return f"{page}:{text.count(chr(10), 0, match.start()) + 1}"

    def replace(match):
        kind, what, code = match.groups()
        if kind == "not run":
            return match[0]
        if kind is None:
            problems.append(f"{place(match)}: a C++ block without a `code:` or `not run:` line")
            return match[0]
        file, _, names = what.partition(" ")
        parts = []
        for name in (n.strip() for n in names.split(",")):
            if not (ROOT / file).exists() or name not in regions(file):
                problems.append(f"{place(match)}: {file} has no region {name}")
                return match[0]
            parts.append(regions(file)[name])
        wanted = "\n".join(parts)
        if code != wanted and not fix:
            problems.append(f"{place(match)}: differs from {what}; run scripts/doc_snippets.py --fix")
        return f"<!-- code: {what} -->\n```cpp\n{wanted}```"

    fixed = BLOCK.sub(replace, text)
    if fix and fixed != text:
        path.write_text(fixed, encoding="utf-8")


def check_readme(problems):
    """Each C++ block has to be made of the regions of a line `// README: a, b, c`, but for white space."""
    source = "tests/docs/readme_test.cpp"
    if not (ROOT / source).exists():
        return
    known = regions(source)
    allowed = set()
    for line in re.findall(r"^// README: (.*)$", (ROOT / source).read_text(encoding="utf-8"), re.M):
        allowed.add(" ".join(" ".join(known[name.strip()] for name in line.split(",")).split()))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if " ".join(match[3].split()) not in allowed:
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"README.md:{line}: {source} has no such code")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    fix = parser.parse_args().fix
    problems = []
    for page in [*sorted((ROOT / "docs" / "guide").glob("*.md")), ROOT / "docs" / "passes.md"]:
        check_page(page.relative_to(ROOT).as_posix(), fix, problems)
    check_readme(problems)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
