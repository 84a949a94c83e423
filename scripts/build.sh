#!/bin/bash
# Configures the preset $1 if that has not been done or something it looked for has changed, and builds the target
# $3 with $2 jobs. The target `configure` stops after configuring. A lock keeps other builds waiting.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1 jobs=$2 target=$3
mkdir -p "build/$preset"
exec 9>build/.lock
flock 9

# What the configuration was found with: the environment and the state of .deps.
shopt -s nullglob
complete=(.deps/*/complete)
found="${FXCPP_TORCH_ROOT:-}|${FXCPP_PYTHON:-}|${CMAKE_PREFIX_PATH:-}|${complete[*]}"
stamp=build/$preset/.found
if [[ ! -e build/$preset/build.ninja || ! -e $stamp || $(<"$stamp") != "$found" ]]; then
  cmake --preset "$preset" 9>&-
  printf '%s\n' "$found" >"$stamp"
fi
[[ $target == configure ]] && exit 0
start=$SECONDS
cmake --build "build/$preset" --target "$target" -j "$jobs" 9>&-
if ((SECONDS - start >= 60)); then
  scripts/slowest_files.py "build/$preset"
fi
