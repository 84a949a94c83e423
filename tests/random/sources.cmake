# The files of the library of random programs, for tests/random and fuzz.
set(FXCPP_RANDOM_SOURCES
  "${CMAKE_CURRENT_LIST_DIR}/edits.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/maker.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/minimise.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/oracles.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/outcome.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/program_text.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/rules_elementwise.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/rules_module.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/rules_reduction.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/rules_rest.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/rules_view.cpp")
