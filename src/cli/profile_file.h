// Chooses the device profile: --profile, else the environment variable SLUICE_PROFILE, each a file or `none` (the assumed rates); else the
// file where `sluice profile` keeps it (profiler/profile_file.h), if it is there. A file that was named and makes no sense is an error; one
// that was only found is told about and left out: no plan is made from half a profile.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sluice/profiler/profile_file.h"

namespace sluice::cli {

/// Profiles of one device. Makes missing folders. Throws Failure (kIo).
void save_profiles(std::span<const profiler::DeviceProfile> profiles, const std::string& path);

struct FoundProfile {
  std::string path;  // empty: assumed rates
  std::optional<profiler::DeviceProfile> profile;

  const profiler::DeviceProfile* get() const noexcept { return profile ? &*profile : nullptr; }
};
/// By the rule above; `option` is the value of --profile.
FoundProfile find_profile(const std::string& option, int threads);

}  // namespace sluice::cli
