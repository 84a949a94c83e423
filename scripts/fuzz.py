#!/usr/bin/env python3
"""Builds the fuzzers (preset fuzz) and runs them one after the other.

    scripts/fuzz.py [--seconds N] [--build FOLDER] [TARGET ...]

They start from fuzz/corpus, from what this finds in the repository's own files, and from what earlier runs left in
FOLDER/corpus. An input that fails stays in FOLDER/found; exit status 1 says that there is one. Needs `scripts/setup.sh fuzz`.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LEN = {"random_program": 400, "symbolic_expr": 400, "zip": 40_000}


def programs():
    """Small .pt2 archives of the repository."""
    return [path for path in sorted(ROOT.glob("tests/io/zoo/*.pt2")) if path.stat().st_size < 30_000]


def values_of(value, names):
    """What stands under any of `names` in JSON, as text."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in names and isinstance(item, str):
                yield item
            yield from values_of(item, names)
    elif isinstance(value, list):
        for item in value:
            yield from values_of(item, names)


def seeds(target):
    """Bytes to start from, of the repository's own files."""
    if target in ("npy", "safetensors"):
        yield from (path.read_bytes() for path in sorted(ROOT.glob(f"tests/io/*/*.{target}")) if path.stat().st_size < 5000)
    if target == "fx_text":
        yield from (path.read_bytes() for path in sorted(ROOT.glob("tests/text/*.fx")))
    if target == "zip":
        yield from (path.read_bytes() for path in programs())
    for path in programs() if target in ("export_program", "pt2_program", "symbolic_expr", "treespec") else ():
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith(".json") or ("config" in name and target != "export_program"):
                    continue
                text = archive.read(name)
                if target in ("export_program", "pt2_program"):
                    yield text
                else:
                    names = ("expr_str",) if target == "symbolic_expr" else ("in_spec", "out_spec", "treespec")
                    yield from (item.encode() for item in values_of(json.loads(text), names))


def run(target, build, seconds):
    corpus, start, found = (build / name / target for name in ("corpus", "seeds", "found"))
    for folder in (corpus, start, found):
        folder.mkdir(parents=True, exist_ok=True)
    for data in seeds(target):
        (start / hashlib.sha1(data).hexdigest()).write_bytes(data)
    folders = [corpus, start] + [kept for kept in [ROOT / "fuzz" / "corpus" / target] if kept.is_dir()]
    environment = dict(os.environ, OMP_NUM_THREADS="1",
                       ASAN_OPTIONS="detect_leaks=0:detect_odr_violation=0:detect_stack_use_after_return=0",
                       UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1")
    command = [build / "bin" / f"fuzz_{target}", f"-max_total_time={seconds}", f"-max_len={MAX_LEN.get(target, 20_000)}",
               "-timeout=25", "-rss_limit_mb=3000", f"-artifact_prefix={found}/", *folders]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    lines = done.stderr.splitlines()
    print(f"{target}: " + next((line.strip() for line in reversed(lines) if "DONE" in line), f"exit status {done.returncode}"))
    if done.returncode:
        print("\n".join(lines[-60:]))
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    args = parser.parse_args()
    known = sorted(path.stem for path in (ROOT / "fuzz").glob("*.cpp"))
    if unknown := sorted(set(args.targets) - set(known)):
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(known)}")
    targets = args.targets or known
    subprocess.run(["cmake", "--preset", "fuzz", "-B", args.build], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", args.build, "--target", *(f"fuzz_{name}" for name in targets)], cwd=ROOT, check=True)
    good = [run(target, args.build, args.seconds) for target in targets]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
