# 32-bit ARM with fused multiply-add, from Cortex-A7 and A15 on (a Raspberry Pi 2 and later): without it `fma` is a call, and sums are ten times
# slower. docs/adr/0043 says which kernels run there.
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(sluice_machine arm-linux-gnueabihf)
set(sluice_emulator qemu-arm)
set(CMAKE_C_FLAGS_INIT "-mfpu=neon-vfpv4 -mfp16-format=ieee")
set(CMAKE_CXX_FLAGS_INIT "-mfpu=neon-vfpv4 -mfp16-format=ieee")
include(${CMAKE_CURRENT_LIST_DIR}/cross-toolchain.cmake)
