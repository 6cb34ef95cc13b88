#include "src/cli/profile_file.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "sluice/profiler/fit.h"
#include "src/cli/failure.h"
#include "tests/cli/temporary.h"

using namespace sluice;
using namespace sluice::cli;
using profiler::DeviceProfile;

namespace {

DeviceProfile sample() {
  DeviceProfile profile;
  profile.device = "A CPU";
  profile.isa = "avx2";
  profile.threads = 2;
  profile.share_seconds = 3e-6;
  profile.reads = {{1, 65536, 1e9}, {4, 65536, 2e9}};
  profile.step_time_beside_reads = 1.25;
  for (std::uint64_t i = 1; i < 6; ++i)
    profile.samples.push_back({{KernelId{1}, i % 2 == 0 ? profiler::KernelUse::kRunDerived : profiler::KernelUse::kRun},
                               {{i * 1000000, i * 100, 50, i}, {.rows = 7, .columns = 7, .channels = 32, .depth = 16, .taps = 9}, 2},
                               1e-6 * static_cast<double>(i * i)});
  for (profiler::KernelSample& sample : profile.samples) sample.kernel.variant = sample.work.variant;
  profiler::fit(profile);
  return profile;
}

std::string text_of(const DeviceProfile& profile) { return text_of_profiles(std::span(&profile, 1)); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a profile that is written and read gives the same predictions") {
  const TemporaryFolder folder;
  const DeviceProfile profile = sample();
  DeviceProfile alone = profile;
  alone.threads = 1;
  save_profiles(std::vector{profile, alone}, folder.path("new/folder/p.json"));
  CHECK(profile_for_threads(load_profiles(folder.path("new/folder/p.json")), 1).threads == 1);
  const DeviceProfile read = profile_for_threads(load_profiles(folder.path("new/folder/p.json")), 2);
  CHECK(read.device == "A CPU");
  CHECK(read.threads == 2);
  CHECK(read.share_seconds == 3e-6);
  CHECK(read.step_time_beside_reads == 1.25);
  CHECK(profiler::load_seconds(read, Bytes(65536)) == profiler::load_seconds(profile, Bytes(65536)));
  for (const profiler::KernelSample& s : profile.samples)
    CHECK(profiler::step_seconds(read, s.kernel, {}, s.work) ==
          Approx(profiler::step_seconds(profile, s.kernel, {}, s.work)).epsilon(1e-3));
}

TEST_CASE("a profile without times is completed by a device, whose console may say more") {
  DeviceProfile profile = sample();
  const std::vector<std::string> pieces = pieces_of_profile(profile);
  REQUIRE(pieces.size() == profile.samples.size() + 1);
  std::string text = "booting\r\n";
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    text += pieces[i] + "\n" + std::to_string(std::llround(profile.samples[i].seconds * 1e10)) + "e-10\n";
  text += pieces.back() + "\ndone: }";
  CHECK_THROWS_AS(parse_profiles(text, "p"), Failure);
  const DeviceProfile read = parse_profiles(text.substr(0, text.size() - 1), "p").front();
  profiler::fit(profile);
  REQUIRE(read.kernels.size() == profile.kernels.size());
  for (const profiler::KernelSample& s : profile.samples)
    CHECK(profiler::step_seconds(read, s.kernel, {}, s.work) ==
          Approx(profiler::step_seconds(profile, s.kernel, {}, s.work)).epsilon(1e-2));
}

TEST_CASE("what is no profile is refused") {
  const std::string text = text_of(sample());
  CHECK_NOTHROW(parse_profiles(text, "p"));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"version\":3", "\"version\":2"},
                                 {"\"threads\":2", "\"threads\":0"},
                                 {"\"threads\":2", "\"threads\":\"2\""},
                                 {"\"bytes_per_second\":1000000000.0", "\"bytes_per_second\":-1"},
                                 {"\"use\":0", "\"use\":9"},
                                 {"\"samples\":[", "\"simples\":["},
                                 {"\"use\":0", "\"use\":1"},
                                 {"{", "["}}) {
    INFO(to);
    CHECK_THROWS_AS(parse_profiles(replaced(text, from, to), "p"), Failure);
  }
  CHECK_THROWS_AS(parse_profiles("", "p"), Failure);
}

TEST_CASE("the option comes before the variable, and that before the place where profiles lie") {
  const TemporaryFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path("").c_str(), 1);
  ::unsetenv("SLUICE_PROFILE");
  CHECK(find_profile("", 2).get() == nullptr);
  const DeviceProfile measured = sample();
  save_profiles(std::span(&measured, 1), default_profile_path());
  CHECK(find_profile("", 2).path == default_profile_path());
  REQUIRE(find_profile("", 1).get() != nullptr);
  CHECK(find_profile("", 1).profile->kernels.empty());
  CHECK(find_profile("none", 2).get() == nullptr);
  std::ofstream(default_profile_path()) << "not a profile";
  CHECK(find_profile("", 1).get() == nullptr);
  CHECK_THROWS_AS(find_profile(default_profile_path(), 1), Failure);
  ::setenv("SLUICE_PROFILE", "none", 1);
  CHECK(find_profile("", 2).get() == nullptr);
  save_profiles(std::span(&measured, 1), folder.path("other.json"));
  const FoundProfile other = find_profile(folder.path("other.json"), 1);
  REQUIRE(other.get() != nullptr);
  CHECK(other.profile->kernels.empty());  // of two threads: only its rates of reading hold
  ::unsetenv("SLUICE_PROFILE");
  ::unsetenv("XDG_CACHE_HOME");
  CHECK_THROWS_AS(find_profile(folder.path("absent.json"), 1), Failure);
}
