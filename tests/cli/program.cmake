# Runs the built programs from test scripts. The caller sets SLUICE (the program's path) and WORK_DIR (a folder of its own, emptied here),
# and FOREIGN_MEMORY: under sanitizers and emulators a process is large whatever it does, so budgets then bound the library alone.
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(ENV{SLUICE_PROFILE} none)  # what a developer once measured is no part of a test
if(FOREIGN_MEMORY)
  set(SCOPE --scope library)
else()
  set(SCOPE)
endif()

# sluice(STATUS ARGUMENT...): runs the program, checks its exit status, leaves its texts in `out` and `err`.
function(sluice expected_status)
  execute_process(COMMAND ${SLUICE} ${ARGN} WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT status STREQUAL expected_status)
    message(FATAL_ERROR "sluice ${ARGN}\nexit status ${status}, expected ${expected_status}\nstdout: ${out}\nstderr: ${err}")
  endif()
  if(NOT expected_status STREQUAL 0 AND NOT err MATCHES "^sluice(-convert|-emit|-detect)?: ")
    message(FATAL_ERROR "sluice ${ARGN}\nsays on stderr: ${err}")
  endif()
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
endfunction()

# The value of a key path in the JSON text `out`.
function(json result)
  string(JSON value GET "${out}" ${ARGN})
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

function(expect_match text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in: ${text}")
  endif()
endfunction()

function(expect_same_bits a b)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${WORK_DIR}/${a} ${WORK_DIR}/${b} RESULT_VARIABLE differ)
  if(differ)
    message(FATAL_ERROR "${a} and ${b} differ")
  endif()
endfunction()

# expect_near(VALUE WANTED TOLERANCE) on decimal numbers.
function(expect_near value wanted tolerance)
  execute_process(COMMAND awk -v a=${value} -v b=${wanted} -v t=${tolerance} "BEGIN { d = a - b; exit !(d <= t && -d <= t) }" RESULT_VARIABLE far)
  if(far)
    message(FATAL_ERROR "${value} is not within ${tolerance} of ${wanted}")
  endif()
endfunction()

# The peak that a run reported in `out` lies within its budget.
function(expect_within_budget)
  if(FOREIGN_MEMORY)
    return()
  endif()
  json(peak peak_rss_bytes)
  json(budget budget_bytes)
  if(peak GREATER budget)
    message(FATAL_ERROR "peak ${peak} exceeds the budget ${budget}")
  endif()
endfunction()
