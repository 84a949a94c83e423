#!/usr/bin/env python3
"""Checks the naming rules of .clang-tidy: tidy.py BUILD_DIR [-j JOBS] [FILE...].

Without files: all sources of fx/, tools/, examples/ and benchmarks/ in BUILD_DIR/compile_commands.json. What was
found right is remembered in build/tidy-cache by the hash of the file, of all headers of the project and of the
rules, and not checked again.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](fx/[^>"]+)[>"]', re.M)


def closure(path, seen):
    """Adds path and all headers of the project that it includes to seen."""
    if path in seen or not path.is_file():
        return seen
    seen.add(path)
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        closure(ROOT / name, seen)
    return seen


def digest(path):
    """The hash of all that the verdict on path depends on."""
    state = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for file in sorted(closure(path, set())):
        state.update(file.as_posix().encode() + b"\0" + file.read_bytes())
    return state.hexdigest()


def arguments_of(entry):
    """Compiler arguments that clang understands: without the precompiled header, which is g++'s."""
    words = shlex.split(entry["command"])
    kept = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-include", "-o", "-c"):
            skip = word != "-c"
        elif word.startswith(("-I", "-isystem", "-D", "-std")) or (kept and kept[-1] == "-isystem"):
            kept.append(word)
    return kept


def precompile(entry):
    """LibTorch's headers once, for all files: without that they cost ten times what the checks do."""
    header = ROOT / "cmake" / "pch" / "torch.h"
    arguments = [a for a in arguments_of(entry) if not a.startswith("-D")]
    key = hashlib.sha256(" ".join(arguments).encode() + header.read_bytes()).hexdigest()
    out = CACHE / f"{key}.pch"
    if not out.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["clang++-19", "-x", "c++-header", str(header), "-o", str(out)] + arguments, check=True, cwd=ROOT)
    return out


def local_names(path):
    """What the file defines for itself alone, roughly: names at the start of a line inside `namespace {`."""
    names = set()
    inside = False
    for line in path.read_text(errors="replace").splitlines():
        if re.match(r"namespace \{|static ", line):
            inside = True
        if inside and (found := re.match(r"(?:class|struct|enum class|enum|using) (\w+)", line) or
                       re.match(r"[A-Za-z_][\w:<>,&*\[\] ]*?[ &*](\w+)(?:\(|\[|\{| =|;)", line)):
            names.add(found[1])
        if re.match(r"\}  // namespace$", line):
            inside = False
    return names


def batches(paths, most=8):
    """Groups of files of one folder that can be one translation unit: most of the time goes to LibTorch's headers."""
    groups = []
    for path in paths:
        names = local_names(path)
        for group in groups:
            if group["folder"] == path.parent and len(group["files"]) < most and not names & group["names"]:
                group["files"].append(path)
                group["names"] |= names
                break
        else:
            groups.append({"folder": path.parent, "files": [path], "names": names})
    return [group["files"] for group in groups]


def run_tidy(source, entry, pch):
    return subprocess.run(
        ["clang-tidy-19", "--quiet", f"--header-filter={ROOT}/(fx|tools|examples|benchmarks)/.*", str(source), "--", "-x",
         "c++", "-include-pch", str(pch)] + arguments_of(entry), capture_output=True, text=True, cwd=ROOT)


def check_batch(paths, entries, pch):
    """The verdicts on the files: (path, exit code, diagnostics, seconds)."""
    start = time.time()
    if len(paths) > 1:
        unity = CACHE / f"unity_{os.getpid()}_{hashlib.sha256(str(paths).encode()).hexdigest()[:16]}.cpp"
        unity.write_text("".join(f'#include "{path}"\n' for path in paths))
        try:
            clean = run_tidy(unity, entries[paths[0]], pch).returncode == 0
        finally:
            unity.unlink()
        if clean:
            for path in paths:
                (CACHE / digest(path)).touch()
            seconds = (time.time() - start) / len(paths)
            return [(path, 0, "", seconds) for path in paths]
    # One by one where a file is at fault, or where they are no unit together after all.
    return [check(path, entries[path], pch) for path in paths]


def check(path, entry, pch):
    start = time.time()
    result = run_tidy(path, entry, pch)
    # What g++ takes and clang does not (recursive types in standard containers) is no matter of names.
    uncompiled = "[clang-diagnostic-error]" in result.stdout
    if result.returncode and uncompiled and "readability-" not in result.stdout:
        return path, 0, "", time.time() - start
    if result.returncode == 0:
        (CACHE / digest(path)).touch()
    text = "\n".join(line for line in (result.stdout + result.stderr).splitlines()
                     if not re.match(r"^\d+ warnings?|^Suppressed|^Use -header-filter", line))
    return path, result.returncode, text, time.time() - start


def print_new(text, seen):
    """Prints the diagnostics of text that are not in seen: a header's are found again in each file that includes it."""
    show = True
    for line in text.splitlines():
        if re.match(r"^\S+:\d+:\d+: (error|warning)", line):
            show = line not in seen
            seen.add(line)
        if show:
            print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("files", nargs="*")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()

    wanted = {pathlib.Path(f).resolve() for f in options.files}
    entries = {}
    for entry in json.loads((pathlib.Path(options.build) / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in (
            "fx", "tools", "examples", "benchmarks")
        if path in wanted or (not wanted and inside):
            entries[path] = entry

    failed = 0
    seen = set()
    pch = precompile(next(iter(entries.values()))) if entries else None
    unchecked = [path for path in sorted(entries) if not (CACHE / digest(path)).exists()]
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for results in pool.map(lambda paths: check_batch(paths, entries, pch), batches(unchecked)):
            for path, code, text, seconds in results:
                if code:
                    failed += 1
                    print_new(text, seen)
                print(f"tidy: {seconds:5.1f} s {'FAILED' if code else 'ok'} {path.relative_to(ROOT)}", flush=True)
    print(f"tidy: {len(entries)} files, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
