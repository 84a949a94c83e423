#!/bin/bash
# Checks what cmake/FindLibTorch.cmake takes and what it refuses, and its words, with made-up torch folders.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(find_libtorch NONE)
list(PREPEND CMAKE_MODULE_PATH "$source_dir/cmake")
find_package(LibTorch REQUIRED)
END

# torch NAME VERSION ABI: a folder that looks like an installed torch.
torch() {
  mkdir -p "$work/$1/torch/include/ATen" "$work/$1/torch/lib"
  touch "$work/$1/torch/include/ATen/ATen.h" "$work/$1/torch/lib/libtorch_cpu.so"
  echo "__version__ = '$2'" >"$work/$1/torch/version.py"
  echo "std::__$3::basic_string" >"$work/$1/torch/lib/libc10.so"
}

# wants TEXT ARGUMENT...: configuring with the arguments must print TEXT (line breaks count as spaces).
wants() {
  local text=$1 output
  shift
  rm -rf "$work/build"
  output=$(env -u FXCPP_TORCH_ROOT -u CMAKE_PREFIX_PATH FXCPP_PYTHON=/bin/false \
    cmake -S "$work" -B "$work/build" "$@" 2>&1 | tr -s ' \n' ' ' || true)
  if [[ $output != *"$text"* ]]; then
    printf 'with %s\n  wanted: %s\n  found: %s\n' "$*" "$text" "$output"
    failures=$((failures + 1))
  fi
}

torch good 2.12.0+cpu cxx11
torch old 1.13.1 cxx11
torch new 2.17.0 cxx11
torch oldabi 2.10.0 cxx98
wants "LibTorch 2.12.0+cpu at $work/good/torch" -DFXCPP_TORCH_ROOT="$work/good/torch"
wants "LibTorch 2.12.0+cpu at $work/good/torch" -DCMAKE_PREFIX_PATH="$work/good"
wants "LibTorch 2.12.0+cpu at $work/good/torch" -DCMAKE_PREFIX_PATH="$work/old;$work/good"
wants "it is LibTorch 1.13.1, and fxcpp needs 2.9 or later" -DFXCPP_TORCH_ROOT="$work/old/torch"
wants "it is LibTorch 1.13.1, and fxcpp needs 2.9 or later" -DCMAKE_PREFIX_PATH="$work/old"
wants "LibTorch 2.17.0 is newer than the versions fxcpp is tested with" -DCMAKE_PREFIX_PATH="$work/new"
wants "it was built with the old C++ ABI" -DFXCPP_TORCH_ROOT="$work/oldabi/torch"
wants "it has no include/ATen/ATen.h or no lib/libtorch_cpu.so" -DFXCPP_TORCH_ROOT="$work/nothing"
wants "no usable LibTorch was found" -DCMAKE_PREFIX_PATH="$work/nothing"

echo "find_libtorch: $failures failures"
((failures == 0))
