// The entry point of libsluice_opencl.so.
#include <cstdio>

#include "src/backends/module.h"
#include "src/backends/opencl.h"

sluice::backends::Backend* sluice_make_backend(const char* cache, char* why_not, std::size_t room) noexcept {
  auto backend = sluice::backends::make_opencl_backend(cache);
  if (backend) return backend->release();
  std::snprintf(why_not, room, "%s", backend.error().to_string().c_str());
  return nullptr;
}
