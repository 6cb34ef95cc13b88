# The program's outputs are the same bytes at each budget, on each number of threads, by each reader and instruction set; two small models here,
# any model by `scripts/bench bits`.
include(${CMAKE_CURRENT_LIST_DIR}/program.cmake)

execute_process(COMMAND ${MAKE_VGG19} ${WORK_DIR}/vgg.onnx --divide 8 COMMAND_ERROR_IS_FATAL ANY)
sluice(0 convert vgg.onnx -o vgg.sluice --quiet)
sluice(0 convert ${SOURCE_DIR}/examples/models/reader.onnx -o reader.sluice --dim W=256 --weights int8 --quiet)
execute_process(COMMAND ${SOURCE_DIR}/tests/bench/bits.sh ${SLUICE} 3 vgg.sluice reader.sluice WORKING_DIRECTORY ${WORK_DIR}
  RESULT_VARIABLE status OUTPUT_VARIABLE table ERROR_VARIABLE errors)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "outputs differ:\n${table}\n${errors}")
endif()
# Sums in another order, without Winograd's squares, are within the tolerance too.
sluice(0 run vgg.sluice --output expected)
sluice(0 convert vgg.onnx -o exact.sluice --numerics exact --quiet)
file(GLOB output RELATIVE ${WORK_DIR}/expected ${WORK_DIR}/expected/*.npy)
string(REPLACE ".npy" "" name ${output})
sluice(0 run exact.sluice --expect ${name}=expected/${output})
message(STATUS "\n${table}")
