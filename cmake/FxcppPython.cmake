# Sets FXCPP_PYTHON_REF to a Python that can import torch, the reference of some tests, or to "".
# Order: FXCPP_PYTHON (variable, environment), python3, .deps/pyref (made by `make python-ref`).

function(fxcpp_find_python_ref)
  set(candidates "")
  if(FXCPP_PYTHON)
    list(APPEND candidates "${FXCPP_PYTHON}")
  elseif(DEFINED ENV{FXCPP_PYTHON} AND NOT "$ENV{FXCPP_PYTHON}" STREQUAL "")
    list(APPEND candidates "$ENV{FXCPP_PYTHON}")
  else()
    find_program(python3 python3 NO_CACHE)
    list(APPEND candidates "${python3}" "${FXCPP_DEPS_DIR}/pyref/bin/python3")
  endif()
  foreach(candidate IN LISTS candidates)
    # Located, not imported: sympy and numpy tell a complete torch from one that was installed to link against.
    execute_process(
      COMMAND "${candidate}" -c "import importlib.util as u, sys
sys.exit(0 if all(u.find_spec(m) for m in ('torch', 'sympy', 'numpy')) else 1)"
      RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
    if(rc EQUAL 0)
      set(FXCPP_PYTHON_REF "${candidate}" PARENT_SCOPE)
      message(STATUS "Python reference: ${candidate}")
      return()
    endif()
  endforeach()
  set(FXCPP_PYTHON_REF "" PARENT_SCOPE)
  message(STATUS "Python reference: none has torch and numpy; tests that compare with it are left out "
                 "(`make python-ref` makes one)")
endfunction()

fxcpp_find_python_ref()
