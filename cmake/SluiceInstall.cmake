# Installs headers, libraries and the CMake package, so that `find_package(sluice)` gives sluice::runtime and sluice::importer.
include(CMakePackageConfigHelpers)
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_package_config_file(cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
