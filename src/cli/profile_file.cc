#include "src/cli/profile_file.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using profiler::DeviceProfile;

constexpr const char* kNone = "none";

}  // namespace

void save_profiles(std::span<const DeviceProfile> profiles, const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::absolute(path).parent_path(), error);  // a failure here also happens below, with its reason
  const std::string text = profiler::text_of_profiles(profiles);
  write_atomically(path, std::as_bytes(std::span(text)));
}

FoundProfile find_profile(const std::string& option, int threads) {
  const char* const variable = std::getenv("SLUICE_PROFILE");
  const std::string named = !option.empty() ? option : variable != nullptr ? variable : "";
  if (named == kNone) return {};
  const std::string path = named.empty() ? profiler::default_profile_path() : named;
  if (named.empty() && (path.empty() || !fs::exists(path))) return {};
  FoundProfile found;
  try {
    found = {path, profiler::profile_for_threads(unwrap(profiler::load_profiles(path)), threads)};
  } catch (const Failure& failure) {
    if (!named.empty()) throw;
    // The user did not name it: a file that another version wrote must not keep models from running.
    fmt::print(stderr, "sluice: {}; assumed rates are used, `sluice profile` measures anew\n", failure.what());
    return {};
  }
  return found;
}

}  // namespace sluice::cli
