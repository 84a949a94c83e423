#!/bin/bash
# Configures the preset $1 if that has not been done, and builds the target $3 with $2 jobs.
# The target `configure` stops after configuring. One build at a time: a lock keeps others waiting.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1 jobs=$2 target=$3
mkdir -p build
exec 9>build/.lock
flock 9

if [[ ! -e build/$preset/build.ninja ]]; then
  cmake --preset "$preset" 9>&-
fi
[[ $target == configure ]] && exit 0
start=$SECONDS
cmake --build "build/$preset" --target "$target" -j "$jobs" 9>&-
if ((SECONDS - start >= 60)); then
  scripts/slowest_files.py "build/$preset"
fi
