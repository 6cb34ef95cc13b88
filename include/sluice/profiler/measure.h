// Measures this device: how long the kernels take on layers as networks have them, how fast a file can be read, how fast it is verified.
//
// What a run would meet is what is measured: steps run one after the other, inputs are where the former step left them, weights where they
// are when a net of some size, small or large, has come by since their last use (src/profiler/step_timer.h); on as many threads as plans
// will use, on the processors where a session's would run. Which layers is decided on the way (src/profiler/sampler.h): of each kernel its
// quota, half of it far apart, then those of which the fit to all before says little (fit.h), drawn from a corpus of networks in which
// extents, channels and kernels go together (src/profiler/shape_corpus.h). Times are expressed in units of an anchor that is timed with
// them, so that a machine that is slower for a while still gives one profile. SLUICE_ISA emulates a lesser CPU.
#pragma once

#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/net_type.h"

namespace sluice::profiler {

/// What reading is timed with: of a smaller file too much is waiting for the first bytes.
inline constexpr Bytes kLeastFileToRead{64 << 20};

/// Nets of one type, which are measured by themselves.
struct MeasuredType {
  NetType type = NetType::kF32;
  /// Samples of a measurement that was interrupted: they are not measured again. May be null.
  const std::vector<KernelSample>* known = nullptr;
  double known_anchor_seconds = 0;  // that `keep` told with them
};

struct MeasureOptions {
  int threads = 1;
  /// One after the other. Of other types a few steps are measured with the first one. At least one.
  std::vector<MeasuredType> types{{}};
  /// A file of at least kLeastFileToRead on the disk that models lie on. Empty: reads are not measured.
  std::string file{};
  /// Their nodes are measured beside the built-in ones: plans of these models become more exact.
  std::vector<const model::Graph*> graphs{};
  std::size_t most = 600;  // measurements of steps, for each type
  double seconds = 65;     // after which no further step of a type is begun
  Bytes memory{};          // that the system has left: with 1.5 GiB runs of all sizes are measured, below 384 MiB those of up to 96 MiB
  /// Called from time to time with the samples of a type so far, and what an anchor took, so that both can be saved for `known`. May be null.
  void (*keep)(void* context, NetType type, const std::vector<KernelSample>& samples, double anchor_seconds) = nullptr;
  /// Called before each of `all` measurements, to show progress. May be null.
  void (*progress)(void* context, std::size_t done, std::size_t all) = nullptr;
  void* progress_context = nullptr;
};

/// Errors: kIo when the file cannot be read; kInvalidArgument when it is too small, at once; kOutOfMemory.
Result<DeviceProfile> measure_device(const MeasureOptions& options);

struct TransferOptions {
  int threads = 1;
  Bytes memory{};         // as of MeasureOptions
  std::size_t most = 10;  // measurements
};
/// A profile of another device, or of another instruction set, made one of this device: a few steps of the kernels that most time goes to
/// are measured, and each kernel's times are scaled as those of its kind, in half a minute at most where steps are short. What is read is not measured: those rates stay. Errors: those of
/// measure_device; kInvalidArgument for a profile without kernels.
Result<DeviceProfile> transfer_profile(DeviceProfile other, const TransferOptions& options);

/// What an anchor takes on this machine now, the middle one of those that fit into so many seconds: a fixed layer by which a profile's times are
/// measured (DeviceProfile::anchor_seconds), so that the two tell whether the machine is as fast as it was then. Errors: kInvalidArgument for
/// no thread; kOutOfMemory.
Result<double> time_anchor(int threads, double seconds);

/// The CPU's own name, such as "Intel(R) Xeon(R) Platinum 8480C"; "unknown" where the system does not tell.
std::string device_name();

}  // namespace sluice::profiler
