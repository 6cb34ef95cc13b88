# A trained net on its held-out items: what it gets right, PyTorch's logits, and the same bits at every budget and number of threads.
#
#   PROGRAM, KIND   15_measure_accuracy and its first word
#   FOLDER          examples/models
#   OPTIONS         words for `convert`
#   BANDS           NAME LEAST MOST ...: figures that the program prints
include(${CMAKE_CURRENT_LIST_DIR}/../cli/program.cmake)
separate_arguments(OPTIONS)
separate_arguments(BANDS)
sluice(0 convert ${FOLDER}/${KIND}.onnx -o ${KIND}.sluice ${OPTIONS})

# figure(RESULT NAME): the number behind a name at a line's beginning in `said`.
function(figure result name)
  if(NOT said MATCHES "(^|\n)${name} +([0-9.e+-]+)")
    message(FATAL_ERROR "no ${name} in: ${said}")
  endif()
  set(${result} ${CMAKE_MATCH_2} PARENT_SCOPE)
endfunction()

foreach(threads 1 2)
  foreach(budget unlimited middle smallest)
    execute_process(COMMAND ${PROGRAM} ${KIND} ${WORK_DIR}/${KIND}.sluice ${FOLDER} --budget ${budget} --threads ${threads}
      RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE problems)
    if(status)
      message(FATAL_ERROR "--budget ${budget} --threads ${threads}: status ${status}: ${problems}")
    endif()
    if(NOT DEFINED first_said)
      set(first_said "${said}")
      message("${said}")
    elseif(NOT said STREQUAL first_said)
      message(FATAL_ERROR "--budget ${budget} --threads ${threads} gives other bits:\n${said}")
    endif()
  endforeach()
endforeach()

figure(items items)
figure(difference difference)
if(NOT items EQUAL 1000 OR difference GREATER 0.0001)
  message(FATAL_ERROR "1000 items and logits within 1e-4 of PyTorch's were expected")
endif()
while(BANDS)
  list(POP_FRONT BANDS name least most)
  figure(value ${name})
  if(value LESS least OR value GREATER most)
    message(FATAL_ERROR "${name} ${value} is not from ${least} to ${most}")
  endif()
endwhile()
file(REMOVE_RECURSE ${WORK_DIR})
