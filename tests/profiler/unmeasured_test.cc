// Steps that no measurement covers, and variants that follow others.
#include <catch2/catch.hpp>

#include "sluice/kernels/kernel_ids.h"
#include "sluice/profiler/latency.h"

namespace sluice::profiler {
namespace {

using namespace kernels::kernel_id;

DeviceProfile profile_of(std::vector<KernelRates> rates) {
  DeviceProfile profile;
  profile.kernels = std::move(rates);
  return profile;
}
KernelRates rates_of_function(Function function) { return {{kUnary, KernelUse::kRun, static_cast<std::uint16_t>(function)}, {}}; }

TEST_CASE("bytes from beyond a cache take what they take Relu more, where it was measured") {
  const double memory = detail::seconds_of_far_byte(DeviceProfile());
  CHECK(memory == 1 / DeviceProfile().memory_bytes_per_second);
  KernelRates relu = rates_of_function(Function::kRelu);
  CHECK(detail::seconds_of_far_byte(profile_of({relu})) == memory);  // its samples did not tell
  relu.seconds_per.back() = 0.1 * memory;
  CHECK(detail::seconds_of_far_byte(profile_of({relu})) == Approx(0.35 * memory));
  relu.seconds_per[detail::kOfLargeOutput] = 0.2 * memory;
  CHECK(detail::seconds_of_far_byte(profile_of({relu})) == Approx(0.45 * memory));
  relu.seconds_per.back() = memory;
  CHECK(detail::seconds_of_far_byte(profile_of({relu})) == memory);  // no more than that
  KernelRates sigmoid = rates_of_function(Function::kSigmoid);
  sigmoid.seconds_per.back() = 0.1 * memory;
  CHECK(detail::seconds_of_far_byte(profile_of({sigmoid})) == memory);
}

TEST_CASE("integer layers of one input that were not measured take as long as those of four") {
  const DeviceProfile profile;
  model::Node node;
  node.op = model::OpKind::kConv;
  node.attributes = model::ConvAttributes();
  node.numeric = model::NumericClass::kInt8;
  const auto seconds = [&](std::uint32_t depth) {
    StepWork work(kernels::CostFeatures{std::uint64_t{1'000'000'000} * depth, 0, 0, 0});
    work.shape.depth = depth;
    return detail::full_speed_seconds(profile, {kIntegerDirect}, node, work);
  };
  CHECK(seconds(1) == Approx(seconds(4)));
  CHECK(seconds(8) > 1.9 * seconds(4));
}

TEST_CASE("cubic resizing follows linear resizing, and not that which copies") {
  const auto of = [](ResizeMode mode) { return KernelRates{{kResize, KernelUse::kRun, static_cast<std::uint16_t>(mode)}, {}}; };
  const DeviceProfile profile = profile_of({of(ResizeMode::kNearest), of(ResizeMode::kLinear)});
  const KernelRates* const cubic = detail::rates_of(profile, {kResize}, static_cast<std::uint16_t>(ResizeMode::kCubic));
  REQUIRE(cubic != nullptr);
  CHECK(cubic->kernel.variant == static_cast<std::uint16_t>(ResizeMode::kLinear));
}

TEST_CASE("what steps without weights pass is in a core's own cache, and leaves those that are shared with the run's size") {
  constexpr std::size_t kNear = 9, kFar = 10;
  StepWork work(kernels::CostFeatures{0, 100'000, 100'000, 0});
  work.run_bytes = 40 << 20;
  const Terms moved = detail::terms_of(kTranspose, work, detail::tile_of("avx512"));
  CHECK(moved[kNear] == 0);
  CHECK(moved[kFar] > 0);
  work.cost.weight_bytes = 100'000;
  const Terms layer = detail::terms_of(kDense, work, detail::tile_of("avx512"));
  CHECK(layer[kNear] == 100'000);
}

}  // namespace
}  // namespace sluice::profiler
