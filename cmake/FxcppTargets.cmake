# The few commands that the CMakeLists.txt of the folders are written in:
#   fxcpp_stage(NAME ...)    one stage of the library: an object library fx_NAME
#   fxcpp_test(NAME ...)     the tests of a stage: one GoogleTest program test_NAME
#   fxcpp_program(NAME ...)  a program that links the whole library: tool, example, benchmark
#   fxcpp_fuzzer(NAME ...)   a libFuzzer program on the whole library, preset fuzz

# Reads cmake/layers.txt: FXCPP_STAGES (lowest first), and for each stage FXCPP_BELOW_<stage>: all stages below it.
function(fxcpp_read_layers)
  set(file "${PROJECT_SOURCE_DIR}/cmake/layers.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(STRINGS "${file}" lines REGEX "^[a-z_]+:")
  set(stages "")
  foreach(line IN LISTS lines)
    string(REGEX MATCHALL "[a-z_]+" words "${line}")
    list(POP_FRONT words stage)
    set(below "")
    foreach(word IN LISTS words)
      list(APPEND below ${FXCPP_BELOW_${word}} ${word})
    endforeach()
    list(REMOVE_DUPLICATES below)
    list(APPEND stages ${stage})
    set(FXCPP_BELOW_${stage} "${below}")
    set(FXCPP_BELOW_${stage} "${below}" PARENT_SCOPE)
  endforeach()
  set(FXCPP_STAGES "${stages}" PARENT_SCOPE)
endfunction()

# Tests are compiled without optimisation, which takes half the time. Those that run long (kind tests_o1) get -O1: what
# is inline in headers exists once in a program, so that slow copies would slow down the library as well.
function(fxcpp_optimise_as target kind)
  if(kind STREQUAL "tests")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
  elseif(kind STREQUAL "tests_o1")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  endif()
endfunction()

# Makes ${target} use the precompiled header of this kind (cmake/pch/), which is compiled once for all users.
function(fxcpp_use_pch target kind)
  if(FXCPP_PCH AND NOT kind STREQUAL "none")
    target_precompile_headers(${target} REUSE_FROM fxcpp_pch_${kind})
  endif()
  fxcpp_optimise_as(${target} ${kind})
endfunction()

# fxcpp_stage(NAME [PCH light|torch|none] [SOURCES file...] [HEADERS file...] [LIBS target...] [LINK target...])
# LIBS are private: header-only libraries that only the sources of this stage use. LINK are libraries with code: they
# are linked to whatever the objects of the stage end up in, and are no part of the interface.
function(fxcpp_stage name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH" "SOURCES;HEADERS;LIBS;LINK")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fxcpp_stage(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_PCH)
    set(arg_PCH light)
  endif()
  if(NOT arg_SOURCES)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp"
         CONTENT "// The stage ${name} has no source files.\n")
    set(arg_SOURCES "${CMAKE_CURRENT_BINARY_DIR}/empty.cpp")
    set(arg_PCH none)
  endif()
  # HEADERS are documentation for the reader and for installation; CMake would take *.def for linker input.
  add_library(fx_${name} OBJECT ${arg_SOURCES})
  target_include_directories(fx_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(fx_${name} PRIVATE fxcpp_flags LibTorch::LibTorch ${arg_LIBS} ${arg_LINK})
  fxcpp_use_pch(fx_${name} ${arg_PCH})
  target_sources(fxcpp PRIVATE $<TARGET_OBJECTS:fx_${name}>)
  foreach(library IN LISTS arg_LINK)
    target_link_libraries(fxcpp PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  set_property(TARGET fx_${name} PROPERTY FXCPP_LINK "${arg_LINK}")
endfunction()

# Adds the CTest test ${name} with the environment that all tests share.
#   fxcpp_add_ctest(NAME LABELS label... COMMAND command... [TIMEOUT seconds] [ENVIRONMENT NAME=VALUE...])
function(fxcpp_add_ctest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;COMMAND;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  # CTest runs several programs beside each other: threads of OpenMP that wait must not spin on cores that others need.
  set(environment "FXCPP_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "FXCPP_TOOL=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/fxcpp"
      OMP_WAIT_POLICY=PASSIVE ${arg_ENVIRONMENT})
  if(FXCPP_PYTHON_REF)
    list(APPEND environment "FXCPP_PYTHON=${FXCPP_PYTHON_REF}")
  endif()
  if(FXCPP_SANITIZE MATCHES "address")
    # LibTorch itself leaks at exit; its arenas are not ours to check. Exceptions that come through LibTorch's frames
    # leave frames of the fake stack behind, until the search for a free one takes nearly all of the time: none is used.
    list(APPEND environment
      "ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:detect_stack_use_after_return=0")
  endif()
  if(FXCPP_SANITIZE MATCHES "thread")
    # LibTorch and OpenMP are not instrumented: what happens inside them cannot be judged. OpenMP's threads wait for each
    # other in there, so that what they share would be reported: one thread, and the tests' own threads beside it.
    list(APPEND environment "TSAN_OPTIONS=ignore_noninstrumented_modules=1" "OMP_NUM_THREADS=1")
  endif()
  if(FXCPP_SANITIZE MATCHES "undefined")
    list(APPEND environment "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
endfunction()

# fxcpp_test(STAGE [PCH tests|tests_o1|none] [SOURCES file...] [USES stage...] [LIBS target...] [SHARDS n] [TIMEOUT s])
# One program test_STAGE, one CTest label STAGE. It links the objects of the stage and of all stages below it, so a
# stage is tested without those above; USES adds further stages (with what is below them), or `all`.
# SHARDS splits it over n CTest tests. Without sources nothing is added.
function(fxcpp_test stage)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH;SHARDS;TIMEOUT" "SOURCES;USES;LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fxcpp_test(${stage}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_PCH)
    set(arg_PCH tests)
  endif()
  set(stages "")
  foreach(name IN ITEMS ${stage} LISTS arg_USES)
    if(name STREQUAL "all")
      list(APPEND stages ${FXCPP_STAGES})
    elseif(name IN_LIST FXCPP_STAGES)
      list(APPEND stages ${FXCPP_BELOW_${name}} ${name})
    endif()
  endforeach()
  if(NOT stages)
    set(stages ${FXCPP_STAGES})
  endif()
  list(REMOVE_DUPLICATES stages)

  set(target test_${stage})
  add_executable(${target} ${arg_SOURCES})
  foreach(name IN LISTS stages)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:fx_${name}>)
    get_target_property(link fx_${name} FXCPP_LINK)
    if(link)
      target_link_libraries(${target} PRIVATE ${link})
    endif()
  endforeach()
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${target} PRIVATE FXCPP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE
    fxcpp_flags LibTorch::LibTorch GTest::gmock GTest::gtest GTest::gtest_main ${arg_LIBS})
  fxcpp_use_pch(${target} ${arg_PCH})

  if(arg_SHARDS)
    math(EXPR last "${arg_SHARDS} - 1")
    foreach(shard RANGE ${last})
      fxcpp_add_ctest(${target}.${shard} LABELS ${stage} COMMAND ${target} TIMEOUT "${arg_TIMEOUT}"
        ENVIRONMENT GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${shard})
    endforeach()
  else()
    fxcpp_add_ctest(${target} LABELS ${stage} COMMAND ${target} TIMEOUT "${arg_TIMEOUT}")
  endif()
endfunction()

# fxcpp_program(NAME [PCH light|torch|tests|tests_o1|none] SOURCES file... [LIBS target...] [INSTALL])
# A program on the whole library. Without sources nothing is added.
function(fxcpp_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALL" "PCH;OUTPUT" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fxcpp_program(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  if(NOT arg_PCH)
    set(arg_PCH torch)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE fxcpp_flags fxcpp ${arg_LIBS})
  if(arg_OUTPUT)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME "${arg_OUTPUT}")
  endif()
  fxcpp_use_pch(${name} ${arg_PCH})
  if(arg_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# fxcpp_fuzzer(NAME SOURCES file... [LIBS target...])
# A libFuzzer program fuzz_NAME: its sources define LLVMFuzzerTestOneInput.
function(fxcpp_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  fxcpp_program(fuzz_${name} PCH torch SOURCES ${arg_SOURCES} LIBS ${arg_LIBS})
  if(TARGET fuzz_${name})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
