// What a device can do, measured or assumed: the numbers that turn work into time (latency.h). Data only; `measure_device` (measure.h)
// makes it, profile_file.h keeps it.
//
// A profile belongs to one CPU, instruction set and number of threads. A default-constructed one has the assumed rates of a mid-range
// x86-64 core with an NVMe disk, so that plans can be made before anything was measured.
//
// Invariants: rates are positive and finite; `kernels` and `samples` are sorted by kernel, `reads` by depth and size; `placed` follows from
// `kernels` and `samples` (place_samples of fit.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/core/ids.h"
#include "sluice/profiler/step_work.h"

namespace sluice::profiler {

/// The terms of a step's time: one step; its flops (of direct convolutions those of all lanes); its input, output and weight bytes; flops of
/// what tiles, and what panels, compute beside it (of direct convolutions, in place of the latter, the taps of all pixels); tiles; rows; the
/// weight bytes that a core's own cache has lost since the last run, and those (of a step without weights, input and output) that no cache has;
/// outputs with an activation of a few products, and with one that needs an exponential; the bytes of output, and of input, that such a cache
/// does not hold beside all else (outputs of dense layers and pools as far as shared caches have lost them); those that not even large caches
/// have; of direct convolutions the weights that further tiles read again from beyond the nearest caches, the bytes of input that are copied,
/// and those that further panels walk over again; of others on several threads what reading costs that others have written, and bringing them
/// together; and the bytes of input and output that are more than a core's own cache holds. Depthwise and recurrent layers have terms of their
/// own, and all but the first are those of the thread that has most to do (terms.h).
inline constexpr std::size_t kTerms = 21;
using Terms = std::array<double, kTerms>;

/// The features of the correction of a step's time: logarithms of its work and shape, how full its tiles and panels are, and the logarithm
/// of what passes through shared caches before a run comes back.
inline constexpr std::size_t kFeatures = 13;
inline constexpr std::size_t kRunFeature = 12;  // the last of them: StepWork::shared_bytes
/// Runs that touch less are all held by a core's own cache; those that touch more by no cache: what is beyond counts as much as these.
inline constexpr std::uint64_t kLeastRunBytes = 96 << 10, kMostRunBytes = 384 << 20;
using Features = std::array<float, kFeatures>;

struct UsedKernel {
  KernelId kernel = KernelId::kNone;  // none: everything that no measurement covers
  KernelUse use = KernelUse::kRun;
  std::uint16_t variant = 0;  // StepWork::variant
  friend constexpr auto operator<=>(const UsedKernel&, const UsedKernel&) noexcept = default;
};

/// Fitted to the samples of one kernel (fit.h): seconds = sum of seconds_per[i] * terms[i], times exp of the correction (latency.h).
struct KernelRates {
  UsedKernel kernel;
  Terms seconds_per{};
  Features scales{};   // of features, where distances are taken
  double error = 0.3;  // standard deviation of ln(measured / predicted), each sample predicted from the others
  std::uint32_t first_placed = 0, placed_count = 0;  // of DeviceRates::placed: its samples
};

/// One measured step.
struct KernelSample {
  UsedKernel kernel;
  StepWork work;
  double seconds = 0;
  double weight = 0;  // of the sample in corrections (fit.h)
};

/// Samples of one kernel as a correction reads them: eight abreast, so that each instruction compares several with a step.
inline constexpr std::size_t kAbreast = 8;
struct PlacedSamples {
  std::array<std::array<float, kAbreast>, kFeatures> places{};  // their features, scaled
  std::array<double, kAbreast> weights{};                       // 0 where there is no sample
  friend bool operator==(const PlacedSamples&, const PlacedSamples&) = default;
};

/// The rate of reading with requests of one size, so many in flight, and checking what arrives.
struct ReadRate {
  std::uint32_t depth = 1;
  std::uint64_t piece_bytes = 0;
  double bytes_per_second = 0;
};

/// What interrupts a long run: its share of the time, and what of that the median runs of 4 us times the powers of the root of ten meet: of
/// 12.6, 40, 126 and 400 us, and of 1.26 ms. One of 4 us meets nothing, one of 4 ms all.
struct Interruptions {
  double share = 0;
  std::array<double, 5> met{0, 0.01, 0.3, 0.63, 0.9};
  friend constexpr bool operator==(const Interruptions&, const Interruptions&) noexcept = default;
};
inline constexpr double kLeastInterrupted = 4e-6;  // seconds

/// What a measured step may take in a profile's file.
inline constexpr double kLeastStepSeconds = 1e-12, kMostStepSeconds = 1e6;

/// Rates of one device at one number of threads: all that prices are made of, but for emitted code.
struct DeviceRates {
  std::string device;  // the CPU's own name; empty: assumed, not measured
  std::string isa;     // of core/cpu.h
  int threads = 1;

  // Used if nothing was measured. Compute rates are those of one thread times `threads`.
  double flops_per_second = 100e9;  // dense and convolution kernels
  double depthwise_flops_per_second = 20e9;
  double memory_bytes_per_second = 12e9;  // elementwise kernels, and batch-1 dense over its weights
  double step_overhead_seconds = 1e-6;    // dispatch of one step: what a run takes beyond the sum of its steps, for each
  double read_bytes_per_second = 1.5e9;   // sequential direct reads of 1 MiB

  // The cost of starting again after a wait: a loader that waited for a gate first wakes and then waits for its first bytes; a step that
  // waited for a load wakes.
  double load_start_seconds = 100e-6;
  double wake_seconds = 20e-6;
  // The cost of sharing a step among threads that are awake: they see it late, fetch what others wrote, and wait for each other.
  double share_seconds = 2e-6;
  // What other programs and machines bring into the caches that processors share: weights that were there leave them with time.
  double others_bytes_per_second = 0;
  // What a flop of a layer takes, to estimate how long a run is; 0: as flops_per_second says. Follows from `kernels`.
  double usual_flop_seconds = 0;

  double verify_bytes_per_second = 12e9;  // checksums of what was just read; rates of `reads` count them
  double decoded_per_second = 0;          // values of coded weights, whatever their type; 0: not measured, assumed by `isa`
  double decrypt_bytes_per_second = 4e9;  // encrypted weights: AES-256-GCM
  // How reading and computing slow each other down: both share memory, and the system's part in reading takes time of a core.
  double read_rate_beside_compute = 1;  // of the rate alone
  double step_time_beside_reads = 1;    // of the time alone
  // What an anchor took (measure.h) on the machine that samples are in seconds of; 0: not known.
  double anchor_seconds = 0;
  // What interrupts a long run, as a share of its time: kernels' rates are without it, prices of steps with it (latency.h).
  Interruptions interruptions;
  double common_error = 0.02;   // standard deviation of what all steps of a run are off by together, as a share
  double read_error = 0.1;      // the same of waiting for loads
  double read_limit = 0;        // bytes per second, 0: none: emulates a slower disk
  bool copies_views = false;    // it is of emitted code, which copies slices, joins and transpositions where the engine's plans
                                // find them in place, and whose layers take equally long for each row (latency.h)
  double compute_slowdown = 1;  // a factor on the time of each step: emulates a slower CPU; SessionOptions have their own, which counts
  std::uint64_t read_piece_bytes =
      512 * 1024;                     // how loads are read (best_reads of latency.h where it was measured): in pieces of this size,
  std::uint32_t reads_in_flight = 4;  // so many at a time
  std::uint32_t reads_at_once = 1;    // of these, that the disk works at together: 1 where one ends after the other
  std::vector<KernelRates> kernels;
  std::vector<PlacedSamples> placed;  // by kernel
  std::vector<ReadRate> reads;
};

/// With the measurements that they were fitted to.
struct DeviceProfile : DeviceRates {
  std::vector<KernelSample> samples;
};

/// Forgets what was measured of kernels, and what follows from it: their rates are for another number of threads.
inline void forget_kernels(DeviceProfile& profile) noexcept {
  profile.kernels.clear();
  profile.samples.clear();
  profile.placed.clear();
  profile.usual_flop_seconds = 0;
}

/// A copy for prices alone, which is made in a third of the time: samples are kept only where prices read them.
inline DeviceProfile without_samples(const DeviceProfile& profile) {
  DeviceProfile copy;
  static_cast<DeviceRates&>(copy) = profile;
  if (profile.copies_views) copy.samples = profile.samples;
  return copy;
}

}  // namespace sluice::profiler
