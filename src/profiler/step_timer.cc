#include "src/profiler/step_timer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <numeric>

#include "src/profiler/cache_meter.h"
#include "src/profiler/step_call.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {
namespace {

constexpr double kLongEnough = 0.03;  // seconds of runs that make a sample
constexpr double kTooLong = 0.3;
constexpr double kBetweenAnchors = 0.05;
constexpr std::size_t kLeastRuns = 5;
constexpr std::size_t kMostRuns = 300;  // for steps that are so short that reading the clock takes as long
// After another load, whose bytes are in the caches, the first runs of an anchor take a tenth or a fifth longer. (Counted, they made steps of
// small nets come out a sixth too long.)
constexpr int kSettlingRuns = 6;
constexpr int kAnchorRuns = 3;
constexpr double kAlone = 1.4;

/// The mean of all but the longest tenth: a run's time is the sum of its steps', so what slows every step a little counts, and what stopped
/// one does not.
double usual(std::vector<double> values) {
  const std::size_t counted = values.size() - values.size() / 10;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(counted - 1), values.end());
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(counted), 0.0) / static_cast<double>(counted);
}

}  // namespace

void fill_with_values(std::byte* data, std::uint64_t bytes) {
  auto* const floats = reinterpret_cast<float*>(data);
  std::uint32_t state = 1;
  for (std::uint64_t i = 0; i < bytes / sizeof(float); ++i) {
    state = state * 1664525u + 1013904223u;
    floats[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
}

StepTimer::Call::Rooms StepTimer::Call::rooms() const {
  Rooms rooms;
  rooms.derived = room_for(derived_bytes());
  if (request.use == KernelUse::kPrepare) return rooms;  // reads weights alone
  for (const TensorId id : request.node.inputs) rooms.inputs += room_for(tensor(id).bytes());
  for (const TensorId id : request.node.outputs) rooms.outputs += room_for(tensor(id).bytes());
  rooms.workspace = room_for(kernels::workspace_bytes(request.kernel, request.graph, request.node, extent));
  return rooms;
}

void StepTimer::Call::lie_at(const Places& places) {
  const auto operands = [&](std::byte* at, const std::vector<TensorId>& ids) {
    std::vector<kernels::Operand> all;
    for (const TensorId id : ids) {
      all.push_back({dense_view(at, tensor(id).shape, tensor(id).dtype), tensor(id).shape});
      at += room_for(tensor(id).bytes());
    }
    return all;
  };
  inputs = operands(places.inputs, request.node.inputs);
  outputs = operands(places.outputs, request.node.outputs);
  weights.clear();
  for (std::size_t i = 0; i < request.node.weights.size(); ++i) weights.push_back({nullptr, panels_of(i), weight(i).panel_bytes});
  if (request.use != KernelUse::kRun) derived = {places.derived, panels_of(0)};
  workspace = places.workspace;
  resolved = request.kernel.resolve(request.graph, request.node, active_isa());
}

struct StepTimer::Anchor {
  Call call;
  Arena arena;
  RingPlace weights;
};

StepTimer::StepTimer() noexcept = default;
StepTimer::StepTimer(StepTimer&&) noexcept = default;
StepTimer& StepTimer::operator=(StepTimer&&) noexcept = default;
StepTimer::~StepTimer() = default;

Status StepTimer::set_anchor(const Request& request) {
  anchor_ = std::make_unique<Anchor>(Anchor{Call{request, extent_of(request), {}, {}, {}, {}}, {}, {}});
  return place(anchor_->call, anchor_->arena);
}

double StepTimer::time_anchor() {
  if (!anchor_) return 1;
  const auto run = [&] { return run_once(anchor_->call, anchor_->weights); };
  for (int i = 0; i < kSettlingRuns; ++i) run();
  double least = run();
  for (int i = 1; i < kAnchorRuns; ++i) least = std::min(least, run());
  // Threads that were disturbed keep out of a pool's calls for a while (sharing.h); what one thread takes is no measure of what all take.
  const Clock::time_point start = Clock::now();
  while (pool_->thread_count() > 1 && least_anchor_ < least / kAlone && seconds_since(start) < waiting_left_)
    least = std::min(least, run());
  waiting_left_ -= std::min(waiting_left_, seconds_since(start));
  least_anchor_ = std::min(least_anchor_, least);
  return least;
}

double StepTimer::time_sharing() noexcept {
  constexpr std::size_t kCalls = 501, kTasks = 64;
  struct alignas(64) Line {
    std::int64_t written = 0;
  };
  std::array<Line, kTasks> lines;
  std::array<double, kCalls> seconds{};
  const std::int64_t tasks = std::min<std::int64_t>(pool_->thread_count(), kTasks);
  if (tasks == 1) return 0;
  for (std::size_t call = 0; call < kCalls; ++call) {
    const Clock::time_point start = Clock::now();
    parallel_for(*pool_, tasks, [&](std::int64_t task, int) noexcept {
      lines[static_cast<std::size_t>((task + static_cast<std::int64_t>(call)) % tasks)].written += task;
    });
    seconds[call] = seconds_since(start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kCalls / 2, seconds.end());
  return seconds[kCalls / 2];
}

Result<StepTimer> StepTimer::create(int threads, Bytes memory) {
  StepTimer timer;
  SLUICE_ASSIGN_OR_RETURN(timer.pool_, make_thread_pool(threads));
  const Bytes ring(std::clamp(memory.count() / 4, kLeastRing, kMostRunBytes));
  SLUICE_ASSIGN_OR_RETURN(timer.ring_, Arena::reserve(ring));
  SLUICE_RETURN_IF_ERROR(timer.ring_.commit(ring));
  fill_with_values(timer.ring_.data(), ring.count());
  return timer;
}

void StepTimer::fill_weights(NetType type) noexcept {
  if (type == NetType::kF32) return fill_with_values(ring_.data(), ring_.committed().count());
  // Each half of a word is of the same size, of either sign: as bf16, as the f16 scale of 4 bits, and as upper half of an f32, which is a scale
  // of 8 bits. That is 2^-9 to 2^-7; of f16 2^-5 to 2^-4, of its scales of 4 bits 2^-6 to 2^-5.
  const std::uint32_t size = type == NetType::kF16 ? 0x2a : type == NetType::kInt4 ? 0x24 : 0x3b;
  const std::uint32_t sizes = size << 24 | size << 8;
  auto* const words = reinterpret_cast<std::uint32_t*>(ring_.data());
  std::uint32_t state = 1;
  for (std::uint64_t i = 0; i < ring_.committed().count() / sizeof(std::uint32_t); ++i) {
    state = state * 1664525u + 1013904223u;
    words[i] = ((state ^ state >> 16) & 0x80ff80ffu) | sizes;
  }
}

double StepTimer::watch_others() {
  return others_bytes_per_second_ = measure_others({ring_.data(), static_cast<std::size_t>(ring_.committed().count())});
}

std::uint64_t StepTimer::most_run_bytes() const noexcept { return ring_.committed().count(); }

kernels::StepExtent StepTimer::extent_of(const Request& request) const {
  const model::Node& node = request.node;
  kernels::StepExtent extent{{0, row_extents(request.graph.tensor(node.outputs[0]).shape).rows},
                             {0, model::step_channels(request.graph, node)},
                             pool_->thread_count(),
                             request.use == KernelUse::kRunDerived};
  if (request.kernel.slices_rows && request.share_of_rows < 1)
    extent.rows.end = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(extent.rows.end) * request.share_of_rows));
  if (!request.kernel.slices_channels || node.weights.empty()) return extent;
  const model::Weight& weight = request.graph.weight(node.weights[0]);
  const double panel_bytes =
      static_cast<double>(weight.panel_bytes.count()) +
      (request.use == KernelUse::kRun ? 0.0
                                      : static_cast<double>(kernels::derived_panel_bytes(request.kernel, request.graph, node).count()));
  const double fits = static_cast<double>(kLeastRing) / 2 / (panel_bytes * static_cast<double>(weight.panels));
  const double taken = std::min(request.share, fits);
  if (taken >= 1) return extent;
  const std::int64_t panels = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(weight.panels) * taken));
  extent.channels = model::channels_of_panels({0, panels}, model::outputs_per_group(node), extent.channels.end);
  return extent;
}

/// Lays out inputs, output, workspace, and the derived weights that a preparation writes.
Status StepTimer::place(Call& call, Arena& arena) {
  const Call::Rooms rooms = call.rooms();
  SLUICE_RETURN_IF_ERROR(make_room(arena, rooms.inputs + rooms.outputs + rooms.workspace + rooms.derived));
  std::byte* const outputs = arena.data() + rooms.inputs;
  std::byte* const workspace = outputs + rooms.outputs;
  call.lie_at({arena.data(), outputs, workspace, workspace + rooms.workspace});
  return {};
}

Status StepTimer::make_room(Arena& arena, std::uint64_t bytes) {
  if (Bytes(bytes) > arena.committed()) {
    SLUICE_ASSIGN_OR_RETURN(arena, Arena::reserve(Bytes(bytes)));
    SLUICE_RETURN_IF_ERROR(arena.commit(Bytes(bytes)));
  }
  fill_with_values(arena.data(), bytes);
  return {};
}

/// The next run's weights: a part of the ring that was not read for long.
void StepTimer::place_weights(Call& call, RingPlace& place) {
  if (place.at + call.ring_bytes() > place.end) place.at = 0;
  const auto take = [&](Bytes size) {
    std::byte* const data = ring_.data() + place.at;
    place.at += room_for(size);
    return data;
  };
  for (std::size_t i = 0; i < call.weights.size(); ++i) call.weights[i].data = take(call.bytes_of_weight(i));
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorId id = call.request.node.inputs[i];
    if (call.comes_from_ring(id)) call.inputs[i].view.data = take(call.tensor(id).bytes());
  }
  if (call.request.use == KernelUse::kRunDerived) {
    call.derived.data = take(call.derived_bytes());
    call.weights[0].data = nullptr;
  }
}

double StepTimer::run_once(Call& call, RingPlace& weights, Clocks clocks, std::span<const std::byte> next) {
  place_weights(call, weights);
  const kernels::ResolvedCall& resolved = call.resolved;
  const kernels::KernelCall step{.parameter_data = resolved.parameters.data(),
                                 .inputs = call.inputs,
                                 .outputs = call.outputs,
                                 .weights = call.weights,
                                 .next_weights = next,
                                 .derived = call.derived,
                                 .rows = call.extent.rows,
                                 .channels = call.extent.channels,
                                 .workspace = call.workspace,
                                 .pool = pool_.get()};
  const kernels::KernelEntry run = call.request.use == KernelUse::kPrepare ? resolved.prepare : resolved.run;
  const bool alone = clocks == Clocks::kBoth && pool_->thread_count() == 1;
  const double cpu = alone ? cpu_seconds() : 0;
  const Clock::time_point start = Clock::now();
  run(step);
  const double wall = seconds_since(start);
  // While the system runs somebody else on our processor only the clock on the wall goes on.
  return alone ? std::min(wall, cpu_seconds() - cpu) : wall;
}

Result<std::optional<TimedStep>> StepTimer::time(const Request& request) {
  Call call{request, extent_of(request), {}, {}, {}, {}};
  if (call.ring_bytes() > kLeastRing) return std::optional<TimedStep>();
  SLUICE_RETURN_IF_ERROR(place(call, arena_));
  RingPlace weights;
  double spent = run_once(call, weights);  // touches pages, wakes threads
  std::vector<double> seconds, anchors;
  if (spent > kTooLong) seconds.push_back(spent);
  double anchor = time_anchor();
  if (!seconds.empty()) anchors.push_back(seconds.front() / anchor);
  const auto more = [&](std::size_t runs) { return spent < kTooLong && runs < kMostRuns && (spent < kLongEnough || runs < kLeastRuns); };
  while (more(seconds.size())) {
    std::vector<double> chunk;
    for (double in_chunk = 0; in_chunk < kBetweenAnchors && more(seconds.size() + chunk.size());) {
      chunk.push_back(run_once(call, weights));
      in_chunk += chunk.back();
      spent += chunk.back();
    }
    const double after = time_anchor(), unit = 0.5 * (anchor + after);
    for (const double each : chunk) anchors.push_back(each / unit);
    seconds.insert(seconds.end(), chunk.begin(), chunk.end());
    anchor = after;
  }
  return std::optional<TimedStep>({call.extent, std::max(usual(std::move(seconds)), 1e-9), std::max(usual(std::move(anchors)), 1e-9)});
}

Result<Together> StepTimer::time_beside_reads(const Request& request, const Reading& reading) {
  struct Work {
    StepTimer& timer;
    Call call;
    RingPlace weights;
  };
  Work work{*this, Call{request, extent_of(request), {}, {}, {}, {}}, {}};
  SLUICE_RETURN_IF_ERROR(place(work.call, arena_));
  const auto run = [](void* context) {
    Work& w = *static_cast<Work*>(context);
    w.timer.run_once(w.call, w.weights);
  };
  return measure_together(reading, run, &work);
}

}  // namespace sluice::profiler
