# Third-party libraries, each as an imported target. Debian ships some without a CMake file; those are found by header and library.
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)

include(SluiceFindLibrary)
sluice_find_library(sluice_xxhash xxhash.h)  # used inline: XXH_INLINE_ALL
sluice_find_library(sluice_flatbuffers flatbuffers/flatbuffers.h)
sluice_find_library(sluice_highway hwy/highway.h)  # headers only: the kernels choose their own table (core/cpu.h)
if(TARGET sluice_highway)
  target_compile_definitions(sluice_highway INTERFACE HWY_IS_DEBUG_BUILD=0)  # its assertions, on under sanitizers, end in a function of its library
endif()
if(TARGET sluice_highway AND CMAKE_SIZEOF_VOID_P EQUAL 4 AND CMAKE_SYSTEM_PROCESSOR MATCHES "arm|aarch64")
  target_compile_definitions(sluice_highway INTERFACE HWY_BROKEN_TARGETS=HWY_NEON)  # docs/adr/0043: its vectors round otherwise
endif()
sluice_find_library(sluice_eigen Eigen/Core)  # headers only: the profiler's fits
sluice_find_library(sluice_json nlohmann/json.hpp)  # headers only: device profiles
find_program(SLUICE_FLATC flatc REQUIRED)
if(SLUICE_WITH_IO_URING)
  # The static library: a shared one costs its pages in every process budget. Without it, threads read.
  sluice_find_library(sluice_uring liburing.h NAMES liburing.a uring)
endif()
if(SLUICE_WITH_XNNPACK)
  # For tests, benchmarks and the backend; without it they are left out. xnnpack.h includes pthreadpool.h, which Debian packs by itself.
  sluice_find_library(sluice_pthreadpool_header pthreadpool.h)
  if(TARGET sluice_pthreadpool_header)
    sluice_find_library(sluice_xnnpack xnnpack.h NAMES XNNPACK)
  endif()
endif()
if(SLUICE_WITH_OPENCL)
  sluice_find_library(sluice_opencl CL/cl.h NAMES OpenCL)
endif()
if(SLUICE_BUILD_IMPORTER OR SLUICE_BUILD_CLI)
  sluice_find_library(sluice_protozero protozero/pbf_reader.hpp)
  set(sluice_required_reader sluice_protozero)
endif()
foreach(required sluice_xxhash sluice_flatbuffers sluice_highway sluice_eigen sluice_json ${sluice_required_reader})
  if(NOT TARGET ${required})
    message(FATAL_ERROR "${required} was not found; scripts/setup installs what is missing")
  endif()
endforeach()

# Generates NAME_generated.h from a FlatBuffers schema into the build tree and makes `target` see it.
function(sluice_flatbuffer target schema)
  get_filename_component(name ${schema} NAME_WE)
  set(out ${PROJECT_BINARY_DIR}/generated/schema/${name}_generated.h)
  add_custom_command(OUTPUT ${out}
    COMMAND ${SLUICE_FLATC} --cpp --cpp-std c++17 --scoped-enums -o ${PROJECT_BINARY_DIR}/generated/schema ${PROJECT_SOURCE_DIR}/${schema}
    DEPENDS ${PROJECT_SOURCE_DIR}/${schema} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
