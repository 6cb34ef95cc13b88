// Measures this device: how long the kernels take on layers of well-known shapes, how fast a file can be read, how fast it is verified.
//
// What a run would meet is what is measured: weights come from memory that no cache holds, inputs from where the former step left them, on
// as many threads as plans will use, on the processors where a session's would run. Each sample is the median of several runs. Takes under a minute. SLUICE_ISA emulates a lesser CPU.
#pragma once

#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/model/graph.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// What reading is timed with: of a smaller file too much is waiting for the first bytes.
inline constexpr Bytes kLeastFileToRead{64 << 20};

struct MeasureOptions {
  int threads = 1;
  /// A file of at least kLeastFileToRead on the disk that models lie on. Empty: reads are not measured.
  std::string file;
  /// Their nodes are measured beside the built-in ones: plans of these models become more exact.
  std::vector<const model::Graph*> graphs;
  /// Told before each of `all` measurements; for progress. May be null.
  void (*progress)(void* context, std::size_t done, std::size_t all) = nullptr;
  void* progress_context = nullptr;
};

/// Errors: kIo when the file cannot be read; kInvalidArgument when it is too small, at once; kOutOfMemory.
Result<DeviceProfile> measure_device(const MeasureOptions& options);

/// The CPU's own name, such as "Intel(R) Xeon(R) Platinum 8480C"; "unknown" where the system does not tell.
std::string device_name();

}  // namespace sluice::profiler
