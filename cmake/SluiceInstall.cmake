# Installs headers, libraries, programs and the CMake package, so that `find_package(sluice)` gives sluice::runtime and sluice::importer.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(module core model operators plan kernels profiler planner executor engine scheduler runtime importer)
  if(TARGET sluice_${module})
    install(TARGETS sluice_${module} EXPORT sluice-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${package_dir})

# Third-party libraries that the installed archives link: target:header:library.
set(SLUICE_LINKED_LIBRARIES)
if(TARGET sluice_uring)
  list(APPEND SLUICE_LINKED_LIBRARIES sluice_uring:liburing.h:uring)
endif()
configure_package_config_file(cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake cmake/SluiceFindLibrary.cmake
  DESTINATION ${package_dir})
