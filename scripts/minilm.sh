#!/bin/bash
# minilm.sh BUILD_FOLDER [SENTENCE...]: what `make demo-minilm` does. Exports the encoder into BUILD_FOLDER/minilm, unless it is
# there, and runs the demonstration on it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$1
shift
[[ -e $build/minilm/expected.json ]] ||
  PYTHONPATH=$PWD/.deps/zoo "$(scripts/setup.sh which-python)" scripts/export_minilm.py "$build/minilm"
"$build/bin/example_minilm" "$build/minilm" "$@"
