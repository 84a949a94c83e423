#!/usr/bin/env python3
"""Writes docs/guide/errors.md: one section for each error code, with its cause, an example and the way out.

    scripts/error_page.py          write the page; the messages in it stay
    scripts/error_page.py --check  fail if it would change

Codes and advice come from fx/base/error_codes.def, causes and examples from tests/docs/error_examples.cpp. The
messages are written by the test: `FXCPP_UPDATE_DOCS=1 build/dev/bin/test_docs --gtest_filter='ErrorPage.*'`.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guide" / "errors.md"
EXAMPLES = "tests/docs/error_examples.cpp"
CODE = re.compile(r'FX_ERROR_CODE\((\w+),\s*k(\w+),\s*(\d+),\s*"((?:[^"\\]|\\.)*)"\)')

KINDS = {
    "Graph": ("GraphError", "Building and editing a graph."),
    "Lint": ("LintError", "`Graph::lint` found a broken rule. There is a code for each rule."),
    "Parse": ("ParseError", "Reading the [text form](../text-format.md) of a graph. The error knows line and column."),
    "Trace": ("TraceError", "Capture. See [what can be traced](proxies.md#what-can-be-traced-and-what-cannot)."),
    "Run": (
        "RunError",
        "Interpreting and running. The message names the node with its inputs, the original exception is nested"
        " (`std::rethrow_if_nested`).",
    ),
    "Import": (
        "ImportError",
        "Reading and writing files. Nothing of a file has run when one of these is thrown.",
    ),
    "Pass": ("PassError", "Transformations. The module is what it was before."),
    "Compile": ("CompileError", "Backends."),
    "Usage": ("UsageError", "The [command line](../cli.md)."),
}


def causes():
    """Number to cause: the comments `// FXnnn: ...` of the examples, over several lines."""
    found, current = {}, None
    for line in (ROOT / EXAMPLES).read_text(encoding="utf-8").splitlines():
        match = re.match(r"// FX(\d+): (.*)", line)
        if match:
            current = int(match[1])
            found[current] = match[2]
        elif current is not None and line.startswith("// ") and not line.startswith("// ---"):
            found[current] += " " + line[3:]
        else:
            current = None
    return found


def thrown():
    """Names of the codes that some source uses."""
    text = ""
    for folder in ("fx", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cpp", ".h"):
                text += re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    return set(re.findall(r"\bk([A-Z]\w+)", text))


def outputs(page):
    return dict(re.findall(r"^<!-- output: (FX\d+) -->\n```text\n(.*?)^```$", page, re.M | re.S))


def build():
    sys.path.insert(0, str(ROOT / "scripts"))
    from doc_snippets import regions

    examples, why, used = regions(EXAMPLES), causes(), thrown()
    old = outputs(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
    out = [
        "# All errors",
        "",
        "<!-- Written by scripts/error_page.py. -->",
        "",
        "An error is an exception: `fx::Error`, or the class of its stage, derived from it. `error.what()` says what was"
        " found, what was wanted and what to do, and ends with a number. `error.code()` is the number (`fx::ErrorCode::kEraseWithUsers`), `error.text()`"
        " the message without advice. A failed operation leaves everything as it was. What is thrown as"
        " `fx::InternalError` is a bug of fxcpp: please report it.",
    ]
    kind = None
    for match in CODE.finditer((ROOT / "fx/base/error_codes.def").read_text(encoding="utf-8")):
        if match[1] != kind:
            kind = match[1]
            out += ["", f"## {KINDS[kind][0]}", "", KINDS[kind][1]]
        number, advice = match[3], match[4].replace('\\"', '"').replace("\\\\", "\\")
        out += ["", f"### FX{number} k{match[2]}", ""]
        if match[2] not in used:
            out += ["Reserved: this version does not throw it."]
        else:
            if int(number) not in why:
                print(f"{EXAMPLES}: no comment tells the cause of FX{number}", file=sys.stderr)
            out += textwrap.wrap(why.get(int(number), "An example is missing."), 116)
        if f"fx{number}" in examples:
            out += ["", f"<!-- code: {EXAMPLES} fx{number} -->", "```cpp", examples[f"fx{number}"] + "```", ""]
            out += [f"<!-- output: FX{number} -->", "```text", old.get(f"FX{number}", "") + "```"]
        safe = advice.replace("<", "\\<").replace("*", "\\*")
        out += ["", f"**To mend it:** {safe}."]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    page = build()
    if not check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        print("docs/guide/errors.md is out of date: run scripts/error_page.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
