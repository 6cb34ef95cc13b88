// How much longer one device takes than another: for arithmetic, by kernel, for the bytes that pass, and for far ones, which caches that cores
// share have lost.
//
//     seconds here = exp(arithmetic of all + arithmetic of this kernel) * arithmetic there
//                    + exp(bytes) * bytes there + exp(far) * far bytes there
//
// A few measured steps say less than there are unknowns, so each of these is drawn to what is usual: kernels to the common factor of those that
// multiply by weights, or of the others, and bytes and others to taking as long as there. (One factor for each kernel, with a tilt over its times,
// took a dense layer of one row, which waits for weights, for one of many rows: encoders were predicted at half their time on a narrower
// instruction set.)
#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "sluice/profiler/terms.h"

namespace sluice::profiler {

/// Seconds of one step there, in parts.
struct StepParts {
  double arithmetic = 0;
  double bytes = 0;
  double far_bytes = 0;   // that caches which cores share, too, have lost since the last run
  bool products = false;  // by weights: arithmetic follows the instruction set. Recurrent layers, and what works value by value, often wait
};

/// What the rates say of a step.
StepParts parts_of(const KernelRates& rates, const StepWork& work, detail::TileExtent tile) noexcept;

/// One measured step: what the other device's rates say of it, and seconds here.
struct TimedThere {
  UsedKernel kernel;
  StepParts there;
  double here = 0;
};

class DeviceRatios {
 public:
  /// The most likely ratios. Steps that take no time anywhere are left out; of none all ratios are 1.
  explicit DeviceRatios(std::span<const TimedThere> steps);

  double seconds(UsedKernel kernel, const StepParts& there) const noexcept;

 private:
  double arithmetic(UsedKernel kernel, bool products) const noexcept;
  double bytes() const noexcept;
  double far_bytes() const noexcept;

  double log_products_ = 0;
  double log_others_ = 0;
  double log_bytes_ = 0;
  double log_far_ = 0;
  std::map<UsedKernel, double> log_more_;  // of a kernel's arithmetic beyond one of these
};

}  // namespace sluice::profiler
