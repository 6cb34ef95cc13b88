# The reader that was pruned while it was trained on: how small it is, and what it still gets right, at every budget.
#
#   PROGRAM   15_measure_accuracy
#   FOLDER    examples/models
#   TIMES     so many times smaller than the whole reader's floats, at least
#   LEAST     share of characters that are right, in percent, at least
include(${CMAKE_CURRENT_LIST_DIR}/../cli/program.cmake)
set(floats 593766)  # bytes of the whole reader's weights in f32, as `convert --smaller` counts them
sluice(0 convert ${FOLDER}/reader_pruned.onnx -o pruned.sluice --dim W=32..1024:8 --code small --json)
json(stored stored_bytes)
math(EXPR least "${stored} * ${TIMES}")
if(least GREATER floats)
  message(FATAL_ERROR "${stored} bytes are stored, of ${floats} of the whole reader")
endif()
foreach(budget unlimited smallest)
  execute_process(COMMAND ${PROGRAM} reader ${WORK_DIR}/pruned.sluice ${FOLDER} --budget ${budget} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE problems)
  if(status OR NOT said MATCHES "\ncharacters +([0-9.]+) %")
    message(FATAL_ERROR "--budget ${budget}: status ${status}: ${said}${problems}")
  endif()
  if(CMAKE_MATCH_1 LESS LEAST)
    message(FATAL_ERROR "${CMAKE_MATCH_1} % of the characters are right: at least ${LEAST} were")
  endif()
  if(NOT DEFINED first_said)
    set(first_said "${said}")
    message("${stored} bytes\n${said}")
  elseif(NOT said STREQUAL first_said)
    message(FATAL_ERROR "--budget ${budget} gives other bits:\n${said}")
  endif()
endforeach()
file(REMOVE_RECURSE ${WORK_DIR})
