// What a step's time depends on: the terms of the sum that is fitted, and the features of the correction (device_profile.h lists both,
// docs/prediction.md says what they are for).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "sluice/core/window.h"
#include "sluice/kernels/kernel_ids.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/kernel_kinds.h"
#include "sluice/profiler/shares.h"

namespace sluice::profiler {

/// What caches that cores share keep from one run to the next is all of a run of so many bytes.
inline constexpr std::uint64_t kSharedCachesKeep = 12 << 20;

namespace detail {

/// Rows x panels of 16 channels that an inner loop of this instruction set computes at once, and the threads that share a step's tiles.
struct TileExtent {
  double rows = 6, panels = 1;
  std::int64_t threads = 1;
};
inline TileExtent tile_of(std::string_view isa, int threads = 1) noexcept {
  constexpr int kMostThreads = 256;  // keeps hostile profiles from taking long
  const std::int64_t sharing = std::clamp(threads, 1, kMostThreads);
  if (isa == "avx512") return {14, 2, sharing};
  if (isa == "neon") return {5, 1, sharing};
  return isa == "scalar" ? TileExtent{2, 1, sharing} : TileExtent{6, 1, sharing};
}
inline TileExtent tile_of(const DeviceProfile& profile) noexcept { return tile_of(profile.isa, profile.threads); }

/// std::floor and std::ceil of what is at least 0 and below 2^63, as half the product of two extents is: where a processor need not have
/// instructions for these, they are calls.
inline double floor_of(double amount) noexcept { return static_cast<double>(static_cast<std::int64_t>(amount)); }
inline double ceil_of(double amount) noexcept {
  const double below = floor_of(amount);
  return below < amount ? below + 1 : below;
}

inline double pixels_of(const StepShape& shape) noexcept { return static_cast<double>(shape.rows) * shape.columns; }

/// A share of what a whole number of parts would hold.
inline double fullness(double extent, double part) noexcept { return extent / (ceil_of(extent / part) * part); }

/// The share of a run's bytes that a cache of some `most` bytes has lost when the next run comes: none of `least`, all of `most`.
inline double lost(std::uint64_t run_bytes, double least, double most) noexcept {
  const auto run = static_cast<double>(run_bytes);
  if (run <= least) return 0;
  return run >= most ? 1 : std::log(run / least) / std::log(most / least);
}

/// Bytes of input and output that a core's own cache does not hold.
inline double bytes_beyond(const StepWork& work) noexcept {
  constexpr double kOwnCache = 1 << 20;  // second-level caches have 0.25 to 2 MiB
  return std::max(0.0, static_cast<double>(work.cost.input_bytes) + static_cast<double>(work.cost.output_bytes) - kOwnCache);
}

/// Bytes of one tensor that such a cache does not hold beside all else that a step uses.
inline double bytes_crowded_out(std::uint64_t bytes) noexcept {
  constexpr double kBeside = 256 << 10;
  return std::max(0.0, static_cast<double>(bytes) - kBeside);
}

/// The share of a window's taps that lie in the map, on average over `outputs` places along one axis, of which the first and the last are
/// centred on its border.
inline double taps_inside(double outputs, double window, double stride) noexcept {
  constexpr double kWidest = 64;  // keeps hostile profiles from taking long
  if (outputs <= 0 || window <= 1 || window > kWidest) return 1;
  const double before = floor_of((window - 1) / 2), map = outputs * stride;
  double inside = 0;
  // Only the first and the last places reach beyond the map.
  const double most = std::min(outputs, 2 * window);
  for (double place = 0; place < most; ++place) {
    const double at = place < most / 2 ? place : outputs - (most - place);
    const double first = at * stride - before;
    inside += std::max(0.0, std::min(map, first + window) - std::max(0.0, first));
  }
  return (inside + (outputs - most) * window) / (outputs * window);
}

inline constexpr double kNearKeeps = 1 << 20, kNearLost = 4 << 20;  // of a run of so many bytes a core's own cache keeps nothing
// And the caches that cores share: some keep nothing of a run of 64 MiB, those of large processors nothing of one of 384.
inline constexpr double kFarKeeps = static_cast<double>(kSharedCachesKeep), kFarLost = 64 << 20;
inline constexpr double kFarthestLost = static_cast<double>(kMostRunBytes);

/// ln(1 + amount): of small amounts, which most extents are, from a table.
class Logarithms {
 public:
  static const Logarithms& get() noexcept {
    static const Logarithms logarithms;
    return logarithms;
  }
  float operator()(std::uint64_t amount) const noexcept {
    return amount < small_.size() ? small_[static_cast<std::size_t>(amount)] : of(amount);
  }

 private:
  Logarithms() noexcept {
    for (std::size_t amount = 0; amount < small_.size(); ++amount) small_[amount] = of(amount);
  }
  static float of(std::uint64_t amount) noexcept { return static_cast<float>(std::log(static_cast<double>(amount) + 1)); }

  std::array<float, 512> small_;
};

/// What follows from the bytes that a run touches, and from those that pass through shared caches (StepWork::run_bytes, shared_bytes): the shares
/// that caches have lost, and their feature.
struct RunTraits {
  std::uint64_t run_bytes = 0, shared_bytes = 0;
  bool known = false;
  double near = 0, far = 0, farthest = 0;
  float feature = 0;
};
/// The steps of a net have these bytes in common: each thread keeps the last ones. Valid until its next call.
inline const RunTraits& traits_of_run(const StepWork& work) noexcept {
  thread_local constinit RunTraits last;
  const std::uint64_t shared = std::max(work.run_bytes, work.shared_bytes);
  if (!last.known || last.run_bytes != work.run_bytes || last.shared_bytes != shared)
    last = {work.run_bytes,
            shared,
            true,
            lost(work.run_bytes, kNearKeeps, kNearLost),
            lost(shared, kFarKeeps, kFarLost),
            lost(shared, kFarLost, kFarthestLost),
            Logarithms::get()(std::clamp(shared, kLeastRunBytes, kMostRunBytes))};
  return last;
}

/// Of depthwise convolutions: taps of whole panels, in windows that tiles slide over, whose neighbours share their inputs, by rows that are
/// next to each other or not, and in others; taps of a panel that is not whole; outputs of both; what each row begins and ends with; weights
/// that caches have lost; and the taps of vectors that lie across two cache lines. Tiles leave out the taps beyond the map, which are a third
/// to two thirds of a large window's on a small one. Terms that say the same again are left out: few samples cannot tell them apart.
inline Terms depthwise_terms(const StepWork& work) noexcept {
  const StepShape& shape = work.shape;
  const double pixels = pixels_of(shape), taps = shape.taps, outputs = pixels * shape.channels;
  const double whole = floor_of(shape.channels / static_cast<double>(model::kPanelLanes));
  const double part = shape.channels % model::kPanelLanes != 0 ? 1 : 0;
  const bool slides = ((shape.taps == 9 || shape.taps == 25) && shape.stride <= 2) || (shape.taps == 49 && shape.stride == 1);
  // Of a band only the columns tell how large the map is. One row is a band, too, unless its window cannot be square.
  const double side = std::sqrt(taps);
  const bool flat = shape.rows == 1 && shape.columns > 1 && side != floor_of(side);
  const double along = taps_inside(shape.columns, flat ? taps : side, shape.stride), inside = flat ? along : along * along;
  const auto weights = static_cast<double>(work.cost.weight_bytes);
  const RunTraits& run = traits_of_run(work);
  Terms terms{};
  terms[0] = 1;
  terms[1] = slides && shape.stride == 1 ? pixels * whole * taps * inside : 0;
  terms[2] = static_cast<double>(work.cost.input_bytes);
  terms[3] = static_cast<double>(work.cost.output_bytes);
  terms[4] = slides ? 0 : pixels * whole * taps;
  terms[5] = pixels * part * taps * inside;
  terms[6] = pixels * whole;
  terms[7] = pixels * part;
  terms[8] = shape.rows * whole * std::sqrt(taps);
  terms[9] = weights * run.near;
  terms[10] = weights * run.far;
  terms[11] = shape.epilogue == 2 ? outputs : 0;
  terms[12] = shape.epilogue == 3 ? outputs : 0;
  terms[13] = slides && shape.stride > 1 ? pixels * whole * taps * inside : 0;
  // Vectors of a pixel whose channels are no whole number of lines lie across two lines each, but for some of them.
  const auto apart = static_cast<double>(std::gcd(shape.channels, static_cast<std::uint32_t>(model::kPanelLanes)));
  const double across = pixels * whole * taps * inside * (1 - apart / static_cast<double>(model::kPanelLanes));
  const bool shares = slides && shape.stride == 1;  // neighbours read most of their inputs together
  terms[14] = shares ? across : 0;
  terms[16] = shares ? 0 : across;
  terms[15] = weights * run.farthest;
  terms[kTerms - 1] = bytes_beyond(work);
  return terms;
}

/// What a direct convolution does that its shape alone does not say: all its tiles, the last one of each strip of outputs half filled (strips
/// as one thread cuts them); the bytes of input that strips copy; the weights that come from beyond the nearest caches
/// again for each further tile, where two panels fill an eighth of a core's own cache or more; and the input (of a group), which each further
/// tile's panels walk over again, but for what the nearest cache holds.
struct DirectWork {
  double tiles = 0, copied = 0, read_again = 0, walked_again = 0;
};
inline DirectWork direct_work(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  constexpr double kPairFits = 128 << 10, kPairIsLost = 1 << 20, kNearestCache = 32 << 10;
  const StepShape& shape = work.shape;
  const DirectCut cut = direct_cut(kernel == kernels::kernel_id::kConvDirect, work);  // f32 alone is read in place
  const double rows = shape.rows, columns = shape.columns;
  DirectWork made;
  if (cut.in_place) {
    made.tiles = ceil_of(rows * columns / tile.rows);
  } else {
    const double strips = ceil_of(rows / cut.strip_rows) * ceil_of(columns / cut.strip_columns);
    const double strip_rows = ceil_of(rows / ceil_of(rows / cut.strip_rows));
    made.tiles = strips * ceil_of(strip_rows * cut.strip_columns / tile.rows);
    made.copied = strips * DirectCut::bytes_of(shape, cut.high, cut.wide, strip_rows, cut.strip_columns);
  }
  const double pair = 2.0 * shape.depth * shape.taps * model::kPanelLanes * sizeof(float);
  const double lost_of_pair = lost(static_cast<std::uint64_t>(std::min(pair, kPairIsLost)), kPairFits, kPairIsLost);
  made.read_again = static_cast<double>(work.cost.weight_bytes) * (made.tiles - 1) * lost_of_pair;
  const double read = DirectCut::bytes_of(shape, cut.high, cut.wide, rows, columns);  // without a residual, and of one group
  const double inputs = std::max(0.0, std::min(read, static_cast<double>(work.cost.input_bytes)) - kNearestCache);
  made.walked_again = inputs * (ceil_of(shape.channels / (tile.panels * static_cast<double>(model::kPanelLanes))) - 1);
  return made;
}

/// Of recurrent layers: one of each turn but the first, whose state is zero and multiplies nothing unless it is given; their flops; the
/// functions of all turns; what a turn reads of weights that a core's own cache does not hold; and what the first turn that multiplies reads,
/// as it is lost.
inline Terms recurrent_terms(const StepWork& work) noexcept {
  const double turns = std::max(1.0, static_cast<double>(work.shape.rows) / work.shape.taps),
               again = work.shape.stride > 1 ? turns : turns - 1;
  const double weights = static_cast<double>(work.cost.weight_bytes) / turns;  // each turn reads all
  const RunTraits& run = traits_of_run(work);
  Terms terms{};
  terms[0] = 1;
  terms[1] = static_cast<double>(work.cost.flops) * again / turns;
  terms[3] = static_cast<double>(work.cost.output_bytes);
  terms[4] = again * bytes_crowded_out(static_cast<std::uint64_t>(weights));
  terms[8] = again;
  terms[9] = again > 0 ? weights * run.near : 0;
  terms[10] = again > 0 ? weights * run.far : 0;
  terms[15] = again > 0 ? weights * run.farthest : 0;
  return terms;
}

/// Kernels that work value by value, whose weights are a few numbers for each channel or a table: their time is that of what passes.
constexpr bool by_value(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kAffine || kernel == kLayerNorm || kernel == kIntegerTable || kernel == kIntegerSoftmax;
}

/// Rows, where each begins and ends: not of values that pass one by one, whose rows are as long as a net's maps or hold one pixel. (With rows, two
/// profiles of three priced sums of two small maps at 2.6 times.) A softmax or a norm begins with each pixel.
inline double rows_of(KernelId kernel, const StepWork& work) noexcept {
  using namespace kernels::kernel_id;
  if (kernel == kSoftmax || kernel == kIntegerSoftmax || kernel == kLayerNorm) return pixels_of(work.shape);
  const bool passes = kernel == kIntegerTable || kernel == kIntegerQuantize || kernel == kIntegerDequantize || kernel == kUnary;
  // Sums of two maps are one run of them; where one of the two is broadcast, as odd variants have it, each pixel of bytes is a run.
  const bool one_run = passes || ((kernel == kBinary || kernel == kIntegerBinary) && work.variant % 2 == 0);
  if (one_run) return 0;
  return kernel == kIntegerBinary ? pixels_of(work.shape) : static_cast<double>(work.shape.rows);
}

/// Kernels whose time is that of the vectors that they make: what each takes does not fall with the channels in it.
constexpr bool makes_vectors(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kIntegerPool || kernel == kResize;
}
/// Vectors of outputs of a blend; finding a pixel's sources takes as long as two.
inline double vectors_blended(const StepWork& work) noexcept {
  constexpr double kFinding = 2;
  // Cubic blends have four sources for each of a linear one's.
  const double sources = work.variant == static_cast<std::uint16_t>(ResizeMode::kCubic) ? 4 : 1;
  return pixels_of(work.shape) * (ceil_of(work.shape.channels / static_cast<double>(model::kPanelLanes)) + kFinding) * sources;
}

/// Vectors of the rows of windows of bytes; finding a window takes as long as one and a half. Windows with stride 1 that lie inside along a row are
/// one. Bytes go as twice the sums of a tile's row, but means of a part of the map add numbers four times as wide; those of a whole one add four
/// columns at a time.
inline double vectors_of_windows(const StepWork& work, TileExtent tile) noexcept {
  constexpr double kFinding = 1.5, kColumnsAtOnce = 4;
  const StepShape& shape = work.shape;
  const double channels = shape.channels, columns = shape.columns, side = std::sqrt(static_cast<double>(shape.taps));
  const double bytes = tile.panels * 2 * static_cast<double>(model::kPanelLanes);
  if (work.variant == kWholeMean) return pixels_of(shape) * (ceil_of(channels / bytes) * side * ceil_of(side / kColumnsAtOnce) + kFinding);
  const double part = work.variant == static_cast<std::uint16_t>(PoolingKind::kAverage) ? 0.25 : 1;
  const double joined = shape.stride == 1 ? std::max(0.0, columns - ceil_of(side - 1)) : 0, single = columns - joined;
  const double vectors = single * ceil_of(channels / (part * bytes)) + ceil_of(joined * channels / (part * bytes));
  return shape.rows * (part * vectors * side + kFinding * (single + (joined > 0 ? 1 : 0)));
}

inline double vectors_made(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  if (!makes_vectors(kernel)) return 0;
  return kernel == kernels::kernel_id::kResize ? vectors_blended(work) : vectors_of_windows(work, tile);
}

/// Integer kernels multiply four inputs of a tap at once: in how many lanes more than there are inputs. (Without it, the first layer of a net that
/// hears, of one input and 64 taps, was priced at a third of its time.)
inline double lanes_of_depth(KernelId kernel, const StepShape& shape) noexcept {
  using namespace kernels::kernel_id;
  constexpr double kQuad = 4;
  const bool quads = kernel == kIntegerDirect || kernel == kIntegerPointwise || kernel == kIntegerDense;
  return quads ? 1 / fullness(shape.depth, kQuad) : 1;
}

/// Bytes of output that a core's own cache does not hold. Those of dense layers and pools cost little where caches that cores share still have
/// their lines: a vocabulary's 3 MB in a run of 6 MB was priced a sixth too high by runs that no cache holds.
inline double large_output(KernelId kernel, const StepWork& work) noexcept {
  return bytes_crowded_out(work.cost.output_bytes) * (is_dense_or_pool(kernel) ? traits_of_run(work).far : 1);
}

inline constexpr std::size_t kOfLargeOutput = 13, kOfLargeInput = 14;  // of `terms_of`, where kernels have no terms of their own
// Of direct convolutions, whose threads share areas, the first of these is the input that is walked over again.
inline constexpr std::size_t kFromOthers = kTerms - 3, kTogether = kTerms - 2;

/// How a kernel's threads share a step. Kernels that work value by value are not asked: what they take follows what other threads have
/// written, not shares.
inline Shares shares_of(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  if (tile.threads == 1) return {};
  const SharedWork shared(work);
  const auto checked = [&](Shares shares) {
    shares.longest = std::clamp(shares.longest, 1.0, static_cast<double>(tile.threads));
    shares.shared = shares.longest < static_cast<double>(tile.threads);
    return shares;
  };
  switch (shared_by(kernel)) {
    case SharedBy::kPixelRuns:
      return checked(shares_of_pixel_runs(shared, static_cast<std::int64_t>(tile.rows), tile.threads));
    case SharedBy::kStrips:
      return checked(shares_of_strips(direct_cut(kernel == kernels::kernel_id::kConvDirect, work), shared, tile.threads));
    case SharedBy::kSquares:
      return checked(shares_of_squares(shared, tile.threads));
    case SharedBy::kRows:
      return checked(shares_of_rows(shared, tile.threads));
    case SharedBy::kCopies:
      return checked(shares_of_copies(work.cost.output_bytes, tile.threads));
    case SharedBy::kOther:
      break;
  }
  return {1, true, false};
}

/// Makes terms of all work those of several threads: each takes as long as the longest share of it does, in even ones. Threads that share
/// pixels each read all weights, those from beyond their common caches once together (Winograd's work counts how often weights are read);
/// others find inputs where another thread has written them.
inline void share_terms(KernelId kernel, const StepWork& work, TileExtent tile, Terms& terms) noexcept {
  const SharedBy rule = shared_by(kernel);
  if (tile.threads == 1 || rule == SharedBy::kOther) return;
  const Shares shares = shares_of(kernel, work, tile);
  const auto threads = static_cast<double>(tile.threads);
  const bool reads_all = shares.by_pixels && shares.shared && (rule == SharedBy::kPixelRuns || rule == SharedBy::kStrips);
  for (std::size_t i = 1; i < kTerms; ++i) {
    const bool of_weights = i == 4 || i == 9;  // what comes from beyond the shared caches comes once
    terms[i] *= reads_all && of_weights ? threads : shares.longest;
  }
  if (rule == SharedBy::kRows || rule == SharedBy::kStrips) return;  // their inputs are copied, or windows that most others read, too
  terms[kFromOthers] = shares.by_pixels && shares.shared ? 0 : static_cast<double>(work.cost.input_bytes);
  if (rule == SharedBy::kPixelRuns) terms[kTogether] = shares.shared ? 1 : 0;
}

/// Are pixels the lanes, as of f32 layers of a few outputs, whose panels would be all but empty? As the kernels have it (grouped_pixels.cc,
/// runs_columns of tile.h), but that they ask the layer's outputs, of which a step may make a few, and how far windows go along a row, where a shape
/// has the larger of both strides.
inline bool pixels_are_lanes(KernelId kernel, const StepShape& shape, TileExtent tile) noexcept {
  using namespace kernels::kernel_id;
  if (kernel == kConvDirect) {
    constexpr std::uint32_t kMost = 10, kLeastColumns = 12, kLeastTaps = 4, kLeastProducts = 40;
    return shape.channels <= kMost && shape.stride == 1 && shape.columns >= kLeastColumns && shape.taps >= kLeastTaps &&
           std::uint64_t{shape.taps} * shape.depth >= kLeastProducts;
  }
  if (kernel != kConvPointwise && kernel != kDense) return false;
  constexpr std::uint32_t kLeastPixels = 16, kLeastProducts = 8;
  const std::uint32_t most = tile.panels > 1 ? 8 : tile.rows > 2 ? 4 : 0;  // of AVX-512, of others, and of none
  return shape.channels <= most && std::uint64_t{shape.rows} * shape.columns >= kLeastPixels && shape.depth >= kLeastProducts;
}

/// Flops that count as others do, and those of lanes that are no outputs. Of direct convolutions all do: idle lanes had come out at three times what
/// others take, from layers of 8 to 12 outputs that wait for their outputs, so that 56x56 maps of 22 were priced half too high. Where pixels are the
/// lanes, turning inputs takes about as long as four outputs' products, and a vector of inputs is loaded for each weight, or a weight.
struct LaneFlops {
  double counted = 0, idle = 0;
};
inline LaneFlops lane_flops(KernelId kernel, const StepWork& work, bool turned) noexcept {
  constexpr double kTurning = 4, kLoads = 1.35;
  const double flops = static_cast<double>(work.cost.flops) * lanes_of_depth(kernel, work.shape);
  const double all = flops / fullness(work.shape.channels, turned ? kTurning : static_cast<double>(model::kPanelLanes));
  if (is_direct(kernel)) return {turned ? kLoads * all : all, 0};
  return {flops, all - flops};
}

/// On one thread.
inline Terms terms_alone(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  if (is_depthwise(kernel)) return depthwise_terms(work);
  if (is_recurrent(kernel)) return recurrent_terms(work);
  const auto input = static_cast<double>(work.cost.input_bytes);
  const auto output = static_cast<double>(work.cost.output_bytes);
  const auto weights = static_cast<double>(work.cost.weight_bytes);
  const RunTraits& run = traits_of_run(work);
  // What was just written is in a core's own cache, however large the run is.
  const bool reads_weights = weights > 0 && !by_value(kernel);
  const double may_be_lost = reads_weights ? weights : input + output;
  const auto flops = static_cast<double>(work.cost.flops);
  const double pixels = pixels_of(work.shape);
  const double lanes = tile.panels * static_cast<double>(model::kPanelLanes);
  const DirectWork direct = is_direct(kernel) ? direct_work(kernel, work, tile) : DirectWork{ceil_of(pixels / tile.rows)};
  const bool turned = pixels_are_lanes(kernel, work.shape, tile);
  const double panels = ceil_of(work.shape.channels / static_cast<double>(model::kPanelLanes));
  const double full = pixels / (direct.tiles * tile.rows) * (turned ? 1 : fullness(panels, tile.panels));
  // Kernels that work value by value have no tiles.
  const bool tiled = reads_weights || kernel == kernels::kernel_id::kAttention || kernel == kernels::kernel_id::kMatMul;
  const double tiles = direct.tiles * ceil_of(work.shape.channels / lanes);
  const LaneFlops lanes_of = tiled ? lane_flops(kernel, work, turned) : LaneFlops{flops};
  return {1.0,
          lanes_of.counted,
          input,
          output,
          weights,
          tiled ? (lanes_of.counted + lanes_of.idle) * (1 / full - 1) : 0,
          is_direct(kernel) ? pixels * work.shape.taps : lanes_of.idle,
          tiled ? tiles : vectors_made(kernel, work, tile),
          rows_of(kernel, work),
          reads_weights ? weights * run.near : 0,
          may_be_lost * run.far,
          work.shape.epilogue == 2 ? pixels * work.shape.channels : 0,
          work.shape.epilogue == 3 ? pixels * work.shape.channels : 0,
          large_output(kernel, work),
          bytes_crowded_out(work.cost.input_bytes),
          may_be_lost * run.farthest,
          direct.read_again,
          direct.copied,
          direct.walked_again,
          0,
          bytes_beyond(work)};
}

inline Terms terms_of(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  Terms terms = terms_alone(kernel, work, tile);
  share_terms(kernel, work, tile, terms);
  return terms;
}

inline Features features_of(const StepWork& work, TileExtent tile) noexcept {
  const Logarithms& log_of = Logarithms::get();
  const double pixels = pixels_of(work.shape);
  constexpr double kFullness = 3;  // a tile two thirds full is as far from a full one as e times the work is from the work
  return {log_of(work.cost.flops),
          log_of(work.cost.input_bytes),
          log_of(work.cost.output_bytes),
          log_of(work.cost.weight_bytes),
          log_of(work.shape.rows),
          log_of(work.shape.columns),
          log_of(work.shape.channels),
          log_of(work.shape.depth),
          log_of(work.shape.taps),
          log_of(work.shape.stride),
          static_cast<float>(kFullness * fullness(pixels, tile.rows)),
          static_cast<float>(kFullness * fullness(work.shape.channels, tile.panels * static_cast<double>(model::kPanelLanes))),
          traits_of_run(work).feature};
}

inline Features place_of(const StepWork& work, const Features& scales, TileExtent tile) noexcept {
  Features place = features_of(work, tile);
  for (std::size_t i = 0; i < kFeatures; ++i) place[i] *= scales[i];
  return place;
}

}  // namespace detail
}  // namespace sluice::profiler
