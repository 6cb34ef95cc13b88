# 64-bit ARM.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(sluice_machine aarch64-linux-gnu)
set(sluice_emulator qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross-toolchain.cmake)
