#include "src/profiler/device_ratios.h"

#include <catch2/catch.hpp>
#include <vector>

#include "sluice/kernels/kernel_ids.h"
#include "sluice/profiler/latency.h"

namespace sluice::profiler {
namespace {

using namespace kernels::kernel_id;

constexpr UsedKernel kProducts[] = {{kConvDirect}, {kConvPointwise}, {kDense}, {kConvDepthwise}};

/// A device whose arithmetic takes twice as long, 2.4 times that of direct convolutions, and bytes 1.1 times, far ones 1.8 times.
double seconds_of(UsedKernel kernel, const StepParts& parts) {
  const double arithmetic = !parts.products ? 1 : kernel == kProducts[0] ? 2.4 : 2;
  return arithmetic * parts.arithmetic + 1.1 * parts.bytes + 1.8 * parts.far_bytes;
}

std::vector<TimedThere> ten_steps() {
  std::vector<TimedThere> steps;
  for (const UsedKernel kernel : kProducts)
    for (const double bytes : {0.1, 0.6}) steps.push_back({kernel, {1e-4 * (1 - bytes), 1e-4 * bytes, 0, true}, 0});
  steps.push_back({{kPool}, {2e-5, 2e-5, 0, false}, 0});
  steps.push_back({{kDense, KernelUse::kRun, 1}, {1e-5, 2e-5, 3e-4, true}, 0});
  for (TimedThere& step : steps) step.here = seconds_of(step.kernel, step.there);
  return steps;
}

TEST_CASE("what a device takes longer for is found from ten steps of mixed kinds") {
  const std::vector<TimedThere> steps = ten_steps();
  const DeviceRatios ratios(steps);
  for (const TimedThere& step : steps) CHECK(ratios.seconds(step.kernel, step.there) == Approx(step.here).epsilon(0.04));
  // Of kernels and mixtures that were not measured, too.
  for (const StepParts& parts :
       {StepParts{1e-3, 0, 0, true}, StepParts{1e-4, 4e-4, 0, true}, StepParts{1e-5, 0, 5e-4, true}, StepParts{1e-4, 1e-5, 0, false}})
    CHECK(ratios.seconds({kConvWinograd}, parts) == Approx(seconds_of({kConvWinograd}, parts)).epsilon(0.1));
  CHECK(ratios.seconds(kProducts[0], {1e-3, 0, 0, true}) == Approx(2.4e-3).epsilon(0.06));
}

TEST_CASE("a step that was disturbed does not speak for a kernel alone") {
  std::vector<TimedThere> steps = ten_steps();
  steps[2].here *= 1.3;
  const DeviceRatios ratios(steps);
  // Its kernel's other step, and what is usual of kernels, hold against it: the rest of the 1.3.
  CHECK(ratios.seconds(steps[2].kernel, steps[2].there) < 1.25 * seconds_of(steps[2].kernel, steps[2].there));
  CHECK(ratios.seconds({kConvWinograd}, {1e-3, 0, 0, true}) == Approx(2e-3).epsilon(0.12));
}

TEST_CASE("without steps, or with such as take no time, a device is like the other") {
  const StepParts parts{1e-4, 1e-4, 1e-4, true};
  CHECK(DeviceRatios({}).seconds({kDense}, parts) == Approx(3e-4));
  const std::vector<TimedThere> nothing = {{{kDense}, {}, 1e-3}, {{kDense}, parts, 0}};
  CHECK(DeviceRatios(nothing).seconds({kDense}, parts) == Approx(3e-4));
}

TEST_CASE("a step's time is split as its terms are") {
  StepWork work;
  work.cost = {1000, 400, 800, 1600};
  work.shape.rows = work.shape.columns = work.shape.channels = work.shape.depth = work.shape.taps = work.shape.stride = 1;
  work.run_bytes = kMostRunBytes;
  KernelRates rates;
  rates.kernel = {kDense};
  rates.seconds_per[0] = 1e-6;
  rates.seconds_per[1] = 1e-9;
  rates.seconds_per[3] = 1e-8;
  rates.seconds_per[15] = 1e-7;
  const StepParts parts = parts_of(rates, work, detail::tile_of("avx2"));
  CHECK(parts.arithmetic == Approx(2e-6));
  CHECK(parts.bytes == Approx(8e-6));
  CHECK(parts.far_bytes == Approx(1600e-7));
  CHECK(parts.products);
  CHECK(parts.arithmetic + parts.bytes + parts.far_bytes == Approx(detail::fitted_seconds(rates, work, detail::tile_of("avx2"))));
}

TEST_CASE("large outputs are far bytes of dense layers and pools, and near ones of others") {
  StepWork work;
  work.cost = {1000, 400, 1 << 20, 1600};
  work.shape.rows = work.shape.columns = work.shape.channels = work.shape.depth = work.shape.taps = work.shape.stride = 1;
  work.run_bytes = kMostRunBytes;
  KernelRates rates;
  rates.seconds_per[detail::kOfLargeOutput] = 1e-9;
  for (const KernelId kernel : {kDense, kPool, kConvDirect, kConvPointwise}) {
    rates.kernel = {kernel};
    const StepParts parts = parts_of(rates, work, detail::tile_of("avx2"));
    const bool far = kernel == kDense || kernel == kPool;
    CHECK((far ? parts.far_bytes : parts.bytes) == Approx(1e-9 * (768 << 10)));
    CHECK((far ? parts.bytes : parts.far_bytes) == 0);
  }
}

}  // namespace
}  // namespace sluice::profiler
