// The backend that a test program is linked with.
#pragma once

#include <cstdio>
#include <memory>

#include "sluice/backends/backend.h"
#if defined(SLUICE_TEST_OPENCL)
#include "src/backends/opencl.h"
#else
#include "src/backends/xnnpack.h"
#endif

namespace sluice::backends {

/// Null, and a line on stderr, where it cannot work here.
inline std::unique_ptr<Backend> test_backend() {
#if defined(SLUICE_TEST_OPENCL)
  Result<std::unique_ptr<Backend>> backend = make_opencl_backend("");
  if (backend) return std::move(*backend);
  std::fprintf(stderr, "%s\n", backend.error().to_string().c_str());
  return nullptr;
#else
  return make_xnnpack_backend();
#endif
}

}  // namespace sluice::backends
