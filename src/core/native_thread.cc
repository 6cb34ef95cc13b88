#include "sluice/core/native_thread.h"

#include <signal.h>
#include <unistd.h>

#include "sluice/core/units.h"
#include "src/core/cpu_set.h"
#include "src/core/wipe.h"

namespace sluice {

Status NativeThread::start(const char* what, std::size_t stack_bytes, Main main, void* context, std::span<const int> cpus) noexcept {
  main_ = main;
  context_ = context;
  // The system's least stack depends on the CPU (the signal frame holds all vector registers), so it is asked, and ours comes on top.
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes + (least > 0 ? align_up(static_cast<std::uint64_t>(least), 4096) : 0));
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, &attributes, &NativeThread::enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    Error failure = make_error(ErrorCode::kOutOfMemory, what, "a thread could not be started");
    failure.os_error = error;
    return fail(failure);
  }
  started_ = true;
  if (!cpus.empty()) {
    const cpu_set_t set = cpu_set_of(cpus);
    pthread_setaffinity_np(thread_, sizeof set, &set);  // a wish: the process may have lost them since they were chosen
  }
  return {};
}

void NativeThread::join() noexcept {
  if (started_) pthread_join(thread_, nullptr);
  started_ = false;
}

void* NativeThread::enter(void* self) noexcept {
  const auto& thread = *static_cast<NativeThread*>(self);
  thread.main_(thread.context_);
  wipe_stack();  // its pages are kept for the next thread, and what was computed with may have been secret
  return nullptr;
}

}  // namespace sluice
