// For programs that are linked without pthreadpool from a core that was compiled with it.
#include "src/core/threads_pthreadpool.h"

namespace sluice {

Result<std::unique_ptr<ThreadPool>> make_pthreadpool(int) {
  return fail(ErrorCode::kUnsupported, "thread pool", "this program has no pthreadpool");
}

}  // namespace sluice
