#!/bin/bash
# opinfo.sh BUILD_FOLDER [TAKE]: what `make test-opinfo` does. Exports the samples of PyTorch's operator database into
# BUILD_FOLDER/opinfo, runs them, and writes docs/opinfo.md. With TAKE it takes a fixed choice of about so many samples into
# BUILD_FOLDER/opinfo_TAKE and writes no page. Status 1 if anything is not as it should be.
# FXCPP_PYTHON: a Python with torch of the same version as the LibTorch that fxcpp is built with.
set -euo pipefail
build=$(realpath "$1")
take=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$(scripts/setup.sh which-python)
folder=$build/opinfo${take:+_$take}
rm -rf "$folder"
"$python" scripts/export_opinfo.py "$folder" ${take:+--take "$take"}
for samples in "$folder"/*.jsonl; do
  dtype=$(basename "$samples" .jsonl)
  results=$folder/$dtype.results.jsonl
  # A sample that ends the process has a line of its own, and the next one goes on.
  until "$build/bin/opinfo_report" "$folder" "$dtype"; do
    status=$?
    ((status > 128)) || exit "$status"
    echo "{\"bad\":[{\"way\":\"all\",\"form\":\"all\",\"what\":\"ends the process with status $status\"}]}" >>"$results"
    (($(wc -l <"$results") < $(wc -l <"$samples"))) || break
  done
done
"$python" scripts/opinfo_table.py "$folder" ${take:+--check}
