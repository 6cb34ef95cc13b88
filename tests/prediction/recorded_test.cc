// The predictor against recorded measurements: no clock. recorded/profile.json was measured by `sluice profile`, recorded/measured.csv by
// the protocol of scripts/prediction-accuracy --between on the same machine, three rounds before it and three after it; both are as they came.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "sluice/engine/predictor.h"
#include "sluice/importer/importer.h"
#include "sluice/profiler/profile_file.h"
#include "tests/core/temporary_files.h"
#include "tests/prediction/families.h"

namespace sluice {
namespace {

// Shares of the nets; 0.98, 0.69 and 0.98 on the day of the recording.
constexpr double kLeastWithinTenth = 0.95, kLeastWithinTwentieth = 0.65;
constexpr double kLeastInside = 0.9;  // in their 90 % intervals

struct Recorded {
  std::string family;
  std::uint32_t number = 0;
  double first_ms = 0, second_ms = 0;
};

std::vector<Recorded> recorded_nets() {
  std::istringstream lines(read_text(RECORDED_DIR "/measured.csv"));
  std::vector<Recorded> nets;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    Recorded net;
    double predicted = 0;
    words >> net.family >> net.number >> predicted >> net.first_ms >> net.second_ms;
    nets.push_back(net);
  }
  return nets;
}

LatencyPrediction predict(const Recorded& net, const profiler::DeviceProfile& profile) {
  const TemporaryDirectory folder;
  write_text(folder.file("m.onnx"), test::variant_of(net.family, net.number));
  importer::ConvertReport report;
  importer::ConvertOptions convert;
  convert.without_weights = true;
  REQUIRE(importer::convert(folder.file("m.onnx"), folder.file("m.sluice"), convert, report));
  const auto model = Model::open(folder.file("m.sluice"));
  REQUIRE(model);
  const auto predicted =
      Predictor(*model, {.repeat = true, .profile = &profile, .tuning = {.policy = planner::Policy::kResident}}).at(kUnlimitedBytes);
  REQUIRE(predicted);
  return *predicted;
}

TEST_CASE("recorded measurements of nets that no profile has seen are predicted as well as they were") {
  const profiler::DeviceProfile profile = profiler::profile_for_threads(profiler::load_profiles(RECORDED_DIR "/profile.json").value(), 1);
  const std::vector<Recorded> nets = recorded_nets();
  REQUIRE(nets.size() >= 16);
  std::vector<double> off;
  int inside = 0, ordered = 0, pairs = 0;
  std::vector<std::pair<double, double>> both;
  for (const Recorded& net : nets) {
    INFO(net.family << " " << net.number);
    const LatencyPrediction predicted = predict(net, profile);
    CHECK(predicted.measured);
    const double measured = 0.5 * (net.first_ms + net.second_ms);
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
