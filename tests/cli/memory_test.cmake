# Memory that runs out under the programs: each says so and leaves with its status, wherever that happens.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 64 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice)
get_filename_component(programs ${SLUICE} DIRECTORY)
function(limits)
  execute_process(COMMAND bash ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/memory_limits.sh ${ARGN} WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
limits(${SLUICE} run vgg.sluice --threads 2)
limits(${SLUICE} plan vgg.sluice --json)
limits(${programs}/sluice-convert vgg.onnx -o other.sluice --quiet)
if(EXISTS ${programs}/sluice-static)
  limits(${programs}/sluice-static run vgg.sluice)
endif()

# A plan is made from shapes: what the inputs hold is not made up for it, however large they are. Here they take 640 MB.
sluice(0 convert ${SOURCE_DIR}/tests/fuzz/corpus/onnx/batches.onnx -o large.sluice --dim N=10000000 --quiet)
foreach(words "plan large.sluice --json" "plan large.sluice --sweep" "plan large.sluice --explain" "report large.sluice -o page.html --no-run")
  execute_process(COMMAND bash -c "ulimit -v 200000 && exec ${SLUICE} ${words}" WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE status
    OUTPUT_QUIET ERROR_VARIABLE err)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "sluice ${words} in 200 MB of addresses: status ${status}: ${err}")
  endif()
endforeach()
