# What the toolchain files of other processors share: Debian's cross compiler (`scripts/setup --extras`) for the machine `sluice_machine`, and the
# emulator `sluice_emulator` that runs what it built. What the build needs is headers only and comes from the host; libraries of the target, if
# any, come from its unpacked packages in SLUICE_SYSROOT.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${sluice_machine}-gcc)
set(CMAKE_CXX_COMPILER ${sluice_machine}-g++)
set(SLUICE_SYSROOT "$ENV{SLUICE_SYSROOT}" CACHE PATH "Unpacked packages of the processor that is built for")
if(NOT SLUICE_SYSROOT)
  set(SLUICE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/${sluice_machine}-sysroot)
endif()
set(CMAKE_FIND_ROOT_PATH ${SLUICE_SYSROOT} /usr/${sluice_machine})
set(CMAKE_LIBRARY_ARCHITECTURE ${sluice_machine})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_CROSSCOMPILING_EMULATOR ${sluice_emulator} -L /usr/${sluice_machine})
