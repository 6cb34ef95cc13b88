// pthreadpool behind the interface of core/threads.h. Not the default: docs/adr/0007-compute-threads.md has the measurement.
#include "src/core/threads_pthreadpool.h"

#include <pthreadpool.h>

#include <algorithm>
#include <atomic>
#include <new>

namespace sluice {
namespace {

class PthreadPool final : public ThreadPool {
 public:
  explicit PthreadPool(pthreadpool_t pool) noexcept : pool_(pool) {}
  ~PthreadPool() override { pthreadpool_destroy(pool_); }

  int thread_count() const noexcept override { return static_cast<int>(pthreadpool_get_threads_count(pool_)); }

  void parallelize(Task task, void* context, std::int64_t count) noexcept override {
    if (count <= 0) return;
    // This version of the library does not tell a task which thread runs it, so it runs one item a thread, and the items share the tasks.
    Call call{task, context, count};
    const std::int64_t items = std::min<std::int64_t>(count, thread_count());
    // Without the flag workers spin for milliseconds after each call and take the core that the loader needs.
    pthreadpool_parallelize_1d(pool_, &Call::run_item, &call, static_cast<std::size_t>(items), PTHREADPOOL_FLAG_YIELD_WORKERS);
  }

 private:
  struct Call {
    Task task;
    void* context;
    std::int64_t count;
    std::atomic<std::int64_t> next{0};

    static void run_item(void* argument, std::size_t item) {
      Call& call = *static_cast<Call*>(argument);
      for (std::int64_t index = call.next++; index < call.count; index = call.next++)
        call.task(call.context, index, static_cast<int>(item));
    }
  };
  pthreadpool_t pool_;
};

}  // namespace

Result<std::unique_ptr<ThreadPool>> make_pthreadpool(int thread_count) {
  pthreadpool_t pool = pthreadpool_create(static_cast<std::size_t>(thread_count));
  if (pool == nullptr) return fail(ErrorCode::kOutOfMemory, "thread pool", "pthreadpool could not start its threads");
  std::unique_ptr<ThreadPool> adapter(new (std::nothrow) PthreadPool(pool));
  if (!adapter) {
    pthreadpool_destroy(pool);
    return fail(ErrorCode::kOutOfMemory, "thread pool", "no memory for the pool");
  }
  return adapter;
}

}  // namespace sluice
