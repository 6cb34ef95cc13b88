#include "sluice/engine/async.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "sluice/core/native_thread.h"
#include "src/core/out_of_memory.h"

namespace sluice {
namespace {

/// What a run takes, and what a caller's `done` may take.
constexpr std::size_t kStackBytes = 1 << 20;

/// The thread, and what it shares with callers.
class Runner {
 public:
  explicit Runner(Session& session) noexcept : session_(session) {}
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      if (running_) session_.cancel();
    }
    changed_.notify_all();
    thread_.join();
  }

  Status begin() noexcept {
    return thread_.start(
        "runner", kStackBytes, [](void* self) noexcept { static_cast<Runner*>(self)->work(); }, this);
  }

  Status start(AsyncSession::Done done, void* context) noexcept { return ask(done, context, false); }

  Status wait() noexcept {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
    return status_;
  }

  Status run_within(std::chrono::nanoseconds limit) noexcept {
    const auto now = std::chrono::steady_clock::now();
    if (limit > std::chrono::steady_clock::time_point::max() - now) {  // later than the clock can say
      SLUICE_RETURN_IF_ERROR(start(nullptr, nullptr));
      return wait();
    }
    // A short run could be over before this thread looks: one without any time does not begin.
    SLUICE_RETURN_IF_ERROR(ask(nullptr, nullptr, limit <= std::chrono::nanoseconds::zero()));
    std::unique_lock lock(mutex_);
    const auto over = [&] { return !busy_; };
    if (!changed_.wait_until(lock, now + limit, over)) {
      late_ = true;
      if (running_) session_.cancel();
      changed_.wait(lock, over);
    }
    return status_;
  }

 private:
  Status ask(AsyncSession::Done done, void* context, bool late) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (busy_) return fail(ErrorCode::kInvalidArgument, "run", "another run of this session is under way");
      busy_ = true;
      late_ = late;
      done_ = done;
      context_ = context;
    }
    changed_.notify_all();
    return {};
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return busy_ || closing_; });
      if (!busy_) return;
      Status status = late_ || closing_ ? fail(ErrorCode::kCancelled, "run", "it was called off before it began") : run(lock);
      if (late_) status = fail(ErrorCode::kCancelled, "run", "it took longer than it was given");
      if (done_ != nullptr) {
        lock.unlock();
        done_(context_, status);
        lock.lock();
      }
      status_ = status;
      busy_ = false;
      changed_.notify_all();
    }
  }

  /// A cancellation counts only while a run is under way: one that comes too late does not stop the next run.
  Status run(std::unique_lock<std::mutex>& lock) noexcept {
    running_ = true;
    lock.unlock();
    Status status = session_.run();
    lock.lock();
    running_ = false;
    if (late_ || closing_) session_.forget_cancel();
    return status;
  }

  Session& session_;
  NativeThread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;     // a run was begun and is not over
  bool running_ = false;  // the session is in it: neither before, nor in `done`
  bool closing_ = false;
  bool late_ = false;  // the run under way was called off because its time was over
  AsyncSession::Done done_ = nullptr;
  void* context_ = nullptr;
  Status status_;  // of the last run that is over
};

/// A forked child has no runner's thread, and locks that the thread shares may stay locked in it: the child's calls are refused, and
/// objects that it cannot end are left as they are.
class ThreadedSession final : public AsyncSession {
 public:
  explicit ThreadedSession(Session& session) : runner_(std::make_unique<Runner>(session)) {}
  ~ThreadedSession() override {
    if (foreign()) static_cast<void>(runner_.release());
  }

  Status begin() noexcept { return runner_->begin(); }
  Status start(Done done, void* context) noexcept override { return foreign() ? refusal() : runner_->start(done, context); }
  Status wait() noexcept override { return foreign() ? refusal() : runner_->wait(); }
  Status run_within(std::chrono::nanoseconds limit) noexcept override { return foreign() ? refusal() : runner_->run_within(limit); }

 private:
  bool foreign() const noexcept { return ::getpid() != process_; }
  static Status refusal() noexcept {
    return fail(ErrorCode::kInvalidArgument, "session", "the session belongs to the process that this one was forked from: make one here");
  }

  const pid_t process_ = ::getpid();
  std::unique_ptr<Runner> runner_;
};

}  // namespace

Result<std::unique_ptr<AsyncSession>> AsyncSession::create(Session& session) {
  return or_out_of_memory("runner", [&]() -> Result<std::unique_ptr<AsyncSession>> {
    auto made = std::make_unique<ThreadedSession>(session);
    SLUICE_RETURN_IF_ERROR(made->begin());
    return made;
  });
}

}  // namespace sluice
