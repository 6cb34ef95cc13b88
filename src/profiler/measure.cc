#include "sluice/profiler/measure.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>

#include "sluice/core/affinity.h"
#include "sluice/core/cpu.h"
#include "sluice/core/storage_interrupts.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "src/core/out_of_memory.h"
#include "src/profiler/read_timer.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/step_timer.h"

namespace sluice::profiler {
namespace {

constexpr std::size_t kPasses = 2;
constexpr double kBusyShare = 0.25;  // of the channels of the step that keeps the machine busy

/// One step to measure.
struct Task {
  const model::Graph* graph;
  const model::Node* node;
  const kernels::KernelDescriptor* kernel;
  KernelUse use = KernelUse::kRun;
  double share = 1;
};

class Measurement {
 public:
  explicit Measurement(const MeasureOptions& options) : options_(options), built_in_(sample_graph()) {}

  Result<DeviceProfile> run() {
    profile_.device = device_name();
    profile_.isa = name_of(active_isa());
    profile_.threads = options_.threads;
    if (!options_.file.empty()) SLUICE_RETURN_IF_ERROR(check_file_to_read(options_.file));  // before a minute's work
    add_tasks(built_in_);
    for (const model::Graph* graph : options_.graphs) add_tasks(*graph);
    // Threads stay on the processors of whoever starts them. What reads go to is asked first: afterwards only the big ones are ours.
    const std::vector<int> compute_cpus = processors_to_compute_on(options_.threads);
    std::vector<int> load_cpus;
    if (!options_.file.empty()) load_cpus = processors_to_load_on(options_.file, options_.threads, compute_cpus);
    const ScopedAffinity processors(compute_cpus);
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(options_.threads));
    for (std::size_t i = 0; i < kPasses * tasks_.size(); ++i) {
      if (options_.progress != nullptr) options_.progress(options_.progress_context, i, kPasses * tasks_.size());
      SLUICE_RETURN_IF_ERROR(measure(timer, tasks_[i % tasks_.size()], i < tasks_.size()));
    }
    fit(profile_);
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
  /// The reference is measured only where nothing else runs the node.
  void add_tasks(const model::Graph& graph) {
    for (const model::Node& node : graph.nodes) {
      bool preferred = true;
      for (const kernels::KernelDescriptor* kernel : kernels::kernels_for(graph, node)) {
        if (preferred || kernel->id < kernels::kernel_id::kReferenceBase) add_task(graph, node, *kernel);
        preferred = false;
      }
    }
  }

  void add_task(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
    if (kernel.resolve == nullptr || kernel.cost == nullptr) return;
    tasks_.push_back({&graph, &node, &kernel});
    // Plans cut weights: what a slice costs more than its share is part of the fit.
    const bool cuts = kernel.slices_channels && !node.weights.empty() && graph.weight(node.weights[0]).panels >= 8;
    if (cuts) tasks_.push_back({&graph, &node, &kernel, KernelUse::kRun, 0.25});
    if (kernel.derived_panel_bytes == nullptr || node.weights.empty()) return;
    tasks_.push_back({&graph, &node, &kernel, KernelUse::kRunDerived});
    tasks_.push_back({&graph, &node, &kernel, KernelUse::kPrepare});
  }

  /// In the first pass a sample is made, in later ones it is bettered: a machine that others share is slow for seconds at a time.
  Status measure(StepTimer& timer, const Task& task, bool first_pass) {
    const UsedKernel kernel{task.kernel->id, task.use};
    if (first_pass && known(task, kernel)) return {};
    const auto sample = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& t) { return t.task == &task; });
    if (!first_pass && sample == taken_.end()) return {};
    SLUICE_ASSIGN_OR_RETURN(const auto timed, timer.time({*task.graph, *task.node, *task.kernel, task.use, task.share}));
    if (!timed) return {};
    if (first_pass) {
      taken_.push_back({&task, profile_.samples.size()});
      profile_.samples.push_back({kernel, cost_of(task, timed->extent), timed->seconds});
    } else {
      double& seconds = profile_.samples[sample->index].seconds;
      seconds = std::min(seconds, timed->seconds);
    }
    return {};
  }

  /// Reads go where a session's loader runs.
  Status measure_disk(StepTimer& timer, const std::vector<int>& load_cpus) {
    {
      const ScopedAffinity processors(load_cpus);
      SLUICE_ASSIGN_OR_RETURN(profile_.reads, measure_reads(options_.file));
    }
    const ReadRate best = best_reads(profile_);
    profile_.read_piece_bytes = best.piece_bytes;
    profile_.reads_in_flight = best.depth;
    // The smallest piece, read alone, is nearly all waiting.
    const ReadRate& smallest = profile_.reads.front();
    profile_.load_start_seconds = profile_.wake_seconds + static_cast<double>(smallest.piece_bytes) / smallest.bytes_per_second;
    // Of all tasks a wide and deep convolution: it keeps every thread busy with what most networks do most of the time.
    const auto busy =
        std::max_element(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) { return flops_of(a) < flops_of(b); });
    const StepTimer::Request request{*busy->graph, *busy->node, *busy->kernel, busy->use, kBusyShare};
    // The system moves computing threads off the loader's processor in time; here there is little.
    const ScopedAffinity processors(other_processors(load_cpus));
    constexpr double kNever = std::numeric_limits<double>::infinity();
    double alone = kNever;
    Together together;  // of the pass that read faster: its steps stood beside those reads
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      SLUICE_ASSIGN_OR_RETURN(const auto timed, timer.time(request));
      if (timed) alone = std::min(alone, timed->seconds);
      SLUICE_ASSIGN_OR_RETURN(const Together taken,
                              timer.time_beside_reads(request, {options_.file, best.piece_bytes, best.depth, load_cpus}));
      if (taken.bytes_per_second > together.bytes_per_second) together = taken;
    }
    profile_.read_rate_beside_compute = std::clamp(together.bytes_per_second / best.bytes_per_second, 0.1, 1.0);
    if (alone < kNever && together.work_seconds > 0) profile_.step_time_beside_reads = std::clamp(together.work_seconds / alone, 1.0, 10.0);
    return {};
  }

  static std::uint64_t flops_of(const Task& task) {
    if (task.use != KernelUse::kRun || task.kernel->id != kernels::kernel_id::kConvDirect) return 0;
    return cost_of(task, {{0, row_extents(task.graph->tensor(task.node->outputs[0]).shape).rows},
                          {0, model::step_channels(*task.graph, *task.node)}})
        .flops;
  }

  static kernels::CostFeatures cost_of(const Task& task, const kernels::StepExtent& extent) {
    const auto cost =
        task.use == KernelUse::kPrepare && task.kernel->prepare_cost != nullptr ? task.kernel->prepare_cost : task.kernel->cost;
    return cost(*task.graph, *task.node, extent);
  }

  /// A network repeats its layers; one sample of each is enough.
  bool known(const Task& task, UsedKernel kernel) {
    const kernels::StepExtent whole{{0, row_extents(task.graph->tensor(task.node->outputs[0]).shape).rows},
                                    {0, model::step_channels(*task.graph, *task.node)},
                                    options_.threads};
    const Seen seen{kernel, task.share, terms_of(cost_of(task, whole))};
    if (std::find(seen_.begin(), seen_.end(), seen) != seen_.end()) return true;
    seen_.push_back(seen);
    return false;
  }

  struct Seen {
    UsedKernel kernel;
    double share;
    Terms terms;
    bool operator==(const Seen&) const = default;
  };

  const MeasureOptions& options_;
  model::Graph built_in_;
  std::vector<Task> tasks_;
  std::vector<Seen> seen_;
  struct Taken {
    const Task* task;
    std::size_t index;  // of the sample
  };
  std::vector<Taken> taken_;
  DeviceProfile profile_;
};

}  // namespace

Result<DeviceProfile> measure_device(const MeasureOptions& options) {
  if (options.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a profile is of at least one thread");
  return or_out_of_memory("profile", [&] { return Measurement(options).run(); });
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
