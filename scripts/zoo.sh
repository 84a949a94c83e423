#!/bin/bash
# zoo.sh BUILD_FOLDER: what `make test-zoo` does. Exports the programs into BUILD_FOLDER/zoo (those that are there already stay;
# remove the folder to make them again), runs them, and writes docs/zoo.md.
# The libraries of models are in .deps/zoo (scripts/setup.sh zoo); models of libraries that are not there are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(scripts/setup.sh which-python)
export PYTHONPATH=$PWD/.deps/zoo
zoo=$1/zoo
[[ -e $zoo/manifest.json ]] || "$python" scripts/export_zoo.py "$zoo"
"$1/bin/zoo_report" "$zoo"
"$python" scripts/zoo_table.py "$zoo"
