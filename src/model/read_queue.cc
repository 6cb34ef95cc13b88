#include "src/model/read_queue.h"

namespace sluice::model {

Result<std::unique_ptr<ReadQueue>> make_reads(WeightSource& source, ReadMethod method, int threads, std::span<const int> cpus,
                                              const char* what) noexcept {
  if (method != ReadMethod::kThreads) {
    if (std::unique_ptr<ReadQueue> ring = make_ring_reads(source)) return ring;
    if (method == ReadMethod::kRing) return fail(ErrorCode::kUnsupported, what, "there is no io_uring for this file here");
  }
  return make_thread_reads(source, threads, cpus);
}

}  // namespace sluice::model
