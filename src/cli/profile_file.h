// Device profiles as files: JSON, one for each CPU, instruction set and number of threads, where `plan` and `run` find them by themselves.
//
//     $XDG_CACHE_HOME/sluice/intel-r-xeon-r-processor-avx512-1t.json        (else ~/.cache/sluice)
//
// Which profile holds: --profile, else the environment variable SLUICE_PROFILE, each a file or `none` (the assumed rates); else the file
// above, if it is there. A file that was named and makes no sense is an error; one that was only found is told about and left out: no plan
// is made from half a profile.
#pragma once

#include <optional>
#include <string>

#include "sluice/profiler/device_profile.h"

namespace sluice::cli {

/// Where this device's profile lies; empty where there is no home for it.
std::string default_profile_path(int threads);

/// Throws Failure: kIo; kInvalidArgument for what is no profile.
profiler::DeviceProfile load_profile(const std::string& path);
/// Makes missing folders. Throws Failure (kIo).
void save_profile(const profiler::DeviceProfile& profile, const std::string& path);

/// The text of the file, and what a text says; `path` is for errors.
std::string text_of_profile(const profiler::DeviceProfile& profile);
profiler::DeviceProfile parse_profile(const std::string& text, const std::string& path);

struct FoundProfile {
  std::string path;  // empty: assumed rates
  std::optional<profiler::DeviceProfile> profile;

  const profiler::DeviceProfile* get() const noexcept { return profile ? &*profile : nullptr; }
};
/// By the rule above; `option` is the value of --profile. A profile of other threads than asked for keeps only its rates of reading.
FoundProfile find_profile(const std::string& option, int threads);

}  // namespace sluice::cli
