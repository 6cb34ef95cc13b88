// BACKEND_check MODEL...: each model by the backend that this program is linked with where that supports a unit and by our kernels
// elsewhere, held against our kernels alone. Prints a line a model; exit status 1 where the largest difference exceeds 1e-4 of the largest
// value, or a unit ran elsewhere than planned; 77 where the backend cannot work here.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "sluice/scheduler/scheduler.h"
#include "tests/backends/backend.h"

namespace sluice::scheduler {
namespace {

constexpr double kAllowed = 1e-4;

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "backend_check: %s\n", error.to_string().c_str());
  std::exit(2);
}
template <class T>
T unwrap(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

std::vector<std::vector<std::byte>> inputs_of(const model::Graph& graph) {
  std::vector<std::vector<std::byte>> inputs;
  std::mt19937 random(1);
  for (const model::Port& port : graph.inputs) {
    std::vector<std::byte>& bytes = inputs.emplace_back(graph.tensor(port.tensor).bytes().count());
    if (graph.tensor(port.tensor).dtype != DType::kF32) continue;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      const float value = std::uniform_real_distribution<float>(-1, 1)(random);
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  }
  return inputs;
}

/// The largest difference over the largest value; of f32.
double difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  double most = 0, norm = 0;
  for (std::size_t i = 0; i + sizeof(float) <= a.size(); i += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, a.data() + i, sizeof x);
    std::memcpy(&y, b.data() + i, sizeof y);
    most = std::max(most, std::isfinite(y) ? std::fabs(static_cast<double>(x) - y) : 1e30);
    norm = std::max(norm, std::fabs(static_cast<double>(x)));
  }
  return norm > 0 ? most / norm : most;
}

bool check(const std::shared_ptr<backends::Backend>& backend, const char* path) {
  const auto model = unwrap(sluice::Model::open(path));
  const model::Graph& graph = model->graph();
  const auto inputs = inputs_of(graph);
  ProcessorOptions other;
  other.kind = ProcessorOptions::Kind::kBackend;
  other.backend = backend;
  SchedulerOptions options;
  options.processors = {{}, other};
  options.policy = "fixed_worker";
  options.profile_runs = 1;
  const auto scheduler = unwrap(Scheduler::create(options));
  const ModelId id = unwrap(scheduler->add_model(model, {.name = path, .reference_inputs = inputs, .fixed = ProcessorId(1)}));
  if (const Status status = scheduler->start(); !status) give_up(status.error());
  std::size_t units_there = 0, nodes_there = 0;
  const std::vector<UnitSupport> units = scheduler->units(id);
  for (const UnitSupport& unit : units) {
    const bool there = unit.processors.back() == ProcessorId(1);
    units_there += there;
    nodes_there += there ? unit.node_count : 0;
  }
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::span<std::byte>> rooms;
  std::vector<std::span<const std::byte>> views(inputs.begin(), inputs.end());
  for (const auto& output : scheduler->reference_outputs(id)) outputs.emplace_back(output.size());
  for (auto& output : outputs) rooms.emplace_back(output);
  const Submission job = unwrap(scheduler->submit(id, {views, rooms}, {}));
  const JobResult result = unwrap(scheduler->wait(job.ticket));
  if (!result.status) give_up(result.status.error());
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) worst = std::max(worst, difference(scheduler->reference_outputs(id)[i], outputs[i]));
  const SchedulerStatistics statistics = scheduler->statistics();
  // The fixed worker takes runs of units that it supports; each gap between them is one run of the other.
  const bool as_planned =
      (statistics.processors[1].runs > 0) == (units_there > 0) && (statistics.processors[0].runs > 0) == (units_there < units.size());
  std::printf(
      "%s: %zu of %zu units, %zu of %zu nodes by it, in %llu runs and %llu of ours; largest difference %.2g of the largest value%s\n", path,
      units_there, units.size(), nodes_there, graph.nodes.size(), static_cast<unsigned long long>(statistics.processors[1].runs),
      static_cast<unsigned long long>(statistics.processors[0].runs), worst, as_planned ? "" : ", not as planned");
  for (const Fallback& fallback : scheduler->fallbacks())
    std::printf("  unit %zu fell back: %s\n", fallback.unit, fallback.why.to_string().c_str());
  return worst <= kAllowed && as_planned && result.outcome == Outcome::kMet;
}

}  // namespace
}  // namespace sluice::scheduler

int main(int argc, char** argv) {
  const std::shared_ptr<sluice::backends::Backend> backend = sluice::backends::test_backend();
  if (backend == nullptr) return 77;
  bool sound = argc > 1;
  for (int i = 1; i < argc; ++i) sound = sluice::scheduler::check(backend, argv[i]) && sound;
  return sound ? 0 : 1;
}
