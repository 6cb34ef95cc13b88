// The predictor against recorded measurements: no clock. recorded/profile.json was measured by `sluice profile`, recorded/measured.csv by
// the protocol of scripts/prediction-accuracy --between on the same machine, once before it and once after it; both are as they came.
#include "tests/prediction/recorded.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sluice/engine/predictor.h"
#include "sluice/profiler/profile_file.h"

namespace sluice {
namespace {

// Shares of the nets; 0.961, 0.805 and 0.97 on the day of the recording.
constexpr double kLeastWithinTenth = 0.95, kLeastWithinTwentieth = 0.78;
constexpr double kLeastInside = 0.9;  // in their 90 % intervals

LatencyPrediction predict(const test::RecordedNet& net, const profiler::DeviceProfile& profile) {
  const auto model = test::open_variant(net.family, net.number);
  REQUIRE(model);
  const auto predicted =
      Predictor(*model, {.repeat = true, .profile = &profile, .tuning = {.policy = planner::Policy::kResident}}).at(kUnlimitedBytes);
  REQUIRE(predicted);
  return *predicted;
}

TEST_CASE("recorded measurements of nets that no profile has seen are predicted as well as they were") {
  const profiler::DeviceProfile profile = profiler::profile_for_threads(profiler::load_profiles(RECORDED_DIR "/profile.json").value(), 1);
  const std::vector<test::RecordedNet> nets = test::recorded_nets(RECORDED_DIR "/measured.csv");
  REQUIRE(nets.size() >= 16);
  std::vector<double> off;
  int inside = 0, ordered = 0, pairs = 0;
  std::vector<std::pair<double, double>> both;
  for (const test::RecordedNet& net : nets) {
    INFO(net.family << " " << net.number);
    const LatencyPrediction predicted = predict(net, profile);
    CHECK(predicted.measured);
    const double measured = net.usual_ms();
    off.push_back(std::log(predicted.latency_ms / measured));
    inside += predicted.low_ms <= measured && measured <= predicted.high_ms ? 1 : 0;
    for (const auto& [p, m] : both) ordered += (p - predicted.latency_ms) * (m - measured) > 0 ? 1 : 0;
    pairs += static_cast<int>(both.size());
    both.emplace_back(predicted.latency_ms, measured);
  }
  const auto share = [&](double most) {
    const auto near = std::count_if(off.begin(), off.end(), [&](double each) { return std::abs(std::expm1(each)) <= most; });
    return static_cast<double>(near) / static_cast<double>(off.size());
  };
  CHECK(share(0.1) >= kLeastWithinTenth);
  CHECK(share(0.05) >= kLeastWithinTwentieth);
  CHECK(ordered >= 0.9 * pairs);
  CHECK(inside >= kLeastInside * static_cast<double>(nets.size()));
}

}  // namespace
}  // namespace sluice
