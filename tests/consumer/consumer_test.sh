#!/bin/bash
# Installs fxcpp from $FXCPP_BUILD_DIR into a temporary prefix, moves that prefix, and builds and runs the project
# beside this file against it: first with find_package, then, where pkg-config is there, with its flags.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$FXCPP_BUILD_DIR" --prefix "$work/first" >"$work/log" || { cat "$work/log" && exit 1; }
mv "$work/first" "$work/prefix"

if grep -rn -e "$FXCPP_TORCH_ROOT" -e "$FXCPP_BUILD_DIR" "$work/prefix/lib/cmake" "$work/prefix/lib/pkgconfig"; then
  echo "the installed package names absolute paths of the build" >&2
  exit 1
fi

cmake -S "$here/project" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DFXCPP_TORCH_ROOT="$FXCPP_TORCH_ROOT"
cmake --build "$work/build"
"$work/build/consumer"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
  flags=$(pkg-config --define-variable=torch_root="$FXCPP_TORCH_ROOT" --cflags --libs fxcpp)
  nvidia=$(dirname "$FXCPP_TORCH_ROOT")/nvidia/cu13/lib
  # shellcheck disable=SC2086 # the flags are several words
  "${CXX:-c++}" "$here/project/consumer.cpp" $flags -Wl,-rpath-link,"$nvidia" -o "$work/by_pkg_config"
  "$work/by_pkg_config"

  # No header of the package gives a warning. What reads files and makes machine code needs the libraries for that.
  (cd "$work/prefix/include" && echo fx/fx.h && find fx -name '*.h' -not -path 'fx/io/*' -not -path 'fx/compile/*' |
    sort) | sed 's/.*/#include <&>/' >"$work/headers.cpp"
  # shellcheck disable=SC2086
  "${CXX:-c++}" -fsyntax-only -Wall -Wextra -Werror -Wno-unused-parameter -I"$work/prefix/include" \
    ${flags//-I/-isystem } "$work/headers.cpp"
fi
