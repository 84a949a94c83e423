#!/bin/bash
# opens_nothing_else.sh FXCPP FILE...: opening, printing and transforming a file starts no program, opens no connection, and
# opens, makes and removes no other file once it has opened that one; nor does any of its broken copies: cut, and with bytes
# changed. Needs strace; without it, it says so and fails.
set -uo pipefail
tool=$1
shift
command -v strace >/dev/null || { echo "strace is not installed" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
files=0 bad=0

# check FILE VERB...
check() {
  local file=$1 base found
  shift
  base=$(basename "$file")
  strace -f -qq -o "$log" \
    -e trace=execve,connect,socket,open,openat,creat,unlink,unlinkat,rename,renameat2,link,symlink,mkdir \
    "$tool" "$@" "$file" >/dev/null 2>&1
  if ! grep -q "$base.*= [0-9]" "$log"; then
    echo "$file: was not opened"
    bad=1
  fi
  # What LibTorch asks the system about itself while it starts is no file of anybody.
  found=$(awk -v base="$base" '
    /execve\(/ { if (++programs > 1) print; next }
    /connect\(|socket\(/ { print; next }
    index($0, base) { seen = 1; if (/O_WRONLY|O_RDWR|O_CREAT/ || !/open/) print; next }
    seen' "$log" | grep -v 'ENOENT\|"/\(proc\|sys\)/')
  if [[ -n $found ]]; then
    echo "$file, $*:"
    echo "$found" | head -5
    bad=1
  fi
}

for file in "$@"; do
  size=$(stat -c %s "$file")
  copies=("$file")
  head -c $((size / 2)) "$file" >"$folder/cut.pt2"
  copies+=("$folder/cut.pt2")
  for part in 1 3 5 7; do
    copy=$folder/changed$part.pt2
    cp "$file" "$copy"
    printf '\x5a' | dd of="$copy" bs=1 seek=$((size * part / 8)) conv=notrunc status=none
    copies+=("$copy")
  done
  for copy in "${copies[@]}"; do
    check "$copy" info
    check "$copy" graph --format fx --after dce,cse
    files=$((files + 1))
  done
done
((bad)) || echo "$files files, and nothing else was opened"
exit $bad
