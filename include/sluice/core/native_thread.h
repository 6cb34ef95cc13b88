// A thread with a stack of stated size: std::thread takes 8 MiB of addresses and throws; a budget wants neither.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <span>

#include "sluice/core/error.h"

namespace sluice {

class NativeThread {
 public:
  using Main = void (*)(void* context) noexcept;

  NativeThread() noexcept = default;
  NativeThread(const NativeThread&) = delete;
  NativeThread& operator=(const NativeThread&) = delete;
  ~NativeThread() { join(); }

  /// Starts `main(context)`. `stack_bytes` are addresses; only pages that are touched cost memory. All signals are blocked in the thread,
  /// so that a program's handlers never run on this stack. It runs on `cpus` if the system allows it; otherwise, or if `cpus` is empty, on
  /// the processors of the thread that starts it. Errors: kOutOfMemory with the system's number.
  Status start(const char* what, std::size_t stack_bytes, Main main, void* context, std::span<const int> cpus = {}) noexcept;
  /// Waits for the end of `main`; nothing when it was never started.
  void join() noexcept;

 private:
  static void* enter(void* self) noexcept;

  pthread_t thread_{};
  Main main_ = nullptr;
  void* context_ = nullptr;
  bool started_ = false;
};

}  // namespace sluice
