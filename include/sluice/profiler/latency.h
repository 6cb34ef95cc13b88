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
// A step of a kernel that was not measured takes what an f32 kernel of the same layers would, if that was and it multiplies no integers; else
// the longer of its arithmetic and its traffic, plus what its activations take from and to memory because a core's own cache does not hold
// them, plus its dispatch.
//
// A load is read in several requests; what has arrived is verified while the next request runs, if several are in flight, else before it.
//
// Invariants: results are finite and positive for a profile that keeps its invariants.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "sluice/core/units.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/terms.h"

namespace sluice::profiler {

namespace detail {

/// The part of all interruptions that the median run of so many seconds meets, between the lengths that were watched in proportion to the
/// logarithm.
inline double interruptions_met(const Interruptions& all, double seconds) noexcept {
  constexpr std::size_t kLengths = std::tuple_size_v<decltype(all.met)> + 2;
  constexpr auto kLongest = static_cast<double>(kLengths - 1);
  std::array<double, kLengths> met{};
  std::copy(all.met.begin(), all.met.end(), met.begin() + 1);
  met.back() = 1;
  const double place = seconds > kLeastInterrupted ? std::min(2 * std::log10(seconds / kLeastInterrupted), kLongest) : 0.0;  // of NaN 0
  const auto below = std::min(static_cast<std::size_t>(place), kLengths - 2);
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

/// So many values as an instruction adds or multiplies at once, where a processor has such: of arrays not every compiler makes them.
using FourFloats = float __attribute__((vector_size(16)));
using TwoDoubles = double __attribute__((vector_size(16)));

/// r of the formula above: the sum of weight * likeness over the samples. A third of a price is in these loops. Two shares have one division
/// in common: w / a + v / b = (w b + v a) / (a b).
inline double correction_at(std::span<const PlacedSamples> samples, const Features& place) noexcept {
  constexpr double kMost = 1.5;       // what no sample misses by; this and the next keep hostile profiles finite
  constexpr float kFarthest = 1e15F;  // squared: what is as far has no share in r
  constexpr std::size_t kFours = kAbreast / 4;
  const auto squared = [](float d2, float other) {
    const TwoDoubles far = 1 + TwoDoubles{d2, other};
    return far * far;
  };
  std::array<TwoDoubles, kFours> sums{};
  for (const PlacedSamples& some : samples) {
    std::array<FourFloats, kFours> d2{};
    for (std::size_t f = 0; f < kFeatures; ++f)
      for (std::size_t i = 0; i < kFours; ++i) {
        FourFloats d;
        std::memcpy(&d, &some.places[f][4 * i], sizeof d);
        d -= place[f];
        d2[i] += d * d;
      }
    for (std::size_t i = 0; i < kFours; ++i) {
      std::array<TwoDoubles, 2> weights;
      std::memcpy(&weights, &some.weights[4 * i], sizeof weights);
      const FourFloats near = d2[i] < kFarthest ? d2[i] : FourFloats{} + kFarthest;
      const TwoDoubles a = squared(near[0], near[1]), b = squared(near[2], near[3]);
      sums[i] += (weights[0] * b + weights[1] * a) / (a * b);
    }
  }
  double sum = 0;
  for (const TwoDoubles& two : sums) sum += two[0] + two[1];
  return std::clamp(sum, -kMost, kMost);
}

/// Of the kernel that the rates are of.
inline std::span<const PlacedSamples> placed_samples(const DeviceRates& profile, const KernelRates& rates) noexcept {
  return std::span(profile.placed).subspan(rates.first_placed, rates.placed_count);
}

/// How many times as long as the rates say such steps took.
inline double samples_say(const KernelRates& rates, std::span<const PlacedSamples> samples, const StepWork& work,
                          const TileExtent& tile) noexcept {
  return std::exp(correction_at(samples, place_of(work, rates.scales, tile)));
}
inline double measured_seconds(const KernelRates& rates, std::span<const PlacedSamples> samples, const StepWork& work,
                               const TileExtent& tile) noexcept {
  return fitted_seconds(rates, work, tile) * samples_say(rates, samples, work, tile);
}

/// What the calling thread takes for all of a step that threads share otherwise: their rates are of even shares, and a term of a whole step is as
/// many times as long. The first term is mostly what brings threads together, of which `sharing` is taken off; terms of several threads fall away.
inline double fitted_seconds_alone(const KernelRates& rates, const StepWork& work, TileExtent tile, double sharing) noexcept {
  constexpr double kCall = 1e-7;
  const auto threads = static_cast<double>(std::exchange(tile.threads, 1));
  const Terms terms = terms_of(rates.kernel.kernel, work, tile);
  double seconds = 0;
  for (std::size_t i = 1; i < kTerms; ++i) seconds += rates.seconds_per[i] * terms[i];
  return std::max(kCall, rates.seconds_per[0] - sharing) + seconds * threads;
}

/// On the profile's threads, or on the calling one alone where that takes surely less: what a step takes alone was not measured.
struct OnThreads {
  double seconds = 0;
  bool alone = false;
};
inline OnThreads seconds_on_threads(const DeviceProfile& profile, const KernelRates& rates, const StepWork& work) noexcept {
  constexpr double kSurely = 0.9;
  constexpr double kOfCalls = 3;  // steps that share fetch what others wrote, beside what calls that do nothing cost
  const TileExtent tile = tile_of(profile);
  const double more = samples_say(rates, placed_samples(profile, rates), work, tile), shared = fitted_seconds(rates, work, tile) * more;
  if (profile.threads == 1) return {shared, false};
  const double alone = fitted_seconds_alone(rates, work, tile, kOfCalls * profile.share_seconds) * more;
  return alone < kSurely * shared ? OnThreads{alone, true} : OnThreads{shared, false};
}

/// Bytes per second of pieces of `piece` bytes, between the sizes measured in proportion to the logarithm.
inline double read_rate(std::span<const ReadRate> rates, double piece) noexcept {
  const auto above =
      std::find_if(rates.begin(), rates.end(), [&](const ReadRate& r) { return static_cast<double>(r.piece_bytes) >= piece; });
  if (above == rates.end()) return rates.back().bytes_per_second;
  if (above == rates.begin()) {  // smaller than all: as long as the smallest one
    return rates.front().bytes_per_second * piece / static_cast<double>(rates.front().piece_bytes);
  }
  if (static_cast<double>(above->piece_bytes) == piece) return above->bytes_per_second;
  const ReadRate& below = *(above - 1);
  const double share = std::log(piece / static_cast<double>(below.piece_bytes)) /
                       std::log(static_cast<double>(above->piece_bytes) / static_cast<double>(below.piece_bytes));
  return below.bytes_per_second + share * (above->bytes_per_second - below.bytes_per_second);
}

/// Of functions that no sample has, one that takes about as long.
constexpr std::uint16_t variant_like(KernelId kernel, std::uint16_t variant) noexcept {
  if (kernel == kernels::kernel_id::kResize && variant == static_cast<std::uint16_t>(ResizeMode::kCubic))
    return static_cast<std::uint16_t>(ResizeMode::kLinear);
  if (kernel == kernels::kernel_id::kIntegerPool && variant == kWholeMean) return static_cast<std::uint16_t>(PoolingKind::kAverage);
  if (kernel != kernels::kernel_id::kUnary) return 0;
  switch (static_cast<Function>(variant)) {
    case Function::kErf:
    case Function::kLog:
    case Function::kElu:
    case Function::kSoftplus:
      return static_cast<std::uint16_t>(Function::kGelu);
    case Function::kExp:
      return static_cast<std::uint16_t>(Function::kSigmoid);
    case Function::kSqrt:
    case Function::kReciprocal:
      return static_cast<std::uint16_t>(Function::kHardSwish);
    default:
      return static_cast<std::uint16_t>(Function::kRelu);
  }
}

/// The measurements of the kernel and variant, else of a variant like it, else of the kernel's first variant that was measured, else none.
inline const KernelRates* rates_of(const DeviceRates& profile, const UsedKernel& kernel, std::uint16_t variant) noexcept {
  const auto first_from = [&](std::uint16_t least) {
    const UsedKernel from{kernel.kernel, kernel.use, least};
    return std::partition_point(profile.kernels.begin(), profile.kernels.end(), [&](const KernelRates& r) { return r.kernel < from; });
  };
  for (const std::uint16_t wanted : {variant, variant_like(kernel.kernel, variant)}) {
    const auto exact = first_from(wanted);
    if (exact != profile.kernels.end() && exact->kernel == UsedKernel{kernel.kernel, kernel.use, wanted}) return &*exact;
  }
  const auto near = first_from(0);
  const bool same = near != profile.kernels.end() && near->kernel.kernel == kernel.kernel && near->kernel.use == kernel.use;
  return same ? &*near : nullptr;
}

/// The same, or those of the f32 kernel of the same layers. Integers are multiplied faster by an unknown factor.
inline const KernelRates* rates_or_like(const DeviceRates& profile, const UsedKernel& kernel, std::uint16_t variant) noexcept {
  const KernelRates* const rates = rates_of(profile, kernel, variant);
  if (rates != nullptr || kernel.kernel == kernels::kernel_id::kIntegerPointwise || kernel.kernel == kernels::kernel_id::kIntegerDense)
    return rates;
  return rates_of(profile, {f32_kernel_like(kernel.kernel), kernel.use, kernel.variant}, variant);
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

inline constexpr double kCacheSpeed = 4;  // a core's own cache is this much faster than memory: 40 to 60 GB/s against 10 to 15

/// What a byte takes from beyond a core's own cache in kernels that were not measured: as much more than from that cache as Relu was measured to take,
/// whose fit has it in any of three terms; else as from memory.
inline double seconds_of_far_byte(const DeviceRates& profile) noexcept {
  constexpr auto kRelu = static_cast<std::uint16_t>(Function::kRelu);
  const double memory = 1 / profile.memory_bytes_per_second;
  const KernelRates* const relu = rates_of(profile, {kernels::kernel_id::kUnary, KernelUse::kRun, kRelu}, kRelu);
  if (relu == nullptr || relu->kernel.variant != kRelu) return memory;
  const double more = relu->seconds_per.back() + 0.5 * (relu->seconds_per[kOfLargeOutput] + relu->seconds_per[kOfLargeInput]);
  return more > 0 ? std::min(memory, memory / kCacheSpeed + more) : memory;
}

/// One step on this CPU itself.
inline double full_speed_seconds(const DeviceProfile& profile, const UsedKernel& kernel, const model::Node& node,
                                 const StepWork& work) noexcept {
  const KernelRates* const rates = rates_or_like(profile, kernel, work.variant);
  if (rates != nullptr) {
    double seconds = profile.copies_views ? emitted_seconds(of_kernel(profile.samples, rates->kernel), work) : 0;
    if (seconds <= 0) seconds = seconds_on_threads(profile, *rates, work).seconds;
    return std::max(seconds, kLeastSeconds) * (1 + profile.interruptions.share) + profile.step_overhead_seconds;
  }
  const auto* conv = std::get_if<model::ConvAttributes>(&node.attributes);
  const double rate = conv != nullptr && conv->depthwise() ? profile.depthwise_flops_per_second : profile.flops_per_second;
  // Four products of bytes go where one of f32 goes; what is done to their sums does not.
  constexpr double kIntegerSpeed = 3;
  const double speed = node.numeric == model::NumericClass::kInt8 ? kIntegerSpeed : 1;
  const double arithmetic =
      static_cast<double>(work.cost.flops) * lanes_of_depth(kernel.kernel, work.shape) / (rate * speed * profile.threads);
  const double beyond = bytes_beyond(work);
  const double near = (static_cast<double>(work.cost.input_bytes + work.cost.output_bytes) - beyond) / kCacheSpeed;
  const double traffic = (near + static_cast<double>(work.cost.weight_bytes)) / profile.memory_bytes_per_second;
  return std::max(arithmetic, traffic) + beyond * seconds_of_far_byte(profile) + profile.step_overhead_seconds;
}

}  // namespace detail

/// Tells a step of the run that it is in. How long the run takes, and so what others bring into shared caches meanwhile, is estimated: layers at
/// four fifths of their fastest rate, and all that passes from memory.
inline void set_run(const DeviceRates& profile, const RunWork& run, StepWork& work) noexcept {
  constexpr double kOfFastest = 0.8;
  const double flop_seconds =
      profile.usual_flop_seconds > 0 ? profile.usual_flop_seconds / kOfFastest : 1 / (profile.flops_per_second * profile.threads);
  const double seconds = (run.flops * flop_seconds + run.passing / profile.memory_bytes_per_second) * profile.compute_slowdown;
  work.run_bytes = run.bytes;
  const double others = seconds * profile.others_bytes_per_second;
  constexpr double kMost = 1e15;
  work.shared_bytes = run.bytes + static_cast<std::uint64_t>(others < kMost ? others : kMost);
}

/// Seconds of one step of `node`.
inline double step_seconds(const DeviceProfile& profile, const UsedKernel& kernel, const model::Node& node, const StepWork& work) noexcept {
  return detail::full_speed_seconds(profile, kernel, node, work) * profile.compute_slowdown;
}

/// A run whose steps take so many seconds in all takes so many times that: steps are priced with the interruptions that a long run meets,
/// and a short one mostly meets none.
inline double of_a_short_run(const DeviceProfile& profile, double seconds) noexcept {
  const Interruptions& all = profile.interruptions;
  return (1 + all.share * detail::interruptions_met(all, seconds)) / (1 + all.share);
}

/// Is a step no faster for the profile's threads? As its kernel was measured; else, what they save is less than it costs to bring them together.
inline bool runs_alone(const DeviceProfile& profile, const UsedKernel& kernel, const model::Node& node, const StepWork& work) noexcept {
  if (profile.threads == 1) return false;
  if (const KernelRates* const rates = detail::rates_or_like(profile, kernel, work.variant); rates != nullptr)
    return detail::seconds_on_threads(profile, *rates, work).alone;
  const double shared = std::max(0.0, detail::full_speed_seconds(profile, kernel, node, work) - profile.step_overhead_seconds);
  return shared * (profile.threads - 1) < profile.share_seconds;
}

/// What `bytes` of activations cost a step of this work more because they come from memory and not from a core's own cache, beyond those
/// that its own time counts.
inline double seconds_beyond_cache(const DeviceProfile& profile, const UsedKernel& kernel, const StepWork& work,
                                   std::uint64_t bytes) noexcept {
  const double more = static_cast<double>(bytes) - detail::bytes_beyond(work);
  if (more <= 0) return 0;
  const KernelRates* const rates = detail::rates_or_like(profile, kernel, work.variant);
  const double each = rates == nullptr ? detail::seconds_of_far_byte(profile) : rates->seconds_per.back();
  return more * each * profile.compute_slowdown;
}

/// The part of a step's time that is due to tensors that a core's own cache does not hold, as the fit has it: what bands of few rows save. `work`
/// knows its run (set_run).
inline double seconds_of_large_tensors(const DeviceProfile& profile, const UsedKernel& kernel, const StepWork& work) noexcept {
  const KernelRates* const rates = detail::rates_or_like(profile, kernel, work.variant);
  if (rates == nullptr) return detail::bytes_beyond(work) * detail::seconds_of_far_byte(profile) * profile.compute_slowdown;
  double seconds = rates->seconds_per.back() * detail::bytes_beyond(work);
  if (!detail::is_depthwise(kernel.kernel) && !detail::is_recurrent(kernel.kernel))
    seconds += rates->seconds_per[detail::kOfLargeOutput] * detail::large_output(kernel.kernel, work) +
               rates->seconds_per[detail::kOfLargeInput] * detail::bytes_crowded_out(work.cost.input_bytes);
  return seconds * profile.compute_slowdown;
}

/// Standard deviation of ln(measured / predicted) of a kernel's steps; what was not measured may be twice as fast or slow.
inline double relative_error(const DeviceProfile& profile, const UsedKernel& kernel, std::uint16_t variant) noexcept {
  constexpr double kUnknown = 0.5;
  const KernelRates* const rates = detail::rates_of(profile, kernel, variant);
  return rates == nullptr ? kUnknown : rates->error;
}

/// Seconds of one load of `bytes` when the loader is busy with others before and after it; else load_start_seconds come before it. It is read
/// in pieces of so many bytes, so many at a time.
inline double load_seconds(const DeviceProfile& profile, Bytes bytes, std::uint32_t depth, std::uint64_t piece_bytes) noexcept {
  const auto size = static_cast<double>(bytes.count());
  double reading = size / profile.read_bytes_per_second;
  const auto first = std::find_if(profile.reads.begin(), profile.reads.end(), [&](const ReadRate& r) { return r.depth >= depth; });
  if (first != profile.reads.end()) {
    const auto last = std::find_if(first, profile.reads.end(), [&](const ReadRate& r) { return r.depth != first->depth; });
    reading = size / detail::read_rate({first, last}, std::min(size, static_cast<double>(piece_bytes)));
  }
  reading /= profile.read_rate_beside_compute;
  if (profile.read_limit > 0) reading = std::max(reading, size / profile.read_limit);
  const double verifying = profile.reads.empty() ? size / profile.verify_bytes_per_second : 0;  // measured rates count it
  return depth > 1 ? std::max(reading, verifying) : reading + verifying;
}
inline double load_seconds(const DeviceProfile& profile, Bytes bytes) noexcept {
  return load_seconds(profile, bytes, profile.reads_in_flight, profile.read_piece_bytes);
}

/// How to read on this device: of the ways within 5 % of the fastest, which is less than two measurements differ by, the one with the
/// fewest bytes in flight, which a cancelled or failed run waits for. Of equal ones the larger pieces: fewer system calls. Where nothing
/// was measured, as the profile says.
inline ReadRate best_reads(const DeviceProfile& profile) noexcept {
  constexpr double kAsFast = 1 / 0.95;
  constexpr Bytes kLongLoad{64u << 20};
  ReadRate best{profile.reads_in_flight, profile.read_piece_bytes, 0};
  if (profile.reads.empty()) return best;
  const auto seconds = [&](const ReadRate& reads) { return load_seconds(profile, kLongLoad, reads.depth, reads.piece_bytes); };
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
