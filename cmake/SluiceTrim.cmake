# -DSLUICE_TRIM=FILE.cmake: a build that links what the models of that list need and nothing else (docs/small-binaries.md). `sluice trim`
# writes the file, which sets
#
#   SLUICE_TRIM_OPERATORS   numbers of operators (model::OpKind)
#   SLUICE_TRIM_KERNELS     numbers of kernels (KernelId)
#   SLUICE_TRIM_FAMILIES    names of families of the long tail
#   SLUICE_TRIM_ISA         optional: kernels for this instruction set alone
#
# Such a build is a device's: importer and tests need every operator, and are not built.
set(SLUICE_TRIM "" CACHE FILEPATH "A list of `sluice trim`: build what its models need, and nothing else")
set(SLUICE_TRIM_ISA "" CACHE STRING "Kernels for one instruction set alone: scalar, neon, avx2 or avx512 (default: all)")

if(SLUICE_TRIM)
  get_filename_component(SLUICE_TRIM "${SLUICE_TRIM}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
  if(NOT EXISTS "${SLUICE_TRIM}")
    message(FATAL_ERROR "SLUICE_TRIM: there is no file ${SLUICE_TRIM}; `sluice trim M.sluice -o FILE.cmake` writes one")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${SLUICE_TRIM}")
  include("${SLUICE_TRIM}")
  if(NOT SLUICE_TRIM_OPERATORS OR NOT SLUICE_TRIM_KERNELS)
    message(FATAL_ERROR "SLUICE_TRIM: ${SLUICE_TRIM} lists no operators or no kernels; `sluice trim` writes such lists")
  endif()
  foreach(number IN LISTS SLUICE_TRIM_OPERATORS SLUICE_TRIM_KERNELS)
    if(NOT number MATCHES "^[0-9]+$")
      message(FATAL_ERROR "SLUICE_TRIM: ${SLUICE_TRIM} lists `${number}`, which is no number of an operator or kernel")
    endif()
  endforeach()
  set(SLUICE_TRIM_FAMILY_NAMES "")
  foreach(family IN LISTS SLUICE_TRIM_FAMILIES)
    string(APPEND SLUICE_TRIM_FAMILY_NAMES "\"${family}\", ")
  endforeach()
  list(JOIN SLUICE_TRIM_OPERATORS ", " SLUICE_TRIM_OPERATOR_NUMBERS)
  list(JOIN SLUICE_TRIM_KERNELS ", " SLUICE_TRIM_KERNEL_NUMBERS)
  string(APPEND SLUICE_TRIM_OPERATOR_NUMBERS ",")
  string(APPEND SLUICE_TRIM_KERNEL_NUMBERS ",")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/trim_lists.h.in ${PROJECT_BINARY_DIR}/trim/trim_lists.h @ONLY)
  add_compile_definitions(SLUICE_TRIM_LISTS="${PROJECT_BINARY_DIR}/trim/trim_lists.h")
  set(SLUICE_BUILD_IMPORTER OFF)
  set(SLUICE_BUILD_TESTS OFF)
  set(SLUICE_BUILD_PYTHON OFF)
  set(SLUICE_BUILD_BENCHMARKS OFF)
  message(STATUS "Trimmed to ${SLUICE_TRIM}: no importer, no tests")
endif()

if(SLUICE_TRIM_ISA)
  if(NOT SLUICE_TRIM_ISA MATCHES "^(scalar|neon|avx2|avx512)$")
    message(FATAL_ERROR "SLUICE_TRIM_ISA=${SLUICE_TRIM_ISA}: is scalar, neon, avx2 or avx512")
  endif()
  string(TOUPPER "${SLUICE_TRIM_ISA}" isa)
  add_compile_definitions(SLUICE_ONLY_${isa})
endif()

# Whatever is small on purpose: each function and table a section of its own, so that the linker can leave it out.
if(SLUICE_TRIM OR CMAKE_BUILD_TYPE STREQUAL "MinSizeRel")
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
endif()
