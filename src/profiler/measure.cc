#include "sluice/profiler/measure.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "src/profiler/read_timer.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/step_timer.h"

namespace sluice::profiler {
namespace {

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
    add_tasks(built_in_);
    for (const model::Graph* graph : options_.graphs) add_tasks(*graph);
    SLUICE_ASSIGN_OR_RETURN(StepTimer timer, StepTimer::create(options_.threads));
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (options_.progress != nullptr) options_.progress(options_.progress_context, i, tasks_.size());
      SLUICE_RETURN_IF_ERROR(measure(timer, tasks_[i]));
    }
    fit(profile_);
    profile_.verify_bytes_per_second = measure_verifying(options_.file);
    if (!options_.file.empty()) {
      SLUICE_ASSIGN_OR_RETURN(profile_.reads, measure_reads(options_.file));
    }
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
    if (kernel.run == nullptr || kernel.cost == nullptr) return;
    tasks_.push_back({&graph, &node, &kernel});
    // Plans cut weights: what a slice costs more than its share is part of the fit.
    const bool cuts = kernel.slices_channels && !node.weights.empty() && graph.weight(node.weights[0]).panels >= 8;
    if (cuts) tasks_.push_back({&graph, &node, &kernel, KernelUse::kRun, 0.25});
    if (kernel.derived_panel_bytes == nullptr || kernel.prepare == nullptr || node.weights.empty()) return;
    tasks_.push_back({&graph, &node, &kernel, KernelUse::kRunDerived});
    tasks_.push_back({&graph, &node, &kernel, KernelUse::kPrepare});
  }

  Status measure(StepTimer& timer, const Task& task) {
    const UsedKernel kernel{task.kernel->id, task.use};
    if (known(task, kernel)) return {};
    SLUICE_ASSIGN_OR_RETURN(const auto timed, timer.time({*task.graph, *task.node, *task.kernel, task.use, task.share}));
    if (timed) profile_.samples.push_back({kernel, cost_of(task, timed->extent), timed->seconds});
    return {};
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
  DeviceProfile profile_;
};

}  // namespace

Result<DeviceProfile> measure_device(const MeasureOptions& options) {
  if (options.threads < 1) return fail(ErrorCode::kInvalidArgument, "threads", "a profile is of at least one thread");
  return Measurement(options).run();
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
