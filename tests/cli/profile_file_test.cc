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
                               {i * 1000000, i * 100, 50, i},
                               1e-6 * static_cast<double>(i * i)});
  profiler::fit(profile);
  return profile;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a profile that is written and read gives the same predictions") {
  const TemporaryFolder folder;
  const DeviceProfile profile = sample();
  save_profile(profile, folder.path("new/folder/p.json"));
  const DeviceProfile read = load_profile(folder.path("new/folder/p.json"));
  CHECK(read.device == "A CPU");
  CHECK(read.threads == 2);
  CHECK(read.share_seconds == 3e-6);
  CHECK(read.step_time_beside_reads == 1.25);
  CHECK(profiler::load_seconds(read, Bytes(65536)) == profiler::load_seconds(profile, Bytes(65536)));
  for (const profiler::KernelSample& s : profile.samples)
    CHECK(profiler::step_seconds(read, s.kernel, {}, s.work) == Approx(profiler::step_seconds(profile, s.kernel, {}, s.work)));
}

TEST_CASE("what is no profile is refused") {
  const std::string text = text_of_profile(sample());
  CHECK_NOTHROW(parse_profile(text, "p"));
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"\"version\": 2", "\"version\": 1"},
                                 {"\"threads\": 2", "\"threads\": 0"},
                                 {"\"threads\": 2", "\"threads\": \"2\""},
                                 {"\"bytes_per_second\": 1000000000.0", "\"bytes_per_second\": -1"},
                                 {"\"use\": 0", "\"use\": 9"},
                                 {"\"samples\": [", "\"simples\": ["},
                                 {"\"kernel\": 1", "\"kernel\": 2"},
                                 {"{", "["}}) {
    INFO(to);
    CHECK_THROWS_AS(parse_profile(replaced(text, from, to), "p"), Failure);
  }
  CHECK_THROWS_AS(parse_profile("", "p"), Failure);
}

TEST_CASE("the option comes before the variable, and that before the place where profiles lie") {
  const TemporaryFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path("").c_str(), 1);
  ::unsetenv("SLUICE_PROFILE");
  CHECK(find_profile("", 2).get() == nullptr);
  save_profile(sample(), default_profile_path(2));
  CHECK(find_profile("", 2).path == default_profile_path(2));
  CHECK(find_profile("", 1).get() == nullptr);
  CHECK(find_profile("none", 2).get() == nullptr);
  std::ofstream(default_profile_path(1)) << "not a profile";
  CHECK(find_profile("", 1).get() == nullptr);
  CHECK_THROWS_AS(find_profile(default_profile_path(1), 1), Failure);
  ::setenv("SLUICE_PROFILE", "none", 1);
  CHECK(find_profile("", 2).get() == nullptr);
  save_profile(sample(), folder.path("other.json"));
  const FoundProfile other = find_profile(folder.path("other.json"), 1);
  REQUIRE(other.get() != nullptr);
  CHECK(other.profile->kernels.empty());  // of two threads: only its rates of reading hold
  ::unsetenv("SLUICE_PROFILE");
  ::unsetenv("XDG_CACHE_HOME");
  CHECK_THROWS_AS(find_profile(folder.path("absent.json"), 1), Failure);
}
