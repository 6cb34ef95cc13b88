#include "sluice/profiler/measure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/core/storage_interrupts.h"
#include "sluice/kernels/registry.h"
#include "sluice/operators/definition.h"
#include "sluice/profiler/fit.h"
#include "src/core/out_of_memory.h"
#include "src/profiler/middle.h"
#include "src/profiler/quiet_processor.h"
#include "src/profiler/read_timer.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "src/profiler/step_timer.h"
#include "src/profiler/stopwatch.h"
#include "src/profiler/typed_nodes.h"

namespace sluice::profiler {
namespace {

// What a run takes beside its steps, for each step. 400 sums of four values in a row take 46 ns each in all, less than the 50 that one takes
// in a round with the clock that times it; this leaves a little for steps whose code is not near. (0.07 to 0.28 us, the figure before, were
// interruptions.)
constexpr double kDispatchSeconds = 0.02e-6;
// What a shared machine's speed differs by between a profile and the nets after it: -10, -9, -6, -6, -2, -1 and 2 % in seven evaluations with
// tuning nets, a part of which the errors of kernels count already. With it 91 % of 80 measurements of tuning nets are in their 90 % intervals.
// Where it differs within the profile, as much comes on top.
constexpr double kDrift = 0.05;
constexpr double kBusyShare = 0.25;  // of the channels of the step that keeps the machine busy

bool is_there(std::span<const MeasuredType> types, NetType type) noexcept {
  return std::any_of(types.begin(), types.end(), [&](const MeasuredType& of) { return of.type == type; });
}

/// The types of which a few steps are measured with nets of `type`: with the first one those that are not measured by themselves.
std::vector<NetType> few_beside(std::span<const MeasuredType> types, NetType type) {
  std::vector<NetType> few;
  if (types.front().type != type) return few;
  for (const NetType other : SampledNets().few)
    if (!is_there(types, other) && !may_have(type, other)) few.push_back(other);
  return few;
}

/// The type with which a model's own steps are measured: of its first node that no net of f32 has, else the first one.
NetType measured_with(std::span<const MeasuredType> types, const model::Graph& graph) noexcept {
  for (const model::Node& node : graph.nodes)
    if (const NetType type = type_of(graph, node); type != NetType::kF32 && is_there(types, type)) return type;
  return is_there(types, NetType::kF32) ? NetType::kF32 : types.front().type;
}

class Measurement {
 public:
  explicit Measurement(const MeasureOptions& options) : options_(options), built_in_(sample_graph()) {}

  Result<DeviceProfile> run() {
    profile_.device = device_name();
    profile_.isa = name_of(active_isa());
    profile_.threads = options_.threads;
    if (!options_.file.empty()) SLUICE_RETURN_IF_ERROR(check_file_to_read(options_.file));  // before a minute's work
    // Threads stay on the processors of whoever starts them. What reads go to is asked first: afterwards only the big ones are ours.
    const std::vector<int> compute_cpus = processors_to_compute_on(options_.threads);
    std::vector<int> load_cpus;
    if (!options_.file.empty()) load_cpus = processors_to_load_on(options_.file, options_.threads, compute_cpus);
    const ScopedAffinity processors(compute_cpus);
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(options_.threads, options_.memory));
    profile_.others_bytes_per_second = timer.watch_others();
    SLUICE_RETURN_IF_ERROR(timer.set_anchor(anchor_request(built_in_)));
    Measured measured;
    for (const MeasuredType& of : options_.types) SLUICE_RETURN_IF_ERROR(measure_type(of, timer, measured));
    profile_.anchor_seconds = measured.anchor().value_or(0);
    profile_.samples = measured.in_seconds(options_.threads);
    profile_.interruptions = measured.meter.met(options_.threads);
    fit(profile_);
    profile_.step_overhead_seconds = kDispatchSeconds;
    profile_.common_error = std::hypot(kDrift, measured.drift());
    profile_.wake_seconds = measure_waking();
    profile_.load_start_seconds += profile_.wake_seconds;
    if (const double sharing = timer.time_sharing(); sharing > 0) profile_.share_seconds = sharing;
    {
      const ScopedAffinity loader(load_cpus);  // which verifies what it reads
      profile_.verify_bytes_per_second = measure_verifying(options_.file);
    }
    if (!options_.file.empty()) SLUICE_RETURN_IF_ERROR(measure_disk(timer, load_cpus));
    return std::move(profile_);
  }

 private:
  Status measure_type(const MeasuredType& of, StepTimer& timer, Measured& measured) const {
    const model::Graph built_in = sample_graph({of.type, few_beside(options_.types, of.type)});
    std::vector<Candidate> required;
    for (const model::Graph* graph : options_.graphs)
      if (measured_with(options_.types, *graph) == of.type)
        for (const Candidate& candidate : candidates_of(*graph, timer)) required.push_back(candidate);
    timer.fill_weights(of.type);
    return Sampler(options_, of, timer, std::move(required), candidates_of(built_in, timer), measured).run();
  }

  /// Reads go where a session's loader runs.
  Status measure_disk(StepTimer& timer, const std::vector<int>& load_cpus) {
    {
      const ScopedAffinity processors(load_cpus);
      SLUICE_ASSIGN_OR_RETURN(profile_.reads, measure_reads(options_.file));
      // The smallest piece, read alone, is nearly all waiting.
      const ReadRate& smallest = profile_.reads.front();
      const double start = static_cast<double>(smallest.piece_bytes) / smallest.bytes_per_second;
      SLUICE_ASSIGN_OR_RETURN(profile_.reads_at_once, measure_reads_at_once(options_.file, start));
      profile_.load_start_seconds = profile_.wake_seconds + start;
    }
    const ReadRate best = best_reads(profile_);
    profile_.read_piece_bytes = best.piece_bytes;
    profile_.reads_in_flight = best.depth;
    // A wide and deep convolution keeps every thread busy with what most networks do most of the time.
    const StepTimer::Request request = busy_request(built_in_);
    // The system moves computing threads off the loader's processor in time; here there is little.
    const ScopedAffinity processors(other_processors(load_cpus));
    SLUICE_ASSIGN_OR_RETURN(const Together together,
                            timer.time_beside_reads(request, {options_.file, best.piece_bytes, best.depth, load_cpus}));
    profile_.read_rate_beside_compute = std::clamp(together.read_rate, 0.1, 1.0);
    profile_.step_time_beside_reads = std::clamp(together.work_seconds, 1.0, 10.0);
    return {};
  }

  /// The direct convolution with the most work.
  static StepTimer::Request busy_request(const model::Graph& graph) {
    const model::Node* busy = nullptr;
    for (const model::Node& node : graph.nodes)
      if (node.op == model::OpKind::kConv && node.numeric == model::NumericClass::kExact &&
          (busy == nullptr || operators::macs_of(graph, node) > operators::macs_of(graph, *busy)))
        busy = &node;
    return {graph, *busy, *kernels::kernels_for(graph, *busy).front(), KernelUse::kRun, kBusyShare};
  }

  const MeasureOptions& options_;
  model::Graph built_in_;
  DeviceProfile profile_;
};

}  // namespace

Result<DeviceProfile> measure_device(const MeasureOptions& options) {
  if (options.types.empty()) return fail(ErrorCode::kInvalidArgument, "types", "a profile is of nets of at least one type");
  if (options.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a profile is of at least one thread");
  return or_out_of_memory("profile", [&] { return Measurement(options).run(); });
}

Result<double> time_anchor(int threads, double seconds) {
  if (threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "an anchor is timed on at least one thread");
  return or_out_of_memory("profile", [&]() -> Result<double> {
    const model::Graph built_in = sample_graph();
    const ScopedAffinity processors(processors_to_compute_on(threads));
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(threads));
    SLUICE_RETURN_IF_ERROR(timer.set_anchor(anchor_request(built_in)));
    timer.time_anchor();  // touches its memory
    const QuietProcessor processor(threads == 1, [&] { return timer.time_anchor(); });
    const Clock::time_point start = Clock::now();
    std::vector<double> all;
    do all.push_back(timer.time_anchor());
    while (seconds_since(start) < seconds);
    return middle_of(std::move(all));
  });
}

std::string device_name() {
  // x86-64 names the model; ARM names the board, or only numbers of implementer and part.
  constexpr std::string_view kKeys[] = {"model name", "Model", "Hardware", "CPU part"};
  constexpr std::size_t kMost = 1 << 16;  // the first processors are enough
  std::string text(kMost, '\0');
  std::FILE* const file = std::fopen("/proc/cpuinfo", "re");
  if (file == nullptr) return "unknown";
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  for (const std::string_view key : kKeys) {
    const std::size_t at = text.find(key);
    const std::size_t colon = at == std::string::npos ? at : text.find(": ", at);
    if (colon != std::string::npos) return text.substr(colon + 2, text.find('\n', colon) - colon - 2);
  }
  return "unknown";
}

}  // namespace sluice::profiler
