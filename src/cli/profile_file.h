// Device profiles as files: JSON, one for each CPU and instruction set, with a profile for each number of threads that was measured, where
// `plan` and `run` find them by themselves.
//
//     $XDG_CACHE_HOME/sluice/intel-r-xeon-r-processor-avx512.json        (else ~/.cache/sluice)
//
// Which profile holds: --profile, else the environment variable SLUICE_PROFILE, each a file or `none` (the assumed rates); else the file
// above, if it is there. A file that was named and makes no sense is an error; one that was only found is told about and left out: no plan
// is made from half a profile.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/profiler/device_profile.h"

namespace sluice::cli {

/// Where this device's profile lies; empty where there is no home for it.
std::string default_profile_path();

/// Of each number of threads one; never empty. Throws Failure: kIo; kInvalidArgument for what is no profile, or one of another version.
std::vector<profiler::DeviceProfile> load_profiles(const std::string& path);
/// Profiles of one device. Makes missing folders. Throws Failure (kIo).
void save_profiles(std::span<const profiler::DeviceProfile> profiles, const std::string& path);

/// The text of the file, and what a text says; `path` is for errors.
std::string text_of_profiles(std::span<const profiler::DeviceProfile> profiles);
std::vector<profiler::DeviceProfile> parse_profiles(const std::string& text, const std::string& path);

/// The text of a profile whose samples have no seconds yet, for a device that fills them in as it prints: what stands before the time of
/// each sample, and what stands behind the last. Samples are sorted by kernel; rates are fitted when the text is read.
std::vector<std::string> pieces_of_profile(const profiler::DeviceProfile& profile);

/// That of so many threads; where there is none, the first without its kernels: its rates of reading hold.
profiler::DeviceProfile profile_for_threads(std::vector<profiler::DeviceProfile> profiles, int threads);

struct FoundProfile {
  std::string path;  // empty: assumed rates
  std::optional<profiler::DeviceProfile> profile;

  const profiler::DeviceProfile* get() const noexcept { return profile ? &*profile : nullptr; }
};
/// By the rule above; `option` is the value of --profile.
FoundProfile find_profile(const std::string& option, int threads);

}  // namespace sluice::cli
