#include "sluice/emit/measure.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sluice/core/units.h"
#include "sluice/emit/memory_plan.h"
#include "sluice/kernels/registry.h"
#include "src/emit/kernels.h"
#include "src/emit/packed_text.h"
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
                           {5, 5, 12, 8, 3, 1, 1},
                           {6, 6, 8, 5, 5, 1, 1},
                           {12, 12, 8, 16, 1, 1, 1},
                           {8, 8, 16, 48, 1, 1, 1},
                           {6, 6, 48, 16, 1, 1, 1},
                           {4, 4, 96, 10, 1, 1, 1},
                           {7, 7, 13, 29, 1, 1, 1},
                           {12, 12, 16, 16, 3, 2, 16},
                           {6, 6, 48, 48, 3, 1, 48},
                           {6, 6, 24, 24, 5, 1, 24},
                           {5, 5, 20, 20, 7, 1, 20},
                           {8, 8, 16, 16, 3, 1, 4}},
          .dense = {{1, 32, 10}, {1, 64, 16}, {4, 32, 16}},
          .maps = {{8, 8, 16},
                   {8, 8, 12},
                   {10, 10, 8},
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

/// All layers read the same weights, which count in the flash of the device: so many values.
constexpr std::int64_t kMostWeights = 1 << 10;

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
      if (graph_.weight(weight).shape.element_count() > kMostWeights) return;
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
std::vector<profiler::KernelSample> samples_of(const model::Graph& graph, NodeId id) {
  const model::Node& node = graph.node(id);
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  std::vector<profiler::KernelSample> samples;
  for (const kernels::KernelDescriptor* kernel : profiler::sampled_kernels(graph, node)) {
    const profiler::StepWork work =
        profiler::work_of(*kernel, profiler::KernelUse::kRun, graph, node, {.rows = {0, out.rows}, .channels = {0, out.channels}});
    samples.push_back({{kernel->id, profiler::KernelUse::kRun, work.variant}, work});
  }
  return samples;
}

/// Products are timed in all layers. Of other kernels, whose layers differ in their extents alone, a few tell as much as all, and each
/// costs flash: every so many-th.
std::vector<NodeId> few_of_each(const model::Graph& graph, const std::vector<Stage>& stages) {
  constexpr std::size_t kFew = 3;
  std::map<std::pair<KernelId, std::uint16_t>, std::vector<NodeId>> alike;
  std::vector<NodeId> few;
  for (const Stage& stage : stages) {
    const std::vector<profiler::KernelSample> samples = samples_of(graph, stage.node);
    if (samples.empty()) continue;
    if (graph.node(stage.node).op == model::OpKind::kConv || graph.node(stage.node).op == model::OpKind::kDense)
      few.push_back(stage.node);
    else
      alike[{samples[0].kernel.kernel, samples[0].kernel.variant}].push_back(stage.node);
  }
  for (const auto& [kernel, nodes] : alike)
    for (std::size_t i = 0; i < nodes.size(); i += (nodes.size() + kFew - 1) / kFew) few.push_back(nodes[i]);
  std::sort(few.begin(), few.end());
  return few;
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

constexpr const char* kMain = R"(
static union {
  uint8_t bytes[ARENA_BYTES];
  float alignment;
} arena;
static float times[sizeof stages / sizeof *stages];
static uint8_t waiting[WAITING];
static char line[LONGEST];

int main(void) {
  const uint8_t *text = packed_text;
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
    text = sluice_print_packed(text, packed_pairs, waiting, line);
    sluice_print_time(times[stage_of[i]]);
  }
  sluice_print_packed(text, packed_pairs, waiting, line);
  return 0;
}
)";

}  // namespace

Result<Measurer> make_measurer(const MeasureOptions& options) {
  const model::Graph graph = profiler::graph_of(small_layers());
  Bench all(graph, options), bench(graph, options);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) all.add(NodeId(i));
  if (all.network.stages.empty() && all.least_arena != UINT64_MAX)
    return fail(make_error(ErrorCode::kBudgetTooSmall, "measure", "arena of the smallest layer", all.least_arena, options.ram));
  for (const NodeId node : few_of_each(graph, all.network.stages)) bench.add(node);
  if (bench.network.stages.empty()) return fail(ErrorCode::kUnsupported, "measure", "none of the model's kernels is measured");
  Measurer made{.stage_count = bench.network.stages.size(), .arena_bytes = bench.arena_bytes};
  ParameterWriter parameters(graph, bench.network, bench.plan);
  for (std::size_t i = 0; i < bench.network.stages.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(parameters.write(i));
    for (profiler::KernelSample& sample : samples_of(graph, bench.network.stages[i].node)) {
      made.samples.push_back(std::move(sample));
      made.stages.push_back(i);
    }
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
  const PackedText packed = pack_text(pieces);
  text += measurer.text + "\n/* Which stage each sample is timed by, and what is printed before its time. */\n";
  text += c_array("stage_of", std::vector<std::uint16_t>(measurer.stages.begin(), measurer.stages.end()));
  text += c_array("packed_text", packed.bytes) + c_array("packed_pairs", packed.pairs);
  std::string main_function = kMain;
  for (const auto& [word, number] : {std::pair<std::string_view, std::uint64_t>{"ARENA_BYTES", measurer.arena_bytes},
                                     {"WAITING", packed.most_waiting},
                                     {"LONGEST", packed.longest}})
    main_function.replace(main_function.find(word), word.size(), std::to_string(number));
  return text + main_function;
}

}  // namespace sluice::emit
