// What a library that prints nothing has to say: a function of the program's is told it, line by line.
//
//     void to_my_log(void* log, sluice::LogLevel level, std::string_view text) noexcept { ... }
//     auto session = sluice::Session::create(model, {.budget = 24_MiB, .log = {&to_my_log, &my_log}});
//
// The text is whole, without a line's end, at most kLogTextBytes long, and holds during the call only: it lies on the caller's stack, so
// that telling allocates nothing, whether memory has run out or a run must not allocate.
//
// The function is called in the thread that made the call which has something to say (create, set_budget, run, or the runner's of an
// AsyncSession), never in a loader or compute thread and never while a lock of ours is held that it could want: it may call into the
// library, but for the session that is telling. It must return soon, because the library's call waits for it, and must not throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice {

/// kInfo: what was decided, once a session or budget. kWarning: it works, but not as well as it could. kError: a call fails; its Status
/// says the same. kDebug: each run.
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

inline constexpr std::size_t kLogTextBytes = 320;

struct LogHook {
  void (*call)(void* context, LogLevel level, std::string_view text) noexcept = nullptr;
  void* context = nullptr;
  LogLevel least = LogLevel::kInfo;  // what is below is not told, nor made

  bool wants(LogLevel level) const noexcept { return call != nullptr && level >= least; }
};

/// Tells a line that is made as by printf; nothing where the hook does not want it. What is too long is cut.
void tell(const LogHook& hook, LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 3, 4)));

}  // namespace sluice
