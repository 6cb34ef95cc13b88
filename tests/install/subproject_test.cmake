# Sluice inside another project. Both ways are configured; of the one the consumer's own file is compiled. The library was compiled already:
# that it would be built and linked again, the build tool says itself.
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${WORK_DIR})
foreach(how add_subdirectory FetchContent)
  set(folder ${WORK_DIR}/${how})
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/subproject -B ${folder} -G Ninja -DHOW=${how} -DSLUICE_SOURCE=${SLUICE_SOURCE} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_TOOLCHAIN_FILE=${TOOLCHAIN})
  run(${CMAKE_COMMAND} --build ${folder} --target consumer -- -n -v)
  foreach(part "libsluice_engine.a" "libsluice_kernels.a" "-o consumer")
    string(FIND "${output}" "${part}" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "${how}: nothing is said of ${part}:\n${output}")
    endif()
  endforeach()
endforeach()
run(${CMAKE_COMMAND} --build ${WORK_DIR}/FetchContent --target CMakeFiles/consumer.dir${SOURCE_DIR}/main.cc.o)
