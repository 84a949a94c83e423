# Options, and the interface target fxcpp_flags: everything our own code is compiled and linked with.

option(FXCPP_TESTS "build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FXCPP_TOOLS "build the fxcpp command line" ${PROJECT_IS_TOP_LEVEL})
option(FXCPP_BENCHMARKS "build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(FXCPP_EXAMPLES "build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FXCPP_PCH "use precompiled headers" ON)
option(FXCPP_WERROR "treat warnings in fxcpp's own code as errors" OFF)
option(FXCPP_FUZZ "build the libFuzzer targets (needs clang)" OFF)
option(FXCPP_COVERAGE "instrument for gcov" OFF)
set(FXCPP_SANITIZE "" CACHE STRING "list for -fsanitize=, for example address,undefined")
set(FXCPP_TORCH_ROOT "" CACHE PATH "LibTorch to use; empty: searched, see cmake/FindLibTorch.cmake")
set(FXCPP_PYTHON "" CACHE FILEPATH "Python with torch, reference of some tests; empty: searched")
set(FXCPP_DEPS_DIR "${PROJECT_SOURCE_DIR}/.deps" CACHE PATH "where `make setup` puts what it fetches")
mark_as_advanced(FXCPP_DEPS_DIR)

# ccache: the sloppiness settings let it work with precompiled headers.
find_program(FXCPP_CCACHE ccache)
mark_as_advanced(FXCPP_CCACHE)
if(FXCPP_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "${FXCPP_CCACHE}")
endif()

set(warnings_as_errors "")
if(FXCPP_WERROR)
  # What g++ derives from its flow analysis has false alarms, above all in inlined code of LibTorch: warnings only.
  set(warnings_as_errors -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND warnings_as_errors -Wno-error=maybe-uninitialized -Wno-error=array-bounds -Wno-error=free-nonheap-object
      -Wno-error=stringop-overflow -Wno-error=stringop-overread)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # libstdc++'s std::stable_sort calls a function that it deprecates, and clang says so where a template of ours is.
    list(APPEND warnings_as_errors -Wno-error=deprecated-declarations)
  endif()
endif()

add_library(fxcpp_flags INTERFACE)
target_compile_features(fxcpp_flags INTERFACE cxx_std_20)
target_compile_options(fxcpp_flags INTERFACE
  -fPIC -Wall -Wextra -Wpedantic -Wno-unused-parameter -Wno-missing-field-initializers -Wnon-virtual-dtor
  -Woverloaded-virtual
  $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
  "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
  ${warnings_as_errors})

# The fastest linker that is there: mold, then lld, else the default.
find_program(FXCPP_MOLD mold)
find_program(FXCPP_LLD NAMES ld.lld)
mark_as_advanced(FXCPP_MOLD FXCPP_LLD)
if(FXCPP_MOLD)
  target_link_options(fxcpp_flags INTERFACE -fuse-ld=mold)
elseif(FXCPP_LLD)
  target_link_options(fxcpp_flags INTERFACE -fuse-ld=lld)
endif()

if(FXCPP_SANITIZE)
  target_compile_options(fxcpp_flags INTERFACE
    -fsanitize=${FXCPP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize=vptr)
  target_link_options(fxcpp_flags INTERFACE -fsanitize=${FXCPP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Undefined behaviour is looked for in this code, not in the functions of LibTorch's and the compiler's headers: a
    # third less to compile and to run.
    target_compile_options(fxcpp_flags INTERFACE
      "-fsanitize-ignorelist=${CMAKE_CURRENT_LIST_DIR}/sanitizer_ignorelist.txt")
  endif()
endif()
if(FXCPP_COVERAGE)
  target_compile_options(fxcpp_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(fxcpp_flags INTERFACE --coverage)
endif()
if(FXCPP_FUZZ)
  target_compile_options(fxcpp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
