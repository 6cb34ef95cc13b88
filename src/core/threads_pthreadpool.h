// The second kind of compute pool; linked only where SLUICE_WITH_PTHREADPOOL found the library.
#pragma once

#include <memory>

#include "sluice/core/threads.h"

namespace sluice {

/// A pool of `thread_count` threads in all. Errors: kOutOfMemory.
Result<std::unique_ptr<ThreadPool>> make_pthreadpool(int thread_count);

}  // namespace sluice
