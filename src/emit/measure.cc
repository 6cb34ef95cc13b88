#include "sluice/emit/measure.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "sluice/core/units.h"
#include "sluice/emit/memory_plan.h"
#include "sluice/kernels/registry.h"
#include "src/emit/kernels.h"
#include "src/emit/model_layers.h"
#include "src/emit/packed_layers.h"
#include "src/emit/packed_text.h"
#include "src/emit/parameters.h"
#include "src/emit/text.h"
#include "src/emit/write.h"
#include "src/profiler/sample_graph.h"

namespace sluice::emit {
namespace {

/// Layers as networks for such devices have them, a few of each kernel and none large: narrow and wide, flat and deep, odd channels among
/// them. The operators of a map depend on its position (sample_graph.cc).
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

/// All layers read the same weights, which count in the flash of the device: so many values. More for a model's layers, since the time of a
/// product depends on the length of its sums.
constexpr std::int64_t kMostWeights = 1 << 10, kMostWeightsOfModel = 1 << 13;
/// So many layers of a model, at most: each takes some 50 bytes of flash.
constexpr std::size_t kMostLayers = 48;

/// Layers side by side as stages of one network, and their places: each as if it were alone.
class Bench {
 public:
  Bench(const model::Graph& graph, const MeasureOptions& options) : graph_(graph), options_(options) {}

  /// Is a stage, as make_stage has it, timed? Not if it has another kernel, or does not fit.
  bool add(const Stage& made) {
    if (options_.kernels && !options_.kernels->contains(made.kernel)) return false;
    Trial trial = laid_out(made, false);
    if (trial.arena > options_.ram && reads_by_pixel(made.kernel)) trial = laid_out(made, true);
    least_arena = std::min(least_arena, trial.arena);
    if (trial.arena > options_.ram) return false;
    arena_bytes = std::max(arena_bytes, trial.arena);
    network.storages.insert(network.storages.end(), trial.storages.begin(), trial.storages.end());
    plan.storages.insert(plan.storages.end(), trial.places.begin(), trial.places.end());
    plan.scratch.push_back(trial.scratch);
    plan.kept.push_back(trial.kept);
    one_pixel.push_back(trial.in_one_pixel);
    network.stages.push_back(std::move(trial.stage));
    return true;
  }

  Network network;
  MemoryPlan plan;
  std::vector<bool> one_pixel;  // by stage: whether all pixels of its tensors share the memory of one
  std::uint64_t arena_bytes = 0, least_arena = UINT64_MAX;

 private:
  struct Trial {
    Stage stage;
    std::vector<Storage> storages;
    std::vector<StoragePlace> places;
    std::uint64_t scratch = 0, kept = 0, arena = 0;
    bool in_one_pixel = false;
  };

  /// Whether the kernel finds pixels by row and column in a ring: then the time does not change if all of them share the memory of one.
  static bool reads_by_pixel(Kernel kernel) { return kernel != Kernel::kCopy && kernel != Kernel::kMatMul && kernel != Kernel::kMatMulU8; }

  Trial laid_out(Stage stage, bool in_one_pixel) const {
    const model::Node& node = graph_.node(stage.node);
    Trial trial{.arena = 2 * kPlaceBytes, .in_one_pixel = in_one_pixel};
    const auto place = [&](TensorId id) {
      const model::Tensor& t = graph_.tensor(id);
      trial.storages.push_back({.name = t.name, .dtype = t.dtype, .elements = t.shape.element_count()});
      const std::uint64_t bytes = trial.storages.back().bytes();
      const RowExtents view = row_extents(t.shape);
      trial.places.push_back({trial.arena, in_one_pixel ? bytes / static_cast<std::uint64_t>(view.rows * view.pixels) : bytes});
      trial.arena = aligned(trial.arena + trial.places.back().ring);
      return network.storages.size() + trial.storages.size() - 1;
    };
    for (const TensorId input : node.inputs)
      if (!graph_.tensor(input).weight.valid())
        stage.inputs.push_back({.storage = place(input), .view = row_extents(graph_.tensor(input).shape)});
    stage.storage = place(node.outputs[0]);
    trial.storages.back().maker = network.stages.size();
    trial.scratch = trial.arena;
    trial.kept = aligned(trial.scratch + stage.scratch_bytes);
    trial.arena = aligned(trial.kept + stage.kept_bytes);
    trial.stage = std::move(stage);
    return trial;
  }

  const model::Graph& graph_;
  const MeasureOptions& options_;
};

/// Emits the layer once for each of the engine's kernels that a plan may name for it, from derived weights too: emitted code has one kernel
/// where the engine has several. Convolutions that the engine would run as winograd4 are emitted as exact ones.
std::vector<profiler::KernelSample> samples_of(const model::Graph& graph, NodeId id) {
  using profiler::KernelUse;
  model::Node node = graph.node(id);
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  std::vector<profiler::KernelSample> samples;
  const auto add = [&](model::NumericClass numeric) {
    node.numeric = numeric;
    for (const kernels::KernelDescriptor* kernel : profiler::sampled_kernels(graph, node))
      for (const KernelUse use : {KernelUse::kRun, KernelUse::kRunDerived}) {
        if (use == KernelUse::kRunDerived && kernel->derived_panel_bytes == nullptr) continue;
        const profiler::StepWork work =
            profiler::work_of(*kernel, use, graph, node, {.rows = {0, out.rows}, .channels = {0, out.channels}});
        samples.push_back({{kernel->id, use, work.variant}, work});
      }
  };
  add(node.numeric);
  const bool exact_conv = node.op == model::OpKind::kConv && node.numeric == model::NumericClass::kExact;
  const Window window = exact_conv ? node.as<model::ConvAttributes>().window : Window{};
  if (window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 1 && window.stride_w == 1) add(model::NumericClass::kWinograd4);
  return samples;
}

/// How the least RAM cuts each layer of a network: initialisers of sluice_cut.
std::map<NodeId, std::string> cuts_of(const Network& network) {
  std::map<NodeId, std::string> cuts;
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const auto along = [&](const Along& a) { return braced(number(a.stride), number(a.ahead), number(a.divisor), number(a.extent)); };
  for (const Region& region : plan_smallest(network).regions)
    for (std::size_t i = region.first; i < region.last; ++i) {
      const Stage& stage = network.stages[i];
      if (!stage.node.valid() || stage.inputs.empty()) continue;
      const StageInput& input = stage.inputs[0];
      const std::optional<std::size_t> maker = network.storages[input.storage].maker;
      const bool waits = maker && region.contains(*maker) && !network.stages[*maker].folds;
      Reach reach{{.extent = input.view.rows}, {.extent = input.view.pixels}};  // as a layer without one has its window
      if (input.reach) reach = *input.reach;
      cuts[stage.node] = braced(braced(along(reach.row), along(reach.pixel)), number(granule_of(stage, region)),
                                number(waits ? granule_of(network.stages[*maker], region) : 0), input.reach ? "1" : "0");
    }
  return cuts;
}

/// Products are timed in all layers. Of other kernels, whose layers differ in their extents alone, a few tell as much as all, and each
/// costs flash: every so many-th.
std::vector<Stage> few_of_each(const model::Graph& graph, const std::vector<Stage>& stages) {
  constexpr std::size_t kFew = 3;
  std::map<std::pair<KernelId, std::uint16_t>, std::vector<Stage>> alike;
  std::vector<Stage> few;
  for (const Stage& stage : stages) {
    const std::vector<profiler::KernelSample> samples = samples_of(graph, stage.node);
    if (samples.empty()) continue;
    if (graph.node(stage.node).op == model::OpKind::kConv || graph.node(stage.node).op == model::OpKind::kDense)
      few.push_back(stage);
    else
      alike[{samples[0].kernel.kernel, samples[0].kernel.variant}].push_back(stage);
  }
  for (const auto& [kernel, same] : alike)
    for (std::size_t i = 0; i < same.size(); i += (same.size() + kFew - 1) / kFew) few.push_back(same[i]);
  std::sort(few.begin(), few.end(), [](const Stage& a, const Stage& b) { return a.node < b.node; });
  return few;
}

bool same_work(const profiler::KernelSample& a, const profiler::KernelSample& b) {
  const auto numbers = [](const profiler::KernelSample& s) {
    return std::tuple(s.kernel, s.work.cost.flops, s.work.cost.input_bytes, s.work.cost.output_bytes, s.work.cost.weight_bytes);
  };
  return numbers(a) == numbers(b) && a.work.shape == b.work.shape;
}

/// Which layers are timed: nodes of `graph`, which has the made-up ones behind the model's, and then those with fewer outputs.
class Layers {
 public:
  explicit Layers(const MeasureOptions& options) : options_(options) {
    const model::Graph small = profiler::graph_of(small_layers());
    if (options.model != nullptr) of_model_ = options.model->nodes.size();
    graph = options.model != nullptr ? side_by_side(*options.model, small) : small;
    made_up_ = graph.nodes.size();
    if (options.network != nullptr) cuts_ = cuts_of(*options.network);
  }

  /// How a layer is cut for the least RAM; nothing for a made-up layer.
  std::string cut_of(NodeId timed) const {
    const auto found = cuts_.find(timed);
    return found == cuts_.end() ? std::string() : found->second;
  }

  /// The same values as in make_stage.
  std::vector<Stage> choose() {
    std::vector<Stage> chosen = own(), made_up;
    Bench bench(graph, options_);
    for (std::size_t i = of_model_; i < made_up_; ++i) {
      const auto made = make_stage(graph, NodeId(i));
      if (made && !told_.contains(made->kernel) && with_few_weights(graph, NodeId(i), kMostWeights) == NodeId(i) && bench.add(*made))
        made_up.push_back(*made);
    }
    least_arena = std::min(least_arena, bench.least_arena);
    for (Stage& stage : few_of_each(graph, made_up)) chosen.push_back(std::move(stage));
    return chosen;
  }

  model::Graph graph;
  std::uint64_t least_arena = UINT64_MAX;  // of all that were looked at

 private:
  /// The model's layers, each once. They suffice for a kernel if none of its layers is left out.
  std::vector<Stage> own() {
    std::vector<profiler::KernelSample> seen;
    std::vector<Stage> stages;
    std::set<Kernel> left_out;
    Bench bench(graph, options_);
    for (std::size_t i = 0; i < of_model_; ++i) {
      const auto made = make_stage(graph, NodeId(i));
      if (!made) continue;
      const std::vector<NodeId> timed = timed_as(NodeId(i));
      if (timed.empty()) left_out.insert(made->kernel);
      for (const NodeId node : timed) {
        cuts_.emplace(node, cut_of(NodeId(i)));
        const std::vector<profiler::KernelSample> samples = samples_of(graph, node);
        const auto is_it = [&](const profiler::KernelSample& sample) { return same_work(sample, samples[0]); };
        if (!samples.empty() && std::any_of(seen.begin(), seen.end(), is_it)) continue;
        const Stage stage = node == NodeId(i) ? *made : *make_stage(graph, node);
        if (!samples.empty() && stages.size() < kMostLayers && bench.add(stage)) {
          seen.push_back(samples[0]);
          stages.push_back(stage);
          told_.insert(made->kernel);
        } else {
          left_out.insert(made->kernel);
        }
      }
    }
    for (const Kernel kernel : left_out) told_.erase(kernel);
    least_arena = bench.least_arena;
    return stages;
  }

  /// The node itself or, if it has too many weights, two with so few: what each output more takes follows from both.
  std::vector<NodeId> timed_as(NodeId id) {
    std::vector<NodeId> timed;
    for (const std::int64_t most : {kMostWeightsOfModel, kMostWeightsOfModel / 2}) {
      const std::optional<NodeId> node = with_few_weights(graph, id, most);
      if (node) timed.push_back(*node);
      if (node == id) break;
    }
    return timed;
  }

  const MeasureOptions& options_;
  std::size_t of_model_ = 0, made_up_ = 0;
  std::map<NodeId, std::string> cuts_;
  std::set<Kernel> told_;
};

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
static sluice_stage stages[2];
static sluice_input inputs[MOST_INPUTS];
static float times[LAYERS];
static uint8_t waiting[WAITING];
static char line[LONGEST];

int main(void) {
  const sluice_layers *group = groups;
  const sluice_port *port = ports;
  const uint8_t *text = packed_text;
  uint32_t i, layer = 0;
  if (sluice_ticks_per_second() == 0) {
    sluice_print("SLUICE_CLOCK_HZ is not defined");
    return 1;
  }
  for (; group < groups + sizeof groups / sizeof *groups; ++group)
    for (i = 0; i < group->count; ++i) {
      port = sluice_set_layer(stages, inputs, group, i, extents, port);
      memset(arena.bytes, 0x3f, sizeof arena.bytes); /* bytes, and floats below 1 */
      times[layer++] = sluice_time_of_layer(stages, arena.bytes);
    }
  for (i = 0; i < sizeof layer_of / sizeof *layer_of; ++i) {
    text = sluice_print_packed(text, packed_pairs, waiting, line);
    sluice_print_time(times[layer_of[i]]);
  }
  sluice_print_packed(text, packed_pairs, waiting, line);
  return 0;
}
)";

}  // namespace

Result<Measurer> make_measurer(const MeasureOptions& options) {
  Layers layers(options);
  const std::vector<Stage> chosen = layers.choose();
  if (chosen.empty() && layers.least_arena != UINT64_MAX)
    return fail(make_error(ErrorCode::kBudgetTooSmall, "measure", "arena of the smallest layer", layers.least_arena, options.ram));
  if (chosen.empty()) return fail(ErrorCode::kUnsupported, "measure", "none of the model's kernels is measured");
  const model::Graph& graph = layers.graph;
  Bench bench(graph, options);
  for (const Stage& stage : chosen) bench.add(stage);
  const std::vector<Stage>& stages = bench.network.stages;
  ParameterWriter parameters(graph, bench.network, bench.plan);
  std::vector<Layer> packing;
  Measurer made{.stage_count = stages.size(), .arena_bytes = bench.arena_bytes};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(std::string initialiser, parameters.initialiser(i));
    packing.push_back({&stages[i], std::move(initialiser), bench.plan.scratch[i], bench.one_pixel[i], layers.cut_of(stages[i].node)});
    made.most_inputs = std::max(made.most_inputs, stages[i].inputs.size());
  }
  const PackedLayers packed = pack_layers(bench.network, packing);
  for (std::size_t place = 0; place < packed.order.size(); ++place)
    for (profiler::KernelSample& sample : samples_of(graph, stages[packed.order[place]].node)) {
      made.samples.push_back(std::move(sample));
      made.stages.push_back(place);
    }
  sort_by_kernel(made);
  made.text = (packed.wide ? "#define SLUICE_WIDE_LAYERS\n\n" : "") + copied_headers(bench.network, "measure.h") + "\n" +
              parameters.stand_ins() + parameters.text + packed.text;
  return made;
}

std::string measure_program(const Measurer& measurer, const std::vector<std::string>& pieces) {
  std::string text =
      "/* Emitted by sluice: times the kernels of emitted code on this device and prints a device profile, which `sluice plan` and\n"
      " * `sluice predict` take (--profile FILE --threads 1). The clock and the way out may be replaced: see sluice_ticks below. C99. "
      "*/\n\n";
  const PackedText packed = pack_text(pieces);
  text += measurer.text + "\n/* Which layer each sample is timed by, and what is printed before its time. */\n";
  constexpr std::size_t kMostOfByte = 256;
  text += measurer.stage_count <= kMostOfByte
              ? c_array("layer_of", std::vector<std::uint8_t>(measurer.stages.begin(), measurer.stages.end()))
              : c_array("layer_of", std::vector<std::uint16_t>(measurer.stages.begin(), measurer.stages.end()));
  text += c_array("packed_text", packed.bytes) + c_array("packed_pairs", packed.pairs);
  std::string main_function = kMain;
  for (const auto& [word, number] : {std::pair<std::string_view, std::uint64_t>{"ARENA_BYTES", measurer.arena_bytes},
                                     {"MOST_INPUTS", measurer.most_inputs},
                                     {"LAYERS", measurer.stage_count},
                                     {"WAITING", packed.most_waiting},
                                     {"LONGEST", packed.longest}})
    main_function.replace(main_function.find(word), word.size(), std::to_string(number));
  return text + main_function;
}

}  // namespace sluice::emit
