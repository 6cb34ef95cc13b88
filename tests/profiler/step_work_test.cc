#include "sluice/profiler/step_work.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/profiler/sample_graph.h"
#include "src/profiler/sampler.h"
#include "src/profiler/typed_nodes.h"

namespace sluice::profiler {
namespace {

StepWork work_of_node(const model::Graph& graph, const model::Node& node, const kernels::KernelDescriptor& kernel) {
  const RowExtents out = row_extents(graph.tensor(node.outputs[0]).shape);
  return work_of(kernel, KernelUse::kRun, graph, node, {{0, out.rows}, {0, model::step_channels(graph, node)}});
}

TEST_CASE("the shape of a step's work is that of its resolved call") {
  const model::Graph graph = sample_graph();
  std::set<std::uint16_t> functions;
  int convolutions = 0;
  for (const model::Node& node : graph.nodes) {
    const kernels::KernelDescriptor& kernel = *kernels::kernels_for(graph, node).front();
    const StepWork work = work_of_node(graph, node, kernel);
    INFO(node.name << " on " << kernel.name);
    if (node.op == model::OpKind::kConv) {
      const auto& a = node.as<model::ConvAttributes>();
      CHECK(work.shape.rows == a.window.out_h);
      CHECK(work.shape.columns == a.window.out_w);
      CHECK(work.shape.channels == a.out_channels);
      CHECK(work.shape.depth == a.in_channels / a.groups);
      CHECK(work.shape.taps == a.window.taps());
      CHECK(work.shape.stride == std::max(a.window.stride_h, a.window.stride_w));
      ++convolutions;
    }
    if (node.op == model::OpKind::kDense) CHECK(work.shape.depth == node.as<model::DenseAttributes>().in_features);
    if (kernel.id == kernels::kernel_id::kUnary) functions.insert(work.variant);
  }
  CHECK(convolutions > 100);
  CHECK(functions.size() >= 7);
}

TEST_CASE("slices and concatenations are as many rows as pieces that are copied") {
  model::Graph graph;
  const auto tensor = [&](const Shape& shape) {
    graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), DType::kF32, shape, {}});
    return TensorId(graph.tensors.size() - 1);
  };
  const auto shape_of = [&](model::OpKind op, const std::vector<Shape>& inputs, const Shape& output, const model::Attributes& attributes) {
    model::Node node;
    node.op = op;
    for (const Shape& input : inputs) node.inputs.push_back(tensor(input));
    node.outputs = {tensor(output)};
    node.attributes = attributes;
    return work_of_node(graph, node, *kernels::kernels_for(graph, node).front()).shape;
  };
  const auto slice = [&](const Shape& in, const Shape& out, int axis = 0, std::int64_t step = 1) {
    model::SliceAttributes attributes;
    attributes.step[static_cast<std::size_t>(axis)] = step;
    return shape_of(model::OpKind::kSlice, {in}, out, attributes);
  };
  const StepShape half = slice({1, 28, 28, 64}, {1, 28, 28, 32});  // of the channels
  CHECK((half.rows == 28 * 28 && half.columns == 1 && half.channels == 32));
  CHECK(slice({2, 28, 28, 64}, {1, 28, 28, 64}).rows == 1);                       // one of two images
  CHECK(slice({1, 28, 28, 64}, {1, 14, 28, 64}).rows == 1);                       // the upper half
  CHECK(slice({1, 28, 28, 64}, {1, 28, 14, 64}).rows == 28);                      // the left one
  CHECK(slice({1, 44, 44, 24, 2}, {1, 44, 44, 24, 1}).rows == 44 * 44 * 24 / 8);  // each other value: some at once
  CHECK(slice({1, 28, 28, 64}, {1, 28, 28, 32}, 3, 2).rows == 28 * 28 * 32 / 8);
  const auto concat = [&](const Shape& each, const Shape& out, int axis) {
    return shape_of(model::OpKind::kConcat, {each, each}, out, model::AxisAttributes{axis});
  };
  CHECK(concat({1, 28, 28, 32}, {1, 28, 28, 64}, 3).rows == 2 * 28 * 28);
  CHECK(concat({1, 28, 28, 32}, {2, 28, 28, 32}, 0).rows == 2);
}

TEST_CASE("an inference touches all weights, and the most that lives at once") {
  model::Graph graph;
  const auto tensor = [&](std::int64_t values) {
    graph.tensors.push_back({"t" + std::to_string(graph.tensors.size()), DType::kF32, Shape{values}, {}});
    return TensorId(graph.tensors.size() - 1);
  };
  const auto node = [&](std::vector<TensorId> inputs, TensorId output) {
    graph.nodes.emplace_back();
    graph.nodes.back().inputs = std::move(inputs);
    graph.nodes.back().outputs = {output};
  };
  // a -> b -> c -> d, and b is read again at the end: it lives beside c and d.
  const TensorId a = tensor(10), b = tensor(20), c = tensor(40), d = tensor(5);
  node({a}, b);
  node({b}, c);
  node({c, b}, d);
  CHECK(run_bytes_of(graph) == 4 * (20 + 40 + 5));
  graph.weights.emplace_back();
  graph.weights.back().bytes = Bytes(1000);
  CHECK(run_bytes_of(graph) == 1000 + 4 * (20 + 40 + 5));
  // Of a table that is nothing but looked up, the rows that are read.
  graph.nodes.front().op = model::OpKind::kEmbedding;
  graph.nodes.front().weights = {WeightId(0)};
  CHECK(run_bytes_of(graph) == 4 * 20 + 4 * (20 + 40 + 5));
  graph.nodes.back().weights = {WeightId(0)};
  CHECK(run_bytes_of(graph) == 1000 + 4 * (20 + 40 + 5));
}

TEST_CASE("half-filled tiles are work of their own") {
  StepWork full({1'000'000, 100, 100, 100}, {.rows = 14, .columns = 14, .channels = 64, .depth = 64}, 0);
  StepWork odd = full;
  odd.shape.columns = 15;
  const detail::TileExtent tile = detail::tile_of("avx512");
  CHECK(detail::terms_of(kernels::kernel_id::kConvDirect, full, tile)[5] == 0);
  odd.shape.rows = 1;
  CHECK(detail::terms_of(kernels::kernel_id::kConvDirect, odd, tile)[5] == Approx(1'000'000 * (28.0 / 15 - 1)));
  CHECK(detail::features_of(odd, tile) != detail::features_of(full, tile));
  odd.shape.channels = 33;
  const Terms direct = detail::terms_of(kernels::kernel_id::kConvDirect, odd, tile),
              pixels = detail::terms_of(kernels::kernel_id::kConvPointwise, odd, tile);
  CHECK(direct[1] == Approx(1'000'000 * 48.0 / 33));  // the third panel's lanes that are no outputs
  CHECK(direct[6] == 15);                             // a tap of each pixel
  CHECK(pixels[1] == 1'000'000);
  CHECK(pixels[6] == Approx(1'000'000 * (48.0 / 33 - 1)));
  for (const Terms& terms : {direct, pixels}) {
    CHECK(terms[5] == Approx(1'000'000 * 48.0 / 33 * (28.0 / 15 * 4 / 3 - 1)));  // 15 of 28 pixels, three of four panels
    CHECK(terms[7] == 2 * 2);                                                    // tiles
  }
}

TEST_CASE("depthwise windows that tiles slide over are work of their own, and so is a panel that is not whole") {
  StepWork work({1'000'000, 100, 100, 1000}, {.rows = 2, .columns = 3, .channels = 32, .taps = 9}, 0);
  const auto taps = [&] {
    const Terms terms = detail::terms_of(kernels::kernel_id::kConvDepthwise, work, {});
    return std::array{terms[1], terms[13], terms[4], terms[5]};
  };
  // Taps beyond the map are left out.
  const auto inside = [](double window, double stride) { return std::pow(detail::taps_inside(3, window, stride), 2); };
  CHECK(taps() == std::array{2.0 * 3 * 2 * 9 * inside(3, 1), 0.0, 0.0, 0.0});
  work.shape.stride = 2;
  CHECK(taps() == std::array{0.0, 2.0 * 3 * 2 * 9 * inside(3, 2), 0.0, 0.0});
  work.shape.stride = 3;
  CHECK(taps() == std::array{0.0, 0.0, 2.0 * 3 * 2 * 9, 0.0});
  work.shape.channels = 40;
  CHECK(taps() == std::array{0.0, 0.0, 2.0 * 3 * 2 * 9, 2.0 * 3 * 9 * inside(3, 3)});
  work.shape = {.rows = 2, .columns = 3, .channels = 16, .taps = 49};
  CHECK(taps() == std::array{2.0 * 3 * 49 * inside(7, 1), 0.0, 0.0, 0.0});
}

TEST_CASE("weights that caches have lost, and outputs with an activation that takes long, are work of their own") {
  StepWork work({1'000'000, 100, 100, 1000}, {.rows = 2, .columns = 3, .channels = 5}, 0);
  const auto lost = [&](std::uint64_t run_bytes) {
    work.run_bytes = run_bytes;
    const Terms terms = detail::terms_of(kernels::kernel_id::kConvDirect, work, {});
    return std::pair(terms[9], terms[10]);
  };
  CHECK(lost(0) == std::pair(0.0, 0.0));  // not known
  CHECK(lost(1 << 20) == std::pair(0.0, 0.0));
  CHECK(lost(2 << 20).first == Approx(500));
  CHECK(lost(8 << 20) == std::pair(1000.0, 0.0));
  CHECK(lost(200 << 20) == std::pair(1000.0, 1000.0));
  // What others bring in meanwhile leaves a core's own cache alone.
  work.shared_bytes = 200 << 20;
  CHECK(lost(2 << 20).first == Approx(500));
  CHECK(lost(2 << 20).second == 1000);
  CHECK(lost(8 << 20) == std::pair(1000.0, 1000.0));
  work.shared_bytes = 0;
  for (const std::uint32_t epilogue : {1u, 2u, 3u}) {
    work.shape.epilogue = epilogue;
    const Terms terms = detail::terms_of(kernels::kernel_id::kConvDirect, work, {});
    CHECK(terms[11] == (epilogue == 2 ? 30 : 0));
    CHECK(terms[12] == (epilogue == 3 ? 30 : 0));
  }
}

TEST_CASE("candidates are whole steps, slices and bands of every family, and what is derived") {
  auto timer = StepTimer::create(1);
  REQUIRE(timer);
  const model::Graph graph = sample_graph();
  std::set<KernelId> kernels;
  std::set<KernelUse> uses;
  bool sliced = false, banded = false;
  for (const Candidate& candidate : candidates_of(graph, *timer)) {
    kernels.insert(candidate.kernel.kernel);
    uses.insert(candidate.kernel.use);
    sliced = sliced || candidate.request.share < 1;
    banded = banded || (candidate.request.share_of_rows < 1 && candidate.work.shape.rows < 56);
  }
  CHECK(uses.size() == 3);
  CHECK(sliced);
  CHECK(banded);
  namespace id = kernels::kernel_id;
  for (const KernelId wanted :
       {id::kConvDirect, id::kConvPointwise, id::kConvDepthwise, id::kConvGroupedLanes, id::kDense,          id::kPool,   id::kBinary,
        id::kUnary,      id::kAffine,        id::kSoftmax,       id::kResize,           id::kConvTransposed, id::kMatMul, id::kConvWinograd,
        id::kLayerNorm,  id::kAttention,     id::kRecurrent,     id::kConcat,           id::kSlice,          id::kPad,    id::kTranspose})
    CHECK(kernels.contains(wanted));
}

/// What a sampler measures of these, of nets of f32.
Result<std::vector<KernelSample>> samples_of(const MeasureOptions& options, StepTimer& timer, const std::vector<Candidate>& corpus) {
  Measured measured;
  SLUICE_RETURN_IF_ERROR(Sampler(options, options.types.front(), timer, {}, corpus, measured).run());
  return measured.in_seconds(options.threads);
}

TEST_CASE("a measurement stops at its limit, tells what it keeps, and goes on from it") {
  auto timer = StepTimer::create(1);
  REQUIRE(timer);
  const model::Graph graph = sample_graph();
  // Small steps only: this is about counting, not about times.
  std::vector<Candidate> small;
  for (const Candidate& candidate : candidates_of(graph, *timer))
    if (candidate.work.cost.flops < 2'000'000) small.push_back(candidate);
  REQUIRE(small.size() > 60);
  MeasureOptions options;
  options.most = 55;
  options.seconds = 1e9;
  std::vector<KernelSample> kept;
  options.progress_context = &kept;
  options.keep = [](void* context, NetType, const std::vector<KernelSample>& samples, double) {
    *static_cast<std::vector<KernelSample>*>(context) = samples;
  };
  const auto first = samples_of(options, *timer, small);
  REQUIRE(first);
  CHECK(first->size() == 55);
  CHECK(kept.size() == 55);
  for (std::size_t i = 0; i < first->size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      CHECK_FALSE(((*first)[i].kernel == (*first)[j].kernel && (*first)[i].work.shape == (*first)[j].work.shape &&
                   (*first)[i].work.cost.flops == (*first)[j].work.cost.flops &&
                   (*first)[i].work.cost.input_bytes == (*first)[j].work.cost.input_bytes &&
                   (*first)[i].work.cost.weight_bytes == (*first)[j].work.cost.weight_bytes));

  // More that are known than are asked for are enough.
  MeasureOptions fewer = options;
  fewer.most = 20;
  fewer.types = {{NetType::kF32, &*first}};
  const auto taken = samples_of(fewer, *timer, small);
  REQUIRE(taken);
  REQUIRE(taken->size() == fewer.most);
  REQUIRE(kept.size() == fewer.most);
  for (std::size_t i = 0; i < fewer.most; ++i) {
    CHECK(kept[i].seconds == Approx((*taken)[i].seconds));
    CHECK(std::any_of(first->begin(), first->end(), [&](const KernelSample& known) { return known.seconds == kept[i].seconds; }));
  }

  const auto again = samples_of(options, *timer, {small.front()});
  REQUIRE(again);
  CHECK(again->size() == 1);
  options.types = {{NetType::kF32, &*again}};
  std::size_t told = 0;
  options.keep = nullptr;
  options.progress_context = &told;
  const auto resumed = samples_of(options, *timer, {small.front()});
  REQUIRE(resumed);
  CHECK(resumed->front().seconds == Approx(again->front().seconds));  // it was not measured again

  // What was kept is in seconds of the machine of that time, of which an anchor tells.
  options.types = {{NetType::kF32, &*again, 1e-3}};
  Measured measured;
  REQUIRE(Sampler(options, options.types.front(), *timer, {}, {small.front()}, measured).run());
  REQUIRE(measured.times.size() == 1);
  CHECK(measured.times.front().front().anchors == Approx(again->front().seconds / 1e-3));
  CHECK(measured.anchor() == std::optional(1e-3));
}

TEST_CASE("samples of all types of nets are of one quiet machine") {
  Measured measured;
  measured.samples.resize(2);
  // The first type was measured while the machine was slow, all but once; what waits for memory took no longer.
  measured.times = {{{1.3, 1.95e-4}, {1.35, 2.025e-4}, {2, 2e-4}, {1.4, 2.1e-4}, {2.02, 2.02e-4}, {1.98, 1.98e-4}}, {{3, 3e-4}, {3, 3e-4}}};
  measured.anchor_seconds = {1.5e-4, 1.5e-4, 1e-4, 1.5e-4, 1e-4, 1e-4, 1e-4, 1e-4};
  const std::vector<KernelSample> samples = measured.in_seconds(1);
  CHECK(samples[0].seconds == Approx(2e-4));
  CHECK(samples[1].seconds == Approx(3e-4));
  CHECK(Measured().anchor() == std::nullopt);
}

TEST_CASE("steps in turn are each timed, in a run of the size asked for or of what they need") {
  auto timer = StepTimer::create(2);
  REQUIRE(timer);
  const model::Graph graph = sample_graph();
  StepTimer::Turn turn;
  std::uint64_t most_weights = 0;
  for (const Candidate& candidate : candidates_of(graph, *timer)) {
    const kernels::CostFeatures& cost = candidate.work.cost;
    if (std::max({cost.flops, cost.input_bytes, cost.output_bytes, cost.weight_bytes}) > 200'000 || turn.steps.size() == 12) continue;
    turn.steps.push_back(candidate.request);
    most_weights = std::max(most_weights, candidate.work.cost.weight_bytes);
  }
  for (const std::uint64_t asked : {std::uint64_t{1}, std::uint64_t{3} << 20}) {
    turn.run_bytes = asked;
    const auto timed = timer->time_in_turn(turn, 0);
    REQUIRE(timed);
    REQUIRE(timed->size() == 12);
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < turn.steps.size(); ++i) {
      REQUIRE((*timed)[i]);
      const TimedStep& step = *(*timed)[i];
      CHECK(step.seconds > 0);
      CHECK(step.extent.channels.end == timer->extent_of(turn.steps[i]).channels.end);
      // Its own weights and tensors at least, and no more than the round has.
      CHECK(step.run_bytes >= most_weights);
      CHECK(step.run_bytes < std::uint64_t{4} << 20);
      CHECK(step.shared_bytes == step.run_bytes);  // nobody has watched the others
      most = std::max(most, step.run_bytes);
    }
    CHECK(most >= most_weights);
    if (asked > most_weights) CHECK(most > asked / 2);
  }
}

TEST_CASE("each kernel has its quota, and runs of many sizes are measured") {
  auto timer = StepTimer::create(1);
  REQUIRE(timer);
  const model::Graph graph = sample_graph();
  std::vector<Candidate> small;
  std::map<UsedKernel, std::size_t> candidates, samples;
  // Of kernels of other nets a few are measured, of whatever variant.
  const auto kind_of = [](UsedKernel kernel, bool of_f32) {
    return UsedKernel{kernel.kernel, kernel.use, of_f32 ? kernel.variant : std::uint16_t{0}};
  };
  std::map<KernelId, bool> of_f32;
  for (const Candidate& candidate : candidates_of(graph, *timer)) {
    if (candidate.work.cost.flops >= 1'000'000) continue;
    small.push_back(candidate);
    of_f32[candidate.kernel.kernel] = type_of(graph, candidate.request.node) == NetType::kF32;
    ++candidates[kind_of(candidate.kernel, of_f32[candidate.kernel.kernel])];
  }
  MeasureOptions options;
  options.most = 3 * candidates.size();
  options.seconds = 1e9;
  const auto measured = samples_of(options, *timer, small);
  REQUIRE(measured);
  CHECK(measured->size() <= options.most);
  std::set<std::uint64_t> runs;
  for (const KernelSample& sample : *measured) {
    ++samples[kind_of(sample.kernel, of_f32.at(sample.kernel.kernel))];
    CHECK(sample.work.run_bytes > 0);
    runs.insert(sample.work.run_bytes);
  }
  CHECK(samples.size() == candidates.size());  // nobody is starved
  CHECK(runs.size() > 4);
  CHECK(*runs.begin() < std::uint64_t{2} << 20);  // such as fit a core's own cache, and such as fit none
  CHECK(*runs.rbegin() > std::uint64_t{30} << 20);
}

TEST_CASE("a profile without kernels cannot be transferred") {
  CHECK(transfer_profile({}, {}).error().code == ErrorCode::kInvalidArgument);
  DeviceProfile other;
  other.kernels.push_back({});
  CHECK(transfer_profile(other, {.threads = 0}).error().code == ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::profiler
