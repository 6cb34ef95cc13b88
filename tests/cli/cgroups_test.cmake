# Budgets that the kernel confirms: each run in a memory cgroup of its budget and 4 MiB, without swap. Skipped where cgroups may not be made.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${SOURCE_DIR}/tests/bench/in_cgroup.sh 67108864 true RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
if(status EQUAL 77)
  message(STATUS "SKIPPED: memory cgroups may not be made here")
  return()
endif()
execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 4 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice --quiet)
sluice(0 convert ${SOURCE_DIR}/examples/models/reader.onnx -o reader.sluice --dim W=256 --quiet)
execute_process(COMMAND ${SOURCE_DIR}/tests/bench/budgets.sh ${SLUICE} 4 vgg.sluice reader.sluice WORKING_DIRECTORY ${WORK_DIR}
  RESULT_VARIABLE status OUTPUT_VARIABLE table ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "a budget did not hold:\n${table}\n${errors}")
endif()
message(STATUS "\n${table}")
