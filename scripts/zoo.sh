#!/bin/bash
# zoo.sh BUILD_FOLDER [part]: what `make test-zoo` does. Exports the programs into BUILD_FOLDER/zoo (those that are there already
# stay; remove the folder to make them again), runs them, and writes docs/zoo.md. With `part`, a few of them, which need no
# further libraries, are made anew in BUILD_FOLDER/zoo_part and checked: one of the tests.
# The libraries of models are in .deps/zoo (scripts/setup.sh zoo); models of libraries that are not there are listed as missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(scripts/setup.sh which-python)
if [[ ${2:-} == part ]]; then
  zoo=$1/zoo_part
  rm -rf "$zoo"
  "$python" scripts/export_zoo.py "$zoo" --part
  "$1/bin/zoo_report" "$zoo"
  exec "$python" scripts/zoo_table.py "$zoo" --check
fi
export PYTHONPATH=$PWD/.deps/zoo
zoo=$1/zoo
[[ -e $zoo/manifest.json ]] || "$python" scripts/export_zoo.py "$zoo"
"$1/bin/zoo_report" "$zoo"
"$python" scripts/zoo_table.py "$zoo"
