# Builds vectors_test for 64-bit ARM and runs it under qemu, but for the case that takes an emulator minutes.
include(${CMAKE_CURRENT_LIST_DIR}/../install/common.cmake)
find_program(compiler aarch64-linux-gnu-g++)
find_program(emulator qemu-aarch64)
if(NOT compiler OR NOT emulator)
  message(STATUS "SKIPPED: no aarch64-linux-gnu-g++ or no qemu-aarch64 (scripts/setup --checks)")
  return()
endif()

run(${CMAKE_COMMAND} --preset aarch64 -S ${SLUICE_SOURCE} -B ${WORK_DIR} -DSLUICE_BUILD_IMPORTER=OFF -DSLUICE_BUILD_EXAMPLES=OFF
  -DSLUICE_BUILD_PYTHON=OFF -DSLUICE_WITH_OPENCL=OFF -DSLUICE_INSTALL=OFF)
run(${CMAKE_COMMAND} --build ${WORK_DIR} --target vectors_test)
run(${emulator} -L /usr/aarch64-linux-gnu ${WORK_DIR}/tests/vectors_test "~transforms of every length*")
if(NOT output MATCHES "All tests passed[^\n]*")
  message(FATAL_ERROR "vectors_test does not say that its tests passed:\n${output}")
endif()
message(STATUS "${CMAKE_MATCH_0}")
