# Each of the first 200 requests for memory of a program fails once, those of static initialisers among them.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 64 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice)
get_filename_component(programs ${SLUICE} DIRECTORY)
function(allocations)
  execute_process(COMMAND bash ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/failing_allocations.sh ${FAILING_MALLOC} 200 ${ARGN}
    WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
allocations(${SLUICE} inspect vgg.sluice)
allocations(${SLUICE} run vgg.sluice --threads 2)
allocations(${programs}/sluice-convert vgg.onnx -o other.sluice --quiet)
