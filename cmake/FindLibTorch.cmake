# FindLibTorch: LibTorch for CPU use, from a wheel's torch folder or an unpacked LibTorch archive.
#
# Searched in this order, the first usable one wins:
#   1. FXCPP_TORCH_ROOT (CMake variable, then environment): must be usable, else an error
#   2. each DIR of CMAKE_PREFIX_PATH: DIR and DIR/torch
#   3. the Python named by FXCPP_PYTHON (variable, environment), else python3; torch is located, not imported
#   4. the project's own .deps/libtorch and .deps/pyref, made by `make setup` and `make python-ref`
#
# A folder is usable if it has include/ATen/ATen.h and lib/libtorch_cpu.so.
#
# Result: LibTorch_FOUND, LibTorch_VERSION ("2.15.0"), LibTorch_FULL_VERSION ("2.15.0+cu132"),
# LibTorch_PATH, LibTorch_RUNTIME_DIRS (all folders the loader needs) and the target LibTorch::LibTorch.
#
# The target links libtorch_cpu.so and libc10.so and nothing else: TorchConfig.cmake of a CUDA wheel wants
# a CUDA toolkit, which CPU use does not need. libtorch_cpu.so itself may need libcudart and libcupti; the
# folders that hold them are added to the run path.

set(_libtorch_min 2.9)
set(_libtorch_max 2.15)

# Sets ${out} to the version text of the LibTorch in ${root}, or to "".
function(_libtorch_read_version root out)
  set(version "")
  if(EXISTS "${root}/version.py")
    file(STRINGS "${root}/version.py" line REGEX "^__version__ *=" LIMIT_COUNT 1)
    if(line MATCHES "['\"]([^'\"]+)['\"]")
      set(version "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(NOT version AND EXISTS "${root}/build-version")
    file(STRINGS "${root}/build-version" version LIMIT_COUNT 1)
  endif()
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h torch/version.h)
    if(NOT version AND EXISTS "${root}/include/${header}")
      file(STRINGS "${root}/include/${header}" line REGEX "define TORCH_VERSION " LIMIT_COUNT 1)
      if(line MATCHES "\"([^\"]+)\"")
        set(version "${CMAKE_MATCH_1}")
      endif()
    endif()
  endforeach()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Sets ${out} to the reason why ${root} cannot be used, or to "".
function(_libtorch_check root out)
  set(reason "")
  if(NOT EXISTS "${root}/include/ATen/ATen.h" OR NOT EXISTS "${root}/lib/libtorch_cpu.so")
    set(reason "it has no include/ATen/ATen.h or no lib/libtorch_cpu.so")
  else()
    _libtorch_read_version("${root}" version)
    string(REGEX MATCH "^[0-9]+\\.[0-9]+(\\.[0-9]+)?" number "${version}")
    if(NOT number)
      set(reason "its version cannot be read from version.py, build-version or torch/headeronly/version.h")
    elseif(number VERSION_LESS _libtorch_min)
      set(reason "it is LibTorch ${version}, and fxcpp needs ${_libtorch_min} or later")
    else()
      file(STRINGS "${root}/lib/libc10.so" abi REGEX "__cxx11" LIMIT_COUNT 1)
      if(NOT abi)
        set(reason "it was built with the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0)")
      endif()
    endif()
  endif()
  set(${out} "${reason}" PARENT_SCOPE)
endfunction()

# Sets ${out} to the torch folder that the interpreter ${python} would import, or to "".
function(_libtorch_from_python python out)
  execute_process(
    COMMAND "${python}" -c "import importlib.util as u
s = u.find_spec('torch')
print(list(s.submodule_search_locations)[0] if s and s.submodule_search_locations else '')"
    OUTPUT_VARIABLE root ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    set(root "")
  endif()
  set(${out} "${root}" PARENT_SCOPE)
endfunction()

set(LibTorch_PATH "")
set(_libtorch_notes "")

set(_libtorch_explicit "${FXCPP_TORCH_ROOT}")
if(NOT _libtorch_explicit)
  set(_libtorch_explicit "$ENV{FXCPP_TORCH_ROOT}")
endif()

if(_libtorch_explicit)
  get_filename_component(_libtorch_explicit "${_libtorch_explicit}" ABSOLUTE)
  _libtorch_check("${_libtorch_explicit}" _libtorch_reason)
  if(_libtorch_reason)
    set(_libtorch_notes "\n  FXCPP_TORCH_ROOT=${_libtorch_explicit} cannot be used: ${_libtorch_reason}.")
  else()
    set(LibTorch_PATH "${_libtorch_explicit}")
  endif()
else()
  set(_libtorch_candidates "")
  foreach(_libtorch_dir IN LISTS CMAKE_PREFIX_PATH)
    list(APPEND _libtorch_candidates "${_libtorch_dir}" "${_libtorch_dir}/torch")
  endforeach()
  string(REPLACE ":" ";" _libtorch_env "$ENV{CMAKE_PREFIX_PATH}")
  foreach(_libtorch_dir IN LISTS _libtorch_env)
    list(APPEND _libtorch_candidates "${_libtorch_dir}" "${_libtorch_dir}/torch")
  endforeach()

  set(_libtorch_python "${FXCPP_PYTHON}")
  if(NOT _libtorch_python)
    set(_libtorch_python "$ENV{FXCPP_PYTHON}")
  endif()
  if(NOT _libtorch_python)
    find_program(_libtorch_python3 python3 NO_CACHE)
    set(_libtorch_python "${_libtorch_python3}")
  endif()
  if(_libtorch_python)
    _libtorch_from_python("${_libtorch_python}" _libtorch_dir)
    if(_libtorch_dir)
      list(APPEND _libtorch_candidates "${_libtorch_dir}")
    endif()
  endif()

  if(FXCPP_DEPS_DIR)
    file(GLOB _libtorch_dirs "${FXCPP_DEPS_DIR}/libtorch/lib/python3*/site-packages/torch"
         "${FXCPP_DEPS_DIR}/pyref/lib/python3*/site-packages/torch")
    list(APPEND _libtorch_candidates ${_libtorch_dirs})
  endif()

  foreach(_libtorch_dir IN LISTS _libtorch_candidates)
    if(NOT LibTorch_PATH AND EXISTS "${_libtorch_dir}/lib/libtorch_cpu.so")
      _libtorch_check("${_libtorch_dir}" _libtorch_reason)
      if(_libtorch_reason)
        string(APPEND _libtorch_notes "\n  Skipped ${_libtorch_dir}: ${_libtorch_reason}.")
      else()
        set(LibTorch_PATH "${_libtorch_dir}")
      endif()
    endif()
  endforeach()
endif()

if(LibTorch_PATH)
  _libtorch_read_version("${LibTorch_PATH}" LibTorch_FULL_VERSION)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+(\\.[0-9]+)?" LibTorch_VERSION "${LibTorch_FULL_VERSION}")
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _libtorch_minor "${LibTorch_VERSION}")

  # The wheels that bring libcudart and libcupti lie beside torch: site-packages/nvidia/**/lib.
  set(LibTorch_RUNTIME_DIRS "${LibTorch_PATH}/lib")
  get_filename_component(_libtorch_site "${LibTorch_PATH}" DIRECTORY)
  file(GLOB _libtorch_cuda
       "${_libtorch_site}/nvidia/*/lib/libcudart.so*" "${_libtorch_site}/nvidia/*/*/lib/libcudart.so*"
       "${_libtorch_site}/nvidia/*/lib/libcupti.so*" "${_libtorch_site}/nvidia/*/*/lib/libcupti.so*")
  foreach(_libtorch_file IN LISTS _libtorch_cuda)
    get_filename_component(_libtorch_dir "${_libtorch_file}" DIRECTORY)
    list(APPEND LibTorch_RUNTIME_DIRS "${_libtorch_dir}")
  endforeach()
  list(REMOVE_DUPLICATES LibTorch_RUNTIME_DIRS)

  if(NOT TARGET LibTorch::LibTorch)
    set(_libtorch_link_options "")
    foreach(_libtorch_dir IN LISTS LibTorch_RUNTIME_DIRS)
      list(APPEND _libtorch_link_options "LINKER:-rpath,${_libtorch_dir}"
           "LINKER:-rpath-link,${_libtorch_dir}")
    endforeach()
    add_library(LibTorch::LibTorch INTERFACE IMPORTED)
    # One item, so that CMake can neither reorder nor merge its parts. libtorch_cpu.so registers the operators
    # when it is loaded, so it must stay needed even where no symbol of it is used.
    set(_libtorch_link "-Wl,--push-state,--no-as-needed,${LibTorch_PATH}/lib/libtorch_cpu.so")
    string(APPEND _libtorch_link ",${LibTorch_PATH}/lib/libc10.so,--pop-state")
    set_target_properties(LibTorch::LibTorch PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES
        "${LibTorch_PATH}/include;${LibTorch_PATH}/include/torch/csrc/api/include"
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES
        "${LibTorch_PATH}/include;${LibTorch_PATH}/include/torch/csrc/api/include"
      INTERFACE_COMPILE_FEATURES cxx_std_20
      INTERFACE_LINK_LIBRARIES "${_libtorch_link}"
      INTERFACE_LINK_OPTIONS "${_libtorch_link_options}")
  endif()

  if(NOT LibTorch_FIND_QUIETLY)
    message(STATUS "LibTorch ${LibTorch_FULL_VERSION} at ${LibTorch_PATH}")
    if(_libtorch_minor VERSION_GREATER _libtorch_max)
      message(WARNING "LibTorch ${LibTorch_FULL_VERSION} is newer than the versions fxcpp is tested with "
                      "(${_libtorch_min} to ${_libtorch_max}). It may not compile, or behave differently. "
                      "Set FXCPP_TORCH_ROOT to choose another one.")
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
set(FPHSA_NAME_MISMATCHED TRUE)
set(_libtorch_quiet "${LibTorch_FIND_QUIETLY}")
set(LibTorch_FIND_QUIETLY TRUE)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_PATH
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE
    "no usable LibTorch was found.${_libtorch_notes}
  Run `make setup` (it fetches one into .deps/), or set FXCPP_TORCH_ROOT to a torch folder
  (the one that holds include/ and lib/libtorch_cpu.so).")
set(LibTorch_FIND_QUIETLY "${_libtorch_quiet}")
unset(FPHSA_NAME_MISMATCHED)
