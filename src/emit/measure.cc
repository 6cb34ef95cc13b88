#include "sluice/emit/measure.h"

#include <algorithm>
#include <numeric>

#include "sluice/core/units.h"
#include "sluice/emit/memory_plan.h"
#include "sluice/kernels/registry.h"
#include "src/emit/kernels.h"
#include "src/emit/parameters.h"
#include "src/emit/text.h"
#include "src/emit/write.h"
#include "src/profiler/sample_graph.h"

namespace sluice::emit {
namespace {

/// Layers as networks for such devices have them, a few of each kernel and none large: narrow and wide, flat and deep, odd channels among
/// them. Which operators a map is given goes by its place (sample_graph.cc).
profiler::ShapeCorpus small_layers() {
  return {.convolutions = {{10, 10, 3, 8, 3, 2, 1},
                           {5, 5, 16, 16, 3, 1, 1},
                           {6, 6, 8, 8, 5, 1, 1},
                           {12, 12, 8, 16, 1, 1, 1},
                           {8, 8, 16, 48, 1, 1, 1},
                           {6, 6, 48, 16, 1, 1, 1},
                           {4, 4, 96, 32, 1, 1, 1},
                           {7, 7, 13, 29, 1, 1, 1},
                           {12, 12, 16, 16, 3, 2, 16},
                           {6, 6, 48, 48, 3, 1, 48},
                           {6, 6, 24, 24, 5, 1, 24},
                           {5, 5, 40, 40, 7, 1, 40},
                           {8, 8, 16, 16, 3, 1, 4}},
          .dense = {{1, 32, 10}, {1, 64, 40}, {4, 32, 16}},
          .maps = {{8, 8, 16},
                   {8, 8, 16},
                   {8, 8, 16},
                   {6, 6, 16},
                   {4, 4, 40},
                   {5, 5, 48},
                   {5, 5, 24},
                   {4, 4, 32},
                   {3, 3, 10},
                   {12, 12, 6},
                   {6, 6, 8},
                   {7, 7, 20}},
          .sequences = {{1, 1, 10}, {1, 8, 48}, {1, 12, 24}}};
}

std::uint64_t aligned(std::uint64_t bytes) { return align_up(bytes, kArenaAlignment); }

/// All layers read the same weights, which count in the flash of the device.
constexpr Bytes kMostWeights{4 << 10};

/// The layers side by side as stages of one network, and their places: each as if it were alone.
class Bench {
 public:
  Bench(const model::Graph& graph, const MeasureOptions& options) : graph_(graph), options_(options) {}

  void add(NodeId id) {
    auto made = make_stage(graph_, id);
    if (!made || (options_.kernels && !options_.kernels->contains(made->kernel))) return;
    Stage stage = *std::move(made);
    const model::Node& node = graph_.node(id);
    for (const WeightId weight : node.weights)
      if (graph_.weight(weight).bytes > kMostWeights) return;
    Network trial;
    std::vector<StoragePlace> places;
    std::uint64_t end = kPlaceBytes;
    const auto place = [&](TensorId tensor) {
      const model::Tensor& t = graph_.tensor(tensor);
      trial.storages.push_back({.name = t.name, .dtype = t.dtype, .elements = t.shape.element_count()});
      places.push_back({end, trial.storages.back().bytes()});
      end = aligned(end + places.back().ring);
      return network.storages.size() + trial.storages.size() - 1;
    };
    for (const TensorId input : node.inputs)
      stage.inputs.push_back({.storage = place(input), .view = row_extents(graph_.tensor(input).shape)});
    stage.storage = place(node.outputs[0]);
    trial.storages.back().maker = network.stages.size();
    const std::uint64_t scratch = end, kept = aligned(scratch + stage.scratch_bytes), arena = aligned(kept + stage.kept_bytes);
    least_arena = std::min(least_arena, arena);
    if (arena > options_.ram) return;
    arena_bytes = std::max(arena_bytes, arena);
    network.storages.insert(network.storages.end(), trial.storages.begin(), trial.storages.end());
    plan.storages.insert(plan.storages.end(), places.begin(), places.end());
    plan.scratch.push_back(scratch);
    plan.kept.push_back(kept);
    plan.regions.push_back({network.stages.size(), network.stages.size() + 1, 0});
    network.stages.push_back(std::move(stage));
  }

  Network network;
  MemoryPlan plan;
  std::uint64_t arena_bytes = 0, least_arena = UINT64_MAX;

 private:
  const model::Graph& graph_;
  const MeasureOptions& options_;
};

/// The same layer on each of the engine's kernels that a plan may name for it: emitted code has one kernel where the engine has several.
void add_samples(const model::Graph& graph, const Stage& stage, std::size_t number, Measurer& made) {
  const model::Node& node = graph.node(stage.node);
  for (const kernels::KernelDescriptor* kernel : profiler::sampled_kernels(graph, node)) {
    const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
    const profiler::StepWork work =
        profiler::work_of(*kernel, profiler::KernelUse::kRun, graph, node, {.rows = {0, out.rows}, .channels = {0, out.channels}});
    made.samples.push_back({{kernel->id, profiler::KernelUse::kRun, work.variant}, work});
    made.stages.push_back(number);
  }
}

void sort_by_kernel(Measurer& made) {
  std::vector<std::size_t> order(made.samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return made.samples[a].kernel < made.samples[b].kernel; });
  Measurer sorted = made;
  for (std::size_t i = 0; i < order.size(); ++i) sorted.samples[i] = made.samples[order[i]], sorted.stages[i] = made.stages[order[i]];
  made = std::move(sorted);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c != '\n') result += c;
  }
  return result + "\"";
}

constexpr const char* kMain = R"(
static union {
  uint8_t bytes[ARENA_BYTES];
  float alignment;
} arena;
static uint64_t times[sizeof stages / sizeof *stages];

int main(void) {
  uint32_t i;
  if (sluice_ticks_per_second() == 0) {
    sluice_print("SLUICE_CLOCK_HZ is not defined");
    return 1;
  }
  for (i = 0; i < sizeof stages / sizeof *stages; ++i) {
    memset(arena.bytes, 0x3f, sizeof arena.bytes); /* bytes, and floats below 1 */
    times[i] = sluice_time_of(&stages[i], (sluice_place *)(void *)arena.bytes, arena.bytes);
  }
  for (i = 0; i < sizeof stage_of / sizeof *stage_of; ++i) {
    sluice_print(pieces[i]);
    sluice_print_time(times[stage_of[i]]);
  }
  sluice_print(pieces[i]);
  return 0;
}
)";

}  // namespace

Result<Measurer> make_measurer(const MeasureOptions& options) {
  const model::Graph graph = profiler::graph_of(small_layers());
  Bench bench(graph, options);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) bench.add(NodeId(i));
  if (bench.network.stages.empty() && bench.least_arena != UINT64_MAX)
    return fail(make_error(ErrorCode::kBudgetTooSmall, "measure", "arena of the smallest layer", bench.least_arena, options.ram));
  if (bench.network.stages.empty()) return fail(ErrorCode::kUnsupported, "measure", "none of the model's kernels is measured");
  Measurer made{.stage_count = bench.network.stages.size(), .arena_bytes = bench.arena_bytes};
  ParameterWriter parameters(graph, bench.network, bench.plan);
  for (std::size_t i = 0; i < bench.network.stages.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(parameters.write(i));
    add_samples(graph, bench.network.stages[i], i, made);
  }
  sort_by_kernel(made);
  made.text = copied_headers(bench.network, "measure.h") + "\n" + parameters.stand_ins() + parameters.text +
              stage_tables(bench.network, bench.plan);
  return made;
}

std::string measure_program(const Measurer& measurer, const std::vector<std::string>& pieces) {
  std::string text =
      "/* Emitted by sluice: times the kernels of emitted code on this device and prints a device profile, which `sluice plan` and\n"
      " * `sluice predict` take (--profile FILE --threads 1). The clock and the way out may be replaced: see sluice_ticks below. C99. "
      "*/\n\n";
  text += measurer.text + "\n/* Which stage each sample is timed by, and what is printed before its time. */\n";
  text += c_array("stage_of", std::vector<std::uint16_t>(measurer.stages.begin(), measurer.stages.end()));
  text += "static const char *const pieces[] = {\n";
  for (const std::string& piece : pieces) text += "  " + quoted(piece) + ",\n";
  text += "};\n" + std::string(kMain);
  const std::string arena = "ARENA_BYTES";
  return text.replace(text.find(arena), arena.size(), std::to_string(measurer.arena_bytes));
}

}  // namespace sluice::emit
