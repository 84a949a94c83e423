#!/bin/bash
# Checks the format of all C++ files that git knows or would add, or with --fix formats them in place.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tool=$(command -v clang-format-19 || true)
if [[ -z $tool ]]; then
  echo "clang-format-19 is needed: scripts/setup.sh lint" >&2
  exit 2
fi
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp')
existing=()
for file in "${files[@]}"; do
  [[ -e $file ]] && existing+=("$file")
done
((${#existing[@]})) || exit 0

if [[ ${1:-} == --fix ]]; then
  printf '%s\n' "${existing[@]}" | xargs -P "$(nproc)" -n 20 "$tool" -i
else
  printf '%s\n' "${existing[@]}" | xargs -P "$(nproc)" -n 20 "$tool" --dry-run -Werror --ferror-limit=3
  echo "format: ${#existing[@]} files are right"
fi
