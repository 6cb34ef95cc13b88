// Runs of a session beside the caller, and runs that may take only so long.
//
//     auto runs = sluice::AsyncSession::create(**session);
//     (*runs)->start([](void*, const sluice::Status& status) noexcept { ... }, nullptr);   // returns at once
//     (*runs)->wait();                                                                     // its status
//     (*runs)->run_within(150ms);                                                          // kCancelled where that was not enough
//
// One thread, made by `create`; beginning and ending a run allocates nothing. While a run is under way the session is the runner's: set
// inputs before, take outputs after. `Session::cancel` is the exception, as ever. In a forked child its calls are refused, and its end does
// nothing, as with the session.
#pragma once

#include <chrono>
#include <memory>

#include "sluice/core/error.h"
#include "sluice/engine/engine.h"

namespace sluice {

class AsyncSession {
 public:
  /// Called in the runner's thread when a run is over, before it counts as over: no run can be begun from inside.
  using Done = void (*)(void* context, const Status& status);

  /// `session` outlives the result. Errors: kOutOfMemory.
  static Result<std::unique_ptr<AsyncSession>> create(Session& session);
  /// Cancels a run that is under way and waits for its end.
  virtual ~AsyncSession() = default;

  /// Begins a run. `done` may be null. Errors: kInvalidArgument while one is under way.
  virtual Status start(Done done, void* context) noexcept = 0;
  /// Waits for the run that was begun last and gives its status; success before any. From any thread but the runner's.
  virtual Status wait() noexcept = 0;
  /// Runs and waits for `limit` at most: then the run is called off, after the step that is under way, and the error is kCancelled. The
  /// session can run again. Errors: also those of `start` and of Session::run.
  virtual Status run_within(std::chrono::nanoseconds limit) noexcept = 0;
};

}  // namespace sluice
