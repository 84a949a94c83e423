# FXCPP_LLVM: whether kernels are compiled with LLVM; then the target fxcpp_llvm, which is LLVM's one shared library with
# its headers. Without LLVM the library builds and works, and fx::compile runs plans instead.
#   FXCPP_WITH_LLVM   AUTO (the default), ON (a build without it fails) or OFF
#   FXCPP_LLVM_ROOT   where LLVM 19 is installed
# LLVM's own package is not used: it wants a C compiler and the libraries that its static parts need.
set(FXCPP_WITH_LLVM "AUTO" CACHE STRING "compile kernels with LLVM: AUTO, ON or OFF")
set(FXCPP_LLVM_ROOT "/usr/lib/llvm-19" CACHE PATH "installation of LLVM 19 to use")
set(FXCPP_LLVM FALSE)
if(NOT FXCPP_WITH_LLVM STREQUAL "OFF")
  # The shared library carries its version in its name, so that another one cannot be taken by mistake.
  find_library(FXCPP_LLVM_LIBRARY NAMES LLVM-19 HINTS "${FXCPP_LLVM_ROOT}/lib")
  find_path(FXCPP_LLVM_INCLUDE_DIR llvm/ExecutionEngine/Orc/LLJIT.h HINTS "${FXCPP_LLVM_ROOT}/include" NO_DEFAULT_PATH)
  mark_as_advanced(FXCPP_LLVM_LIBRARY FXCPP_LLVM_INCLUDE_DIR)
  if(FXCPP_LLVM_LIBRARY AND FXCPP_LLVM_INCLUDE_DIR)
    set(FXCPP_LLVM TRUE)
    add_library(fxcpp_llvm INTERFACE)
    target_include_directories(fxcpp_llvm SYSTEM INTERFACE "${FXCPP_LLVM_INCLUDE_DIR}")
    target_link_libraries(fxcpp_llvm INTERFACE "${FXCPP_LLVM_LIBRARY}")
  elseif(FXCPP_WITH_LLVM STREQUAL "ON")
    message(FATAL_ERROR "LLVM 19 with its shared library is not there (Debian: llvm-19-dev), and FXCPP_WITH_LLVM is ON")
  else()
    message(STATUS "LLVM 19 is not there (Debian: llvm-19-dev): fx::compile will not make machine code")
  endif()
endif()
