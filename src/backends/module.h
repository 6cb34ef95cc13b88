// The entry point of a backend's module: the program looks it up after it has loaded the shared object.
#pragma once

#include <cstddef>

#include "sluice/backends/backend.h"

namespace sluice::backends {

inline constexpr const char* kModuleDoor = "sluice_make_backend";
/// Null where the backend cannot work here; `why_not` then holds the reason, cut to its room. `cache`: a folder for what it may keep
/// between processes, or empty.
using MakeBackend = Backend* (*)(const char* cache, char* why_not, std::size_t room);

}  // namespace sluice::backends

extern "C" __attribute__((visibility("default"))) sluice::backends::Backend* sluice_make_backend(const char* cache, char* why_not,
                                                                                                 std::size_t room) noexcept;
