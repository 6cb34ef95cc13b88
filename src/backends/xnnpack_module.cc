// The entry point of libsluice_xnnpack.so.
#include <cstdio>

#include "src/backends/module.h"
#include "src/backends/xnnpack.h"

sluice::backends::Backend* sluice_make_backend(const char*, char* why_not, std::size_t room) noexcept {
  auto backend = sluice::backends::make_xnnpack_backend();
  if (backend == nullptr) std::snprintf(why_not, room, "XNNPACK does not support this CPU");
  return backend.release();
}
