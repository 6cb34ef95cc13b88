// The latency model: work (step_work.h) and a DeviceProfile give seconds. docs/prediction.md has the formulas and their errors.
//
// A step of a kernel that was measured:
//
//     seconds = (sum of rates * terms) * exp(r) * (1 + interruptions)      rates >= 0, fitted to all samples of the kernel
//
// where interruptions are the share of a long run in which something else had the processor, and r = sum of the samples' weights / (1 + d^2)^2
// over their distances d from the step, in scaled features of work and shape: a shape that was measured gets nearly its own time, one that
// resembles it a share of what the fit misses there, one far from all only the fit.
// The weights are those for which r comes closest to the samples' deviations, smoothed as far as leaving each out in turn says (fit.h).
// Rejected, with figures in docs/prediction.md: the fit alone, boosted trees on the same samples, means by distance.
//
// Of emitted code, whose measurer times a model's own layers, a step of such a layer takes what it took, in proportion to its rows and
// outputs.
//
// A step of a kernel that was not measured takes the longer of its arithmetic and its traffic, plus what its activations take from and to
// memory because a core's own cache does not hold them, plus its dispatch.
//
// A load is read in several requests; what has arrived is verified while the next request runs, if several are in flight, else before it.
//
// Invariants: results are finite and positive for a profile that keeps its invariants.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel.h"
#include "sluice/kernels/kernel_ids.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// What caches that cores share keep from one run to the next is all of a run of so many bytes.
inline constexpr std::uint64_t kSharedCachesKeep = 12 << 20;

namespace detail {

/// The part of all interruptions that the median run of so many seconds meets, between the lengths that were watched in proportion to the
/// logarithm.
inline double interruptions_met(const Interruptions& all, double seconds) noexcept {
  const std::array<double, 4> met{0, all.met[0], all.met[1], 1};
  const double place = std::clamp(std::log10(std::max(seconds, kLeastInterrupted) / kLeastInterrupted), 0.0, 3.0);
  const auto below = std::min<std::size_t>(static_cast<std::size_t>(place), 2);
  return met[below] + (place - static_cast<double>(below)) * (met[below + 1] - met[below]);
}

/// What a median of so many seconds would be without them.
inline double without_interruptions(const Interruptions& all, double seconds) noexcept {
  return seconds / (1 + all.share * interruptions_met(all, seconds));
}

/// The entries of one kernel in a vector that is sorted by kernel.
template <class Entry>
std::span<const Entry> of_kernel(const std::vector<Entry>& entries, UsedKernel kernel) noexcept {
  const auto first = std::partition_point(entries.begin(), entries.end(), [&](const Entry& e) { return e.kernel < kernel; });
  const auto last = std::partition_point(first, entries.end(), [&](const Entry& e) { return e.kernel <= kernel; });
  return {first, last};
}

/// Rows x panels of 16 channels that an inner loop of this instruction set computes at once.
struct TileExtent {
  double rows = 6, panels = 1;
};
inline TileExtent tile_of(std::string_view isa) noexcept {
  if (isa == "avx512") return {14, 2};
  if (isa == "neon") return {5, 1};
  return isa == "scalar" ? TileExtent{2, 1} : TileExtent{6, 1};
}

/// A share of what a whole number of parts would hold.
inline double fullness(double extent, double part) noexcept { return extent / (std::ceil(extent / part) * part); }

/// The share of a run's bytes that a cache of some `most` bytes has lost when the next run comes: none of `least`, all of `most`.
inline double lost(std::uint64_t run_bytes, double least, double most) noexcept {
  const double run = std::clamp(static_cast<double>(run_bytes), least, most);
  return std::log(run / least) / std::log(most / least);
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
  const double before = std::floor((window - 1) / 2), map = outputs * stride;
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

inline bool is_depthwise(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvDepthwise || (kernel >= kConvDepthwiseEightBits && kernel <= kConvDepthwiseFourBitsHalfScales);
}
inline bool is_direct(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kConvDirect || kernel == kConvDirectBf16 || kernel == kConvDirectF16 || kernel == kConvDirectEightBits ||
         kernel == kConvDirectFourBits || kernel == kConvDirectFourBitsHalfScales;
}
inline bool is_recurrent(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kRecurrent || (kernel >= kRecurrentEightBits && kernel <= kRecurrentFourBitsHalfScales);
}

inline constexpr double kNearKeeps = 1 << 20, kNearLost = 4 << 20;  // of a run of so many bytes a core's own cache keeps nothing
// And the caches that cores share: some keep nothing of a run of 64 MiB, those of large processors nothing of one of 384.
inline constexpr double kFarKeeps = static_cast<double>(kSharedCachesKeep), kFarLost = 64 << 20;
inline constexpr double kFarthestLost = static_cast<double>(kMostRunBytes);

/// Of depthwise convolutions: taps of whole panels, in windows that tiles slide over, whose neighbours share their inputs, by rows that are
/// next to each other or not, and in others; taps of a panel that is not whole; outputs of both; what each row begins and ends with; weights
/// that caches have lost. Tiles leave out the taps beyond the map, which are a third to two thirds of a large window's on a small one. Terms
/// that say the same again are left out: few samples cannot tell them apart.
inline Terms depthwise_terms(const StepWork& work) noexcept {
  const StepShape& shape = work.shape;
  const double pixels = static_cast<double>(shape.rows) * shape.columns, taps = shape.taps, outputs = pixels * shape.channels;
  const double whole = std::floor(shape.channels / static_cast<double>(model::kPanelLanes));
  const double part = shape.channels % model::kPanelLanes != 0 ? 1 : 0;
  const bool slides = ((shape.taps == 9 || shape.taps == 25) && shape.stride <= 2) || (shape.taps == 49 && shape.stride == 1);
  // Of a band only the columns tell how large the map is. One row is a band, too, unless its window cannot be square.
  const double side = std::sqrt(taps);
  const bool flat = shape.rows == 1 && shape.columns > 1 && side != std::floor(side);
  const double along = taps_inside(shape.columns, flat ? taps : side, shape.stride), inside = flat ? along : along * along;
  const auto weights = static_cast<double>(work.cost.weight_bytes);
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
  terms[9] = weights * lost(work.run_bytes, kNearKeeps, kNearLost);
  terms[10] = weights * lost(work.run_bytes, kFarKeeps, kFarLost);
  terms[11] = shape.epilogue == 2 ? outputs : 0;
  terms[12] = shape.epilogue == 3 ? outputs : 0;
  terms[13] = slides && shape.stride > 1 ? pixels * whole * taps * inside : 0;
  // Vectors of a pixel whose channels are no whole number of lines lie across two lines each, but for some of them.
  const auto apart = static_cast<double>(std::gcd(shape.channels, static_cast<std::uint32_t>(model::kPanelLanes)));
  const double across = pixels * whole * taps * inside * (1 - apart / static_cast<double>(model::kPanelLanes));
  const bool shares = slides && shape.stride == 1;  // neighbours read most of their inputs together
  terms[14] = shares ? across : 0;
  terms[16] = shares ? 0 : across;
  terms[15] = weights * lost(work.run_bytes, kFarLost, kFarthestLost);
  terms[kTerms - 1] = bytes_beyond(work);
  return terms;
}

/// What a direct convolution does that its shape alone does not say: all its tiles, the last one of each strip of outputs half filled (strips
/// as src/kernels/weighted/strip.h cuts them); the bytes of input that strips copy; and the weights that come from beyond a core's own cache
/// again for each further tile, where two panels are a large part of it.
struct DirectWork {
  double tiles = 0, copied = 0, read_again = 0;
};
inline DirectWork direct_work(const StepWork& work, TileExtent tile) noexcept {
  constexpr double kStrip = 192 << 10, kWholeStrip = 512 << 10, kInPlace = 1 << 20, kWholeWindows = 64;
  constexpr double kFewPixels = 48, kPairFits = 512 << 10, kPairIsLost = 2 << 20;
  const StepShape& shape = work.shape;
  const double rows = shape.rows, columns = shape.columns, stride = shape.stride;
  const double side = std::sqrt(static_cast<double>(shape.taps));
  const bool flat = side != std::floor(side) || (rows == 1 && columns > 2 * side);
  const double high = flat ? 1 : side, wide = flat ? shape.taps : side;
  const auto input = [&](double out_rows, double out_columns) {
    return ((out_rows - 1) * stride + high) * ((out_columns - 1) * stride + wide) * shape.depth * sizeof(float);
  };
  const auto whole_windows = [&](double outputs, double window) {
    return std::max(0.0, outputs - 2 * std::floor((std::floor((window - 1) / 2) + stride - 1) / stride));
  };
  const double whole = whole_windows(rows, high) * whole_windows(columns, wide);
  DirectWork made;
  if (whole >= kWholeWindows && 2 * whole >= rows * columns && static_cast<double>(work.cost.input_bytes) <= kInPlace) {
    made.tiles = std::ceil(rows * columns / tile.rows);
  } else {
    double strip_rows = rows, strip_columns = columns;
    if (input(rows, columns) > kStrip) {
      const double row_bytes = input(1, columns) / high;  // of one row of input
      strip_rows = std::clamp(std::floor((kStrip / row_bytes - high) / stride) + 1, 1.0, rows);
      if (input(1, columns) > kStrip) {
        const double most = std::max(14.0, (kStrip / (input(1, 1) / wide) - wide) / stride + 1);
        strip_columns = std::ceil(columns / std::ceil(columns / std::min(columns, most)));
      }
      if (strip_rows * strip_columns <= kFewPixels && input(rows, columns) <= kWholeStrip) strip_rows = rows, strip_columns = columns;
    }
    const double strips = std::ceil(rows / strip_rows) * std::ceil(columns / strip_columns);
    strip_rows = std::ceil(rows / std::ceil(rows / strip_rows));
    made.tiles = strips * std::ceil(strip_rows * strip_columns / tile.rows);
    made.copied = strips * input(strip_rows, strip_columns);
  }
  const double pair = 2.0 * shape.depth * shape.taps * model::kPanelLanes * sizeof(float);
  const double lost_of_pair = std::clamp((pair - kPairFits) / (kPairIsLost - kPairFits), 0.0, 1.0);
  made.read_again = static_cast<double>(work.cost.weight_bytes) * (made.tiles - 1) * lost_of_pair;
  return made;
}

/// Of recurrent layers: one of each turn but the first, whose state is zero and multiplies nothing unless it is given; their flops; the
/// functions of all turns; what a turn reads of weights that a core's own cache does not hold; and what the first turn that multiplies reads,
/// as it is lost.
inline Terms recurrent_terms(const StepWork& work) noexcept {
  const double turns = std::max(1.0, static_cast<double>(work.shape.rows) / work.shape.taps),
               again = work.shape.stride > 1 ? turns : turns - 1;
  const double weights = static_cast<double>(work.cost.weight_bytes) / turns;  // each turn reads all
  Terms terms{};
  terms[0] = 1;
  terms[1] = static_cast<double>(work.cost.flops) * again / turns;
  terms[3] = static_cast<double>(work.cost.output_bytes);
  terms[4] = again * bytes_crowded_out(static_cast<std::uint64_t>(weights));
  terms[8] = again;
  terms[9] = again > 0 ? weights * lost(work.run_bytes, kNearKeeps, kNearLost) : 0;
  terms[10] = again > 0 ? weights * lost(work.run_bytes, kFarKeeps, kFarLost) : 0;
  terms[15] = again > 0 ? weights * lost(work.run_bytes, kFarLost, kFarthestLost) : 0;
  return terms;
}

/// Kernels that work value by value, whose weights are a few numbers for each channel or a table: their time is that of what passes.
constexpr bool by_value(KernelId kernel) noexcept {
  using namespace kernels::kernel_id;
  return kernel == kAffine || kernel == kLayerNorm || kernel == kIntegerTable || kernel == kIntegerSoftmax;
}

inline constexpr std::size_t kOfLargeOutput = 13, kOfLargeInput = 14;  // of `terms_of`, where kernels have no terms of their own

inline Terms terms_of(KernelId kernel, const StepWork& work, TileExtent tile) noexcept {
  if (is_depthwise(kernel)) return depthwise_terms(work);
  if (is_recurrent(kernel)) return recurrent_terms(work);
  const auto input = static_cast<double>(work.cost.input_bytes);
  const auto output = static_cast<double>(work.cost.output_bytes);
  const auto weights = static_cast<double>(work.cost.weight_bytes);
  const double may_be_lost = weights > 0 && !by_value(kernel) ? weights : input + output;
  const auto flops = static_cast<double>(work.cost.flops);
  const double pixels = static_cast<double>(work.shape.rows) * work.shape.columns;
  const double lanes = tile.panels * static_cast<double>(model::kPanelLanes);
  const DirectWork direct = is_direct(kernel) ? direct_work(work, tile) : DirectWork{std::ceil(pixels / tile.rows)};
  const double full = pixels / (direct.tiles * tile.rows) * fullness(work.shape.channels, lanes);
  // Kernels that work value by value have no tiles.
  const bool tiled =
      (weights > 0 && !by_value(kernel)) || kernel == kernels::kernel_id::kAttention || kernel == kernels::kernel_id::kMatMul;
  const double tiles = direct.tiles * std::ceil(work.shape.channels / lanes);
  return {1.0,
          flops,
          input,
          output,
          weights,
          tiled ? flops * (1 / full - 1) : 0,
          tiled ? flops * (1 / fullness(work.shape.channels, static_cast<double>(model::kPanelLanes)) - 1) : 0,
          tiled ? tiles : 0,
          static_cast<double>(work.shape.rows),
          may_be_lost * lost(work.run_bytes, kNearKeeps, kNearLost),
          may_be_lost * lost(work.run_bytes, kFarKeeps, kFarLost),
          work.shape.epilogue == 2 ? pixels * work.shape.channels : 0,
          work.shape.epilogue == 3 ? pixels * work.shape.channels : 0,
          bytes_crowded_out(work.cost.output_bytes),
          bytes_crowded_out(work.cost.input_bytes),
          may_be_lost * lost(work.run_bytes, kFarLost, kFarthestLost),
          direct.read_again,
          direct.copied,
          bytes_beyond(work)};
}

inline Features features_of(const StepWork& work, TileExtent tile) noexcept {
  const auto log_of = [](auto amount) { return static_cast<float>(std::log(static_cast<double>(amount) + 1)); };
  const double pixels = static_cast<double>(work.shape.rows) * work.shape.columns;
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
          log_of(std::clamp(work.run_bytes, kLeastRunBytes, kMostRunBytes))};
}

inline Features place_of(const StepWork& work, const Features& scales, TileExtent tile) noexcept {
  Features place = features_of(work, tile);
  for (std::size_t i = 0; i < kFeatures; ++i) place[i] *= scales[i];
  return place;
}

inline double fitted_seconds(const KernelRates& rates, const StepWork& work, TileExtent tile) noexcept {
  const Terms terms = terms_of(rates.kernel.kernel, work, tile);
  double seconds = 0;
  for (std::size_t i = 0; i < kTerms; ++i) seconds += rates.seconds_per[i] * terms[i];
  return seconds;
}

/// How alike two places are: 1 for the same, less with the distance.
inline double likeness(const Features& a, const Features& b) noexcept {
  float d2 = 0;
  for (std::size_t i = 0; i < kFeatures; ++i) d2 += (a[i] - b[i]) * (a[i] - b[i]);
  const double far = 1 + static_cast<double>(d2);
  return 1 / (far * far);
}

/// r of the formula above.
inline double correction_at(std::span<const KernelSample> samples, const Features& place) noexcept {
  constexpr double kMost = 1.5;  // what no sample misses by; keeps hostile profiles finite
  double sum = 0;
  for (const KernelSample& sample : samples) sum += sample.weight * likeness(sample.place, place);
  return std::clamp(sum, -kMost, kMost);
}

inline double measured_seconds(const KernelRates& rates, std::span<const KernelSample> samples, const StepWork& work,
                               TileExtent tile) noexcept {
  return fitted_seconds(rates, work, tile) * std::exp(correction_at(samples, place_of(work, rates.scales, tile)));
}

/// Bytes per second of pieces of `piece` bytes, between the sizes measured in proportion to the logarithm.
inline double read_rate(std::span<const ReadRate> rates, double piece) noexcept {
  const auto above =
      std::find_if(rates.begin(), rates.end(), [&](const ReadRate& r) { return static_cast<double>(r.piece_bytes) >= piece; });
  if (above == rates.end()) return rates.back().bytes_per_second;
  if (above == rates.begin()) {  // smaller than all: as long as the smallest one
    return rates.front().bytes_per_second * piece / static_cast<double>(rates.front().piece_bytes);
  }
  const ReadRate& below = *(above - 1);
  const double share = std::log(piece / static_cast<double>(below.piece_bytes)) /
                       std::log(static_cast<double>(above->piece_bytes) / static_cast<double>(below.piece_bytes));
  return below.bytes_per_second + share * (above->bytes_per_second - below.bytes_per_second);
}

/// The measurements of the kernel and variant, else of the kernel's first variant that was measured, else none.
inline const KernelRates* rates_of(const DeviceProfile& profile, UsedKernel kernel, std::uint16_t variant) noexcept {
  kernel.variant = variant;
  const auto exact = of_kernel(profile.kernels, kernel);
  if (!exact.empty()) return &exact.front();
  kernel.variant = 0;
  const auto near =
      std::partition_point(profile.kernels.begin(), profile.kernels.end(), [&](const KernelRates& r) { return r.kernel < kernel; });
  const bool same = near != profile.kernels.end() && near->kernel.kernel == kernel.kernel && near->kernel.use == kernel.use;
  return same ? &*near : nullptr;
}

inline constexpr double kLeastSeconds = 1e-9;

/// Emitted code takes equally long for each row of a layer, and for each of its outputs: what was measured of the layer itself, whole or
/// with fewer outputs, says what it takes. 0: of no such layer.
inline double emitted_seconds(std::span<const KernelSample> samples, const StepWork& work) noexcept {
  const auto read_by_row = [](const StepWork& w) { return static_cast<double>(w.cost.input_bytes) / w.shape.rows; };
  const auto row_seconds = [](const KernelSample& sample) { return sample.seconds / sample.work.shape.rows; };
  const auto farther = [&](const KernelSample& a, const KernelSample* b) {  // a residual is input, too
    return b != nullptr && std::abs(read_by_row(a.work) - read_by_row(work)) >= std::abs(read_by_row(b->work) - read_by_row(work));
  };
  const KernelSample *same = nullptr, *narrow = nullptr, *wide = nullptr;
  for (const KernelSample& sample : samples) {
    StepShape shape = sample.work.shape;
    const std::uint32_t channels = std::exchange(shape.channels, work.shape.channels);
    shape.rows = work.shape.rows;
    if (shape != work.shape) continue;
    if (channels == work.shape.channels && !farther(sample, same)) same = &sample;
    if (channels < work.shape.channels && (narrow == nullptr || channels < narrow->work.shape.channels)) narrow = &sample;
    if (channels < work.shape.channels && (wide == nullptr || channels > wide->work.shape.channels)) wide = &sample;
  }
  if (same != nullptr) return row_seconds(*same) * work.shape.rows;
  if (narrow == wide) return 0;
  const double more = (row_seconds(*wide) - row_seconds(*narrow)) / (wide->work.shape.channels - narrow->work.shape.channels);
  return (row_seconds(*wide) + more * (work.shape.channels - wide->work.shape.channels)) * work.shape.rows;
}

/// One step on this CPU itself.
inline double full_speed_seconds(const DeviceProfile& profile, UsedKernel kernel, const model::Node& node, const StepWork& work) noexcept {
  const KernelRates* const rates = rates_of(profile, kernel, work.variant);
  if (rates != nullptr) {
    const std::span<const KernelSample> samples = of_kernel(profile.samples, rates->kernel);
    double seconds = profile.copies_views ? emitted_seconds(samples, work) : 0;
    if (seconds <= 0) seconds = measured_seconds(*rates, samples, work, tile_of(profile.isa));
    return std::max(seconds, kLeastSeconds) * (1 + profile.interruptions.share) + profile.step_overhead_seconds;
  }
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const double rate = conv != nullptr && conv->depthwise() ? profile.depthwise_flops_per_second : profile.flops_per_second;
  // Four products of bytes go where one of f32 goes; what is done to their sums does not.
  constexpr double kIntegerSpeed = 3;
  const double speed = node.numeric == model::NumericClass::kInt8 ? kIntegerSpeed : 1;
  const double arithmetic = static_cast<double>(work.cost.flops) / (rate * speed * profile.threads);
  // A core's own cache is this much faster than memory: 40 to 60 GB/s against 10 to 15.
  constexpr double kCacheSpeed = 4;
  const double beyond = bytes_beyond(work);
  const double near = (static_cast<double>(work.cost.input_bytes + work.cost.output_bytes) - beyond) / kCacheSpeed;
  const double traffic = (near + static_cast<double>(work.cost.weight_bytes)) / profile.memory_bytes_per_second;
  return std::max(arithmetic, traffic) + beyond / profile.memory_bytes_per_second + profile.step_overhead_seconds;
}

}  // namespace detail

/// Seconds of one step of `node`.
inline double step_seconds(const DeviceProfile& profile, UsedKernel kernel, const model::Node& node, const StepWork& work) noexcept {
  return detail::full_speed_seconds(profile, kernel, node, work) * profile.compute_slowdown;
}

/// A run whose steps take so many seconds in all takes so many times that: steps are priced with the interruptions that a long run meets,
/// and a short one mostly meets none.
inline double of_a_short_run(const DeviceProfile& profile, double seconds) noexcept {
  const Interruptions& all = profile.interruptions;
  return (1 + all.share * detail::interruptions_met(all, seconds)) / (1 + all.share);
}

/// Is a step of so many seconds on `threads` threads no faster for them? What they save is less than it costs to bring them together.
inline bool runs_alone(const DeviceProfile& profile, double seconds, int threads) noexcept {
  const double shared = std::max(0.0, seconds / profile.compute_slowdown - profile.step_overhead_seconds);
  return threads > 1 && shared * (threads - 1) < profile.share_seconds;
}

/// What `bytes` of activations cost a step of this work more because they come from memory and not from a core's own cache, beyond those
/// that its own time counts.
inline double seconds_beyond_cache(const DeviceProfile& profile, UsedKernel kernel, const StepWork& work, std::uint64_t bytes) noexcept {
  const double more = static_cast<double>(bytes) - detail::bytes_beyond(work);
  if (more <= 0) return 0;
  const KernelRates* const rates = detail::rates_of(profile, kernel, work.variant);
  const double each = rates == nullptr ? 1 / profile.memory_bytes_per_second : rates->seconds_per.back();
  return more * each * profile.compute_slowdown;
}

/// The part of a step's time that is due to tensors that a core's own cache does not hold, as the fit has it: what bands of few rows save.
inline double seconds_of_large_tensors(const DeviceProfile& profile, UsedKernel kernel, const StepWork& work) noexcept {
  const KernelRates* const rates = detail::rates_of(profile, kernel, work.variant);
  if (rates == nullptr) return detail::bytes_beyond(work) / profile.memory_bytes_per_second * profile.compute_slowdown;
  double seconds = rates->seconds_per.back() * detail::bytes_beyond(work);
  if (!detail::is_depthwise(kernel.kernel) && !detail::is_recurrent(kernel.kernel))
    seconds += rates->seconds_per[detail::kOfLargeOutput] * detail::bytes_crowded_out(work.cost.output_bytes) +
               rates->seconds_per[detail::kOfLargeInput] * detail::bytes_crowded_out(work.cost.input_bytes);
  return seconds * profile.compute_slowdown;
}

/// Standard deviation of ln(measured / predicted) of a kernel's steps; what was not measured may be twice as fast or slow.
inline double relative_error(const DeviceProfile& profile, UsedKernel kernel, std::uint16_t variant) noexcept {
  constexpr double kUnknown = 0.5;
  const KernelRates* const rates = detail::rates_of(profile, kernel, variant);
  return rates == nullptr ? kUnknown : rates->error;
}

/// Seconds of one load of `bytes` when the loader is busy with others before and after it; else load_start_seconds come before it.
inline double load_seconds(const DeviceProfile& profile, Bytes bytes) noexcept {
  const auto size = static_cast<double>(bytes.count());
  const std::uint32_t depth = profile.reads_in_flight;
  double reading = size / profile.read_bytes_per_second;
  const auto first = std::find_if(profile.reads.begin(), profile.reads.end(), [&](const ReadRate& r) { return r.depth >= depth; });
  if (first != profile.reads.end()) {
    const auto last = std::find_if(first, profile.reads.end(), [&](const ReadRate& r) { return r.depth != first->depth; });
    reading = size / detail::read_rate({first, last}, std::min(size, static_cast<double>(profile.read_piece_bytes)));
  }
  reading /= profile.read_rate_beside_compute;
  if (profile.read_limit > 0) reading = std::max(reading, size / profile.read_limit);
  const double verifying = profile.reads.empty() ? size / profile.verify_bytes_per_second : 0;  // measured rates count it
  return depth > 1 ? std::max(reading, verifying) : reading + verifying;
}

/// How to read on this device: of the ways within 3 % of the fastest, which is less than two measurements differ by, the one with the
/// fewest bytes in flight, which a cancelled or failed run waits for. Of equal ones the larger pieces: fewer system calls. Where nothing
/// was measured, as the profile says.
inline ReadRate best_reads(const DeviceProfile& measured) {
  constexpr double kAsFast = 1 / 0.97;
  constexpr Bytes kLongLoad{64u << 20};
  ReadRate best{measured.reads_in_flight, measured.read_piece_bytes, 0};
  if (measured.reads.empty()) return best;
  DeviceProfile profile = measured;
  const auto seconds = [&](const ReadRate& reads) {
    profile.reads_in_flight = reads.depth;
    profile.read_piece_bytes = reads.piece_bytes;
    return load_seconds(profile, kLongLoad);
  };
  const auto order = [](const ReadRate& reads) { return std::pair(reads.piece_bytes * reads.depth, reads.depth); };
  double least = seconds(profile.reads.front());
  for (const ReadRate& reads : profile.reads) least = std::min(least, seconds(reads));
  for (const ReadRate& reads : profile.reads) {
    if (seconds(reads) > kAsFast * least) continue;
    if (best.bytes_per_second == 0 || order(reads) < order(best)) best = reads;
  }
  return best;
}

/// The factor on all steps of a run for the reads that go on meanwhile (`beside_reads`: DeviceProfile::step_time_beside_reads), by the
/// share of the run that reads.
inline double slowdown(double beside_reads, double compute_seconds, double reading_seconds) noexcept {
  if (compute_seconds <= 0) return 1;
  return 1 + (beside_reads - 1) * std::min(1.0, reading_seconds / compute_seconds);
}

}  // namespace sluice::profiler
