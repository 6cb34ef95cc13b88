#include "sluice/profiler/profile_file.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <regex>

#include "sluice/profiler/latency.h"
#include "tests/profiler/sample_profile.h"

namespace sluice::profiler {
namespace {

std::string text_of(const DeviceProfile& profile) { return text_of_profiles(std::span(&profile, 1)); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a profile that is written and read gives the same predictions") {
  const DeviceProfile profile = sample_profile();
  DeviceProfile alone = profile;
  alone.threads = 1;
  const auto profiles = parse_profiles(text_of_profiles(std::vector{profile, alone}));
  REQUIRE(profiles);
  CHECK(profile_for_threads(*profiles, 1).threads == 1);
  CHECK(profile_for_threads(*profiles, 7).kernels.empty());
  const DeviceProfile read = profile_for_threads(*profiles, 2);
  CHECK(read.device == "A CPU");
  CHECK(read.threads == 2);
  CHECK(read.share_seconds == 3e-6);
  CHECK(read.step_time_beside_reads == 1.25);
  CHECK_FALSE(read.copies_views);
  CHECK(read.interruptions == Interruptions());
  alone.interruptions = {0.065, {0.1, 0.3, 0.5, 0.75, 0.9}};
  CHECK(parse_profiles(text_of(alone))->front().interruptions == alone.interruptions);
  alone.copies_views = true;
  CHECK(parse_profiles(text_of(alone))->front().copies_views);
  CHECK(load_seconds(read, Bytes(65536)) == load_seconds(profile, Bytes(65536)));
  for (const KernelSample& s : profile.samples)
    CHECK(step_seconds(read, s.kernel, {}, s.work) == Approx(step_seconds(profile, s.kernel, {}, s.work)).epsilon(1e-3));
  REQUIRE(read.samples.size() == profile.samples.size());
  for (std::size_t i = 0; i < read.samples.size(); ++i) {
    CHECK(read.samples[i].work.run_bytes == profile.samples[i].work.run_bytes);
    CHECK(read.samples[i].work.shared_bytes == profile.samples[i].work.shared_bytes);
  }
  CHECK(read.others_bytes_per_second == 5e9);
  CHECK(read.anchor_seconds == 2.5e-4);
  CHECK(read.reads_at_once == 4);
}

TEST_CASE("a profile without times is completed by a device, whose console may say more") {
  DeviceProfile profile = sample_profile();
  const std::vector<std::string> pieces = pieces_of_profile(profile);
  REQUIRE(pieces.size() == profile.samples.size() + 1);
  std::string text = "booting\r\n";
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    text += pieces[i] + "\n" + std::to_string(std::llround(profile.samples[i].seconds * 1e10)) + "e-10\n";
  text += pieces.back() + "\ndone: }";
  CHECK_FALSE(parse_profiles(text));
  const auto parsed = parse_profiles(text.substr(0, text.size() - 1));
  REQUIRE(parsed);
  const DeviceProfile& read = parsed->front();
  fit(profile);
  REQUIRE(read.kernels.size() == profile.kernels.size());
  for (const KernelSample& s : profile.samples)
    CHECK(step_seconds(read, s.kernel, {}, s.work) == Approx(step_seconds(profile, s.kernel, {}, s.work)).epsilon(1e-2));
}

TEST_CASE("of a profile whose rates are of other terms the samples are fitted anew") {
  const DeviceProfile profile = sample_profile();
  const std::string fewer = std::regex_replace(text_of(profile), std::regex("\"seconds_per\":\\[[^\\]]*\\]"), "\"seconds_per\":[1.0,2.0]");
  CHECK_FALSE(parse_profiles(fewer));
  const auto parsed = parse_profiles(replaced(fewer, "\"version\":16", "\"version\":7"));
  REQUIRE(parsed);
  for (const KernelSample& s : profile.samples)
    CHECK(step_seconds(parsed->front(), s.kernel, {}, s.work) == Approx(step_seconds(profile, s.kernel, {}, s.work)).epsilon(1e-2));
}

TEST_CASE("slices of older profiles are counted in the pieces that they copy, whatever extents the file says") {
  const auto old_slice = [](StepShape shape) {
    DeviceProfile profile = sample_profile();
    for (const double seconds : {1e-5, 1.1e-5})
      profile.samples.push_back({{kernels::kernel_id::kSlice}, {{0, 2 << 18, 1 << 18, 0}, shape, 0}, seconds});
    fit(profile);
    const auto parsed = parse_profiles(replaced(text_of(profile), "\"version\":16", "\"version\":11"));
    REQUIRE(parsed);
    return parsed->front();
  };
  const DeviceProfile usual = old_slice({.rows = 28, .columns = 14, .channels = 64});
  const StepShape& shape = usual.samples.back().work.shape;
  CHECK((shape.rows == 28 * 14 && shape.columns == 1 && shape.channels == 64));
  for (const std::uint32_t extent : {1u << 31, ~0u})
    for (const std::uint32_t channels : {1u, 4u, ~0u}) {
      const DeviceProfile hostile = old_slice({.rows = extent, .columns = extent, .channels = channels});
      const KernelSample& sample = hostile.samples.back();
      CHECK(sample.work.shape.rows >= 1);
      const double seconds = step_seconds(hostile, sample.kernel, {}, sample.work);
      CHECK((std::isfinite(seconds) && seconds > 0));
    }
}

TEST_CASE("causal attentions of older profiles count the keys that their rows see") {
  struct Case {
    std::uint32_t rows, keys, queries;  // of the step, and of a batch
    double seen;                        // in the mean
  };
  constexpr Case kCases[] = {{64, 64, 64, 32.5}, {8, 64, 64, 4.5}, {128, 64, 64, 32.5}, {1, 64, 1, 64}, {4, 64, 4, 62.5}};
  constexpr std::uint64_t kFlopsOfKey = 1000;
  const UsedKernel attention{kernels::kernel_id::kAttention, KernelUse::kRun, kCausal};
  for (const Case& c : kCases) {
    DeviceProfile profile = sample_profile();
    const std::uint64_t output = 256ull * c.rows, input = output + 2 * output * c.keys / c.queries;
    const StepWork work{{kFlopsOfKey * c.rows * c.keys, input, output, 0}, {.rows = c.rows, .taps = c.keys}, kCausal};
    for (const double seconds : {1e-4, 1.1e-4}) profile.samples.push_back({attention, work, seconds});
    fit(profile);
    const auto flops_of = [&](const char* version) -> double {
      const auto parsed = parse_profiles(replaced(text_of(profile), "\"version\":16", version));
      REQUIRE(parsed);
      for (const KernelSample& sample : parsed->front().samples)
        if (sample.kernel == attention) return static_cast<double>(sample.work.cost.flops);
      return 0;
    };
    INFO(c.rows << " of " << c.queries << " queries, " << c.keys << " keys");
    CHECK(flops_of("\"version\":16") == static_cast<double>(work.cost.flops));
    CHECK(flops_of("\"version\":12") == Approx(kFlopsOfKey * c.rows * c.seen).margin(1));
  }
}

TEST_CASE("means of whole maps of bytes in older profiles are a variant of their own") {
  const std::uint16_t mean = static_cast<std::uint16_t>(PoolingKind::kAverage);
  const UsedKernel pool{kernels::kernel_id::kIntegerPool, KernelUse::kRun, mean};
  DeviceProfile profile = sample_profile();
  for (const std::uint32_t rows : {1u, 8u, 1u, 16u})
    profile.samples.push_back({pool, {{100, 100, 100, 0}, {.rows = rows, .columns = rows, .channels = 64, .taps = 49}, mean}, 1e-5});
  fit(profile);
  const auto rows_by_variant = [&](const char* version) {
    const auto parsed = parse_profiles(replaced(text_of(profile), "\"version\":16", version));
    REQUIRE(parsed);
    std::map<int, std::vector<std::uint32_t>> rows;
    for (const KernelSample& sample : parsed->front().samples) {
      if (sample.kernel.kernel != kernels::kernel_id::kIntegerPool) continue;
      CHECK(sample.work.variant == sample.kernel.variant);
      rows[sample.kernel.variant].push_back(sample.work.shape.rows);
    }
    return rows;
  };
  CHECK(rows_by_variant("\"version\":16") == std::map<int, std::vector<std::uint32_t>>{{mean, {1, 8, 1, 16}}});
  CHECK(rows_by_variant("\"version\":15") == std::map<int, std::vector<std::uint32_t>>{{mean, {8, 16}}, {kWholeMean, {1, 1}}});
}

TEST_CASE("what runs of two lengths met of interruptions says what those between meet") {
  DeviceProfile profile = sample_profile();
  profile.interruptions = {0.065, {0.1, 0.3, 0.5, 0.75, 0.9}};
  const std::string five = "[0.1,0.3,0.5,0.75,0.9]";
  const auto with = [&](const char* met) { return parse_profiles(replaced(text_of(profile), five, met)); };
  const auto two = with("[0.2,0.6]");
  REQUIRE(two);
  for (std::size_t i = 0; i < 5; ++i) CHECK(two->front().interruptions.met[i] == Approx(std::array{0.1, 0.2, 0.4, 0.6, 0.8}[i]));
  for (const char* const wrong : {"[0.2,0.6,0.8]", "[]", "0.5", "[0.6,0.2]", "[0.1,0.3,0.5,0.4,0.9]", "[0.1,0.3,0.5,0.75,1.1]",
                                  "[-0.1,0.3,0.5,0.75,0.9]", "[0.1,0.3,0.5,0.75,\"all\"]"})
    CHECK(with(wrong).error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("what is no profile is refused") {
  const std::string text = text_of(sample_profile());
  CHECK(parse_profiles(text));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"version\":16", "\"version\":5"},
                                 {"\"threads\":2", "\"threads\":0"},
                                 {"\"threads\":2", "\"threads\":\"2\""},
                                 {"\"bytes_per_second\":1000000000.0", "\"bytes_per_second\":-1"},
                                 {"\"in_flight\":4", "\"in_flight\":0"},
                                 {"\"in_flight\":4", "\"in_flight\":17"},
                                 {"\"bytes\":65536", "\"bytes\":65537"},
                                 {"\"reads_at_once\":4", "\"reads_at_once\":0"},
                                 {"\"others_bytes_per_second\":5000000000.0", "\"others_bytes_per_second\":-1"},
                                 {"\"anchor_seconds\":0.00025", "\"anchor_seconds\":-1"},
                                 {"\"bytes\":65536", "\"bytes\":0"},
                                 {"\"bytes\":65536", "\"bytes\":1099511627776"},
                                 {"\"use\":0", "\"use\":9"},
                                 {"\"use\":0", "\"use\":1e300"},
                                 {"\"use\":0", "\"use\":-1"},
                                 {"\"samples\":[", "\"simples\":["},
                                 {"\"use\":0", "\"use\":1"},
                                 {"{", "["}}) {
    INFO(to);
    const auto refused = parse_profiles(replaced(text, from, to), "p.json");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().subject() == "p.json");
    CHECK(refused.error().code == (from.starts_with("\"version") ? ErrorCode::kUnsupportedVersion : ErrorCode::kInvalidArgument));
  }
  CHECK_FALSE(parse_profiles(""));
  const auto homeless = load_profiles("");
  REQUIRE_FALSE(homeless);
  CHECK(homeless.error().to_string().find("HOME") != std::string::npos);
  CHECK_FALSE(parse_profiles(std::string(1 << 20, '[')));
}

}  // namespace sluice::profiler
