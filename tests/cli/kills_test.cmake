# `sluice convert` killed at any moment: what lies at the output's place is the file of before, or the whole new one, never a part; and the
# next convert works. Files that may not grow are told of, and nothing of them is left. SLUICE_KILLS says how many moments; the default is for the gate.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

set(kills 12)
if(DEFINED ENV{SLUICE_KILLS})
  set(kills $ENV{SLUICE_KILLS})
endif()

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/old.onnx --divide 32 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/new.onnx --divide 4 --seed 2 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert old.onnx -o old.sluice --quiet)
string(TIMESTAMP before "%s%f")
sluice(0 convert new.onnx -o new.sluice --quiet)
string(TIMESTAMP after "%s%f")
math(EXPR whole "${after} - ${before}")  # microseconds; it only spreads the moments, nothing is judged by it
get_filename_component(programs ${SLUICE} DIRECTORY)

set(finished 0)
foreach(kill RANGE 1 ${kills})
  configure_file(${WORK_DIR}/old.sluice ${WORK_DIR}/out.sluice COPYONLY)
  math(EXPR moment "${whole} * ${kill} / ${kills}")
  math(EXPR seconds "${moment} / 1000000")
  math(EXPR rest "1000000 + ${moment} % 1000000")
  string(SUBSTRING ${rest} 1 6 rest)
  # The time limit ends the child by SIGKILL.
  execute_process(COMMAND ${programs}/sluice-convert new.onnx -o out.sluice --quiet TIMEOUT ${seconds}.${rest} WORKING_DIRECTORY ${WORK_DIR}
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${WORK_DIR}/out.sluice ${WORK_DIR}/old.sluice RESULT_VARIABLE not_old OUTPUT_QUIET ERROR_QUIET)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${WORK_DIR}/out.sluice ${WORK_DIR}/new.sluice RESULT_VARIABLE not_new OUTPUT_QUIET ERROR_QUIET)
  if(not_old AND not_new)
    message(FATAL_ERROR "killed after ${moment} us, convert leaves a file that is neither the old nor the new one")
  endif()
  if(status EQUAL 0)
    math(EXPR finished "${finished} + 1")
    if(not_new)
      message(FATAL_ERROR "convert ended well and left the old file")
    endif()
  endif()
endforeach()
if(finished EQUAL kills)
  message(FATAL_ERROR "no convert was killed: the moments are all too late")
endif()
sluice(0 convert new.onnx -o out.sluice --quiet)
expect_same_bits(out.sluice new.sluice)

# A file that may not grow (ulimit -f) is a failed write, as on a full disk: no signal ends the program.
list(JOIN SCOPE " " scope)
foreach(words "convert new.onnx -o limited --quiet" "plan new.sluice --save limited" "plan new.sluice --svg limited" "run old.sluice ${scope} --trace limited"
              "report old.sluice ${scope} --no-run -o limited")
  execute_process(COMMAND sh -c "ulimit -c 0; ulimit -f 1; exec ${SLUICE} ${words}" WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE status
    OUTPUT_QUIET ERROR_VARIABLE err)
  if(NOT status EQUAL 5 OR NOT err MATCHES "^sluice[a-z-]*: I/O error: .*File too large" OR EXISTS ${WORK_DIR}/limited)
    message(FATAL_ERROR "sluice ${words} where no file may grow: status ${status}: ${err}")
  endif()
endforeach()
message(STATUS "${kills} moments, ${finished} of them after the end")
