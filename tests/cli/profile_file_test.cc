#include "src/cli/profile_file.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "src/cli/failure.h"
#include "tests/cli/temporary.h"
#include "tests/profiler/sample_profile.h"

using namespace sluice;
using namespace sluice::cli;
using profiler::default_profile_path;
using profiler::DeviceProfile;
using profiler::sample_profile;

TEST_CASE("a profile that is saved into folders that are not there yet can be loaded") {
  const TemporaryFolder folder;
  const DeviceProfile profile = sample_profile();
  save_profiles(std::span(&profile, 1), folder.path("new/folder/p.json"));
  const auto loaded = profiler::load_profiles(folder.path("new/folder/p.json"));
  REQUIRE(loaded);
  CHECK(loaded->front().device == "A CPU");
}

TEST_CASE("the option comes before the variable, and that before the place where profiles lie") {
  const TemporaryFolder folder;
  ::setenv("XDG_CACHE_HOME", folder.path("").c_str(), 1);
  ::unsetenv("SLUICE_PROFILE");
  CHECK(find_profile("", 2).get() == nullptr);
  const DeviceProfile measured = sample_profile();
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
