# The modules as the libraries that are installed:
#
#     objects of core ... scheduler  ->  libsluice.a            sluice::runtime
#                                    ->  libsluice.so.0.1       sluice::shared     exports what cmake/sluice.map names, nothing else
#     objects of importer            ->  libsluice_importer.a   sluice::importer
#
# Inside the build everything links the modules themselves, so that an include that goes upwards finds no library.
set(sluice_runtime_objects)
foreach(module core model operators plan kernels profiler planner executor engine scheduler)
  list(APPEND sluice_runtime_objects $<TARGET_OBJECTS:sluice_${module}>)
endforeach()

# sluice_product(TARGET TYPE EXPORT_NAME OUTPUT_NAME OBJECTS...): a library of objects that are there, with what its users need to see.
function(sluice_product target type export_name output_name)
  add_library(${target} ${type} ${ARGN})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${export_name} OUTPUT_NAME ${output_name} LINKER_LANGUAGE CXX
    ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib EXCLUDE_FROM_ALL ${sluice_exclude})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC tl::expected PRIVATE Threads::Threads)
  if(TARGET sluice_uring)
    target_link_libraries(${target} PRIVATE sluice_uring)
  endif()
  if(SLUICE_SANITIZE)
    target_link_options(${target} PUBLIC -fsanitize=${SLUICE_SANITIZE})
  endif()
endfunction()

set(sluice_exclude ON)
if(SLUICE_INSTALL)
  set(sluice_exclude OFF)
endif()
sluice_product(sluice_archive STATIC runtime sluice ${sluice_runtime_objects})
if(TARGET sluice_importer)
  sluice_product(sluice_importer_archive STATIC importer sluice_importer $<TARGET_OBJECTS:sluice_importer>)
  target_link_libraries(sluice_importer_archive PUBLIC sluice_archive)
endif()
if(NOT SLUICE_SANITIZE)  # whose libraries come with the program
  sluice_product(sluice_shared SHARED shared sluice ${sluice_runtime_objects})
  add_library(sluice::shared ALIAS sluice_shared)
  # Before 1.0 a new minor version may break what programs were built against.
  set_target_properties(sluice_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/sluice.map)
  target_link_options(sluice_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/sluice.map -Wl,-Bsymbolic-functions -Wl,-z,defs
    -Wl,--gc-sections)
endif()
