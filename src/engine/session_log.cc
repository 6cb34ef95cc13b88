#include "src/engine/session_log.h"

#include <thread>

#include "sluice/core/cpu.h"

namespace sluice::engine {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kNanosecondsPerMs = 1e6;

double mib(Bytes bytes) noexcept { return static_cast<double>(bytes.count()) / kMib; }
double ms(std::int64_t ns) noexcept { return static_cast<double>(ns) / kNanosecondsPerMs; }

}  // namespace

void tell_plan(const LogHook& log, const Model& model, const plan::Plan& plan, const MemoryReport& memory) noexcept {
  if (!log.wants(LogLevel::kInfo)) return;
  tell(log, LogLevel::kInfo,
       "%s: policy %s, %u threads: arena %.2f MiB, overhead %.2f MiB; %zu steps, %zu loads; %.2f MiB of weights kept, %.2f MiB read a run",
       model.file().path().c_str(), plan.policy.c_str(), plan.threads, mib(memory.arena), mib(memory.overhead), plan.steps.size(),
       plan.loads.size(), mib(plan.resident_bytes), mib(plan.streamed_bytes));
}

void tell_doubts(const LogHook& log, const SessionOptions& options, const plan::Plan& plan, const model::WeightSource& source) noexcept {
  if (!log.wants(LogLevel::kWarning)) return;
  const profiler::DeviceProfile* const profile = options.profile;
  const std::string_view isa = name_of(active_isa());
  if (profile != nullptr && !profile->isa.empty() && profile->isa != isa)
    tell(log, LogLevel::kWarning, "the device profile is of kernels for %s, this process computes with %.*s: predictions will be off",
         profile->isa.c_str(), static_cast<int>(isa.size()), isa.data());
  if (profile != nullptr && profile->threads != options.threads)
    tell(log, LogLevel::kWarning, "the device profile is of %d threads, the session computes with %d: times of kernels are assumed",
         profile->threads, options.threads);
  const unsigned processors = std::thread::hardware_concurrency();
  if (processors > 0 && static_cast<unsigned>(options.threads) > processors)
    tell(log, LogLevel::kWarning, "%d threads compute on %u processors: they will wait for each other", options.threads, processors);
  if (!plan.loads.empty() && source.descriptor() >= 0 && !source.direct())
    tell(log, LogLevel::kWarning, "weights are read through the page cache, which costs a copy and memory that no budget counts");
}

Status tell_failure(const LogHook& log, const char* call, Status status) noexcept {
  if (status) return status;
  const Error& error = status.error();
  const bool wanted = error.code == ErrorCode::kCancelled;
  const std::string_view code = name_of(error.code);
  if (error.has_numbers)
    tell(log, LogLevel::kError, "%s: %.*s: %s: %s (%s %llu, found %llu)", call, static_cast<int>(code.size()), code.data(),
         error.subject_text.data(), error.reason, error.at_most ? "at most" : "needed", static_cast<unsigned long long>(error.needed),
         static_cast<unsigned long long>(error.available));
  else
    tell(log, wanted ? LogLevel::kInfo : LogLevel::kError, "%s: %.*s: %s: %s", call, static_cast<int>(code.size()), code.data(),
         error.subject_text.data(), error.reason);
  return status;
}

void tell_run(const LogHook& log, const executor::RunStats& stats) noexcept {
  if (!log.wants(LogLevel::kDebug)) return;
  tell(log, LogLevel::kDebug, "run: %.3f ms, of which %.3f waited for loads; %.2f MiB read in %.3f ms", ms(stats.wall_ns),
       ms(stats.stall_ns), mib(stats.bytes_read), ms(stats.load_ns));
}

}  // namespace sluice::engine
