# What is installed, in parts that can be installed alone (cmake --install BUILD --component NAME) and are packages of their own:
#
#     runtime       libsluice.so.0.1
#     development   headers, libsluice.so, libsluice.a, libsluice_importer.a, the CMake package, sluice.pc
#     tools         sluice, sluice-static, and what `sluice` starts beside itself: sluice-convert and others (src/cli)
#     backends      the modules that `sluice serve` loads, of the backends that are built (src/backends)
#
# find_package(sluice) gives sluice::runtime (static), sluice::shared and sluice::importer; pkg-config knows `sluice`.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(installed_libraries sluice_archive)
foreach(library sluice_importer_archive sluice_shared)
  if(TARGET ${library})
    list(APPEND installed_libraries ${library})
  endif()
endforeach()
install(TARGETS ${installed_libraries} EXPORT sluice-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${package_dir} COMPONENT development)

# All that an install wants, for those who have built less than everything.
get_property(installed_programs GLOBAL PROPERTY sluice_installed_programs)
add_custom_target(sluice_installed DEPENDS ${installed_libraries} ${installed_programs})

# Third-party libraries that the installed archives link: target:header:library.
set(SLUICE_LINKED_LIBRARIES)
set(SLUICE_PC_PRIVATE "-lstdc++ -lm -lpthread")
if(TARGET sluice_uring)
  list(APPEND SLUICE_LINKED_LIBRARIES sluice_uring:liburing.h:uring)
  string(PREPEND SLUICE_PC_PRIVATE "-luring ")
endif()
configure_package_config_file(cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake cmake/SluiceFindLibrary.cmake
  DESTINATION ${package_dir} COMPONENT development)

file(RELATIVE_PATH SLUICE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/sluice.pc.in ${PROJECT_BINARY_DIR}/sluice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sluice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

include(SluicePackages)
