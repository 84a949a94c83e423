#!/bin/bash
# reaches_no_unpickler.sh LIBRARY: the library refers to nothing of LibTorch that opens pickles or TorchScript, and to nothing of
# the system that starts programs or opens connections.
set -euo pipefail
symbols=$(nm -D --undefined-only "$1" | c++filt)
[[ $symbols == *at::* ]] || { echo "$1 refers to nothing of LibTorch: is it the library?"; exit 1; }
found=$(grep -E 'torch::jit::(load|_load|import|pickle|unpickle)|Unpickler|PyTorchStreamReader|\<(execve?|execvp|posix_spawnp?|popen|system|connect|socket)(@|$)' <<<"$symbols" || true)
[[ -z $found ]] || { echo "$found"; exit 1; }
echo "$(wc -l <<<"$symbols") symbols, none of them"
