// Device profiles as files: JSON, one for each CPU and instruction set, with a profile for each number of threads that was measured.
//
//     sluice profile  ->  $XDG_CACHE_HOME/sluice/intel-r-xeon-r-processor-avx512.json  (else ~/.cache/sluice)
//                     ->  load_profiles or parse_profiles  ->  profile_for_threads  ->  SessionOptions::profile
//
// The library looks for no file by itself: a program that wants the device's own profile asks default_profile_path and loads it. What a
// file says is untrusted: each number is checked, and no plan is made from half a profile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

inline constexpr Bytes kMostProfileBytes{16 << 20};
/// What was measured of reads must be what a session can do (executor/executor.h): so many at a time, of so many bytes in whole blocks.
inline constexpr std::uint32_t kMostReadsInFlight = 16;
inline constexpr Bytes kReadBlock{4096}, kMostReadBytes{1 << 30};

/// The path at which `sluice profile` keeps this device's profile for the instruction set in use; empty if there is no home directory. The
/// file need not exist.
std::string default_profile_path();

/// Reads one profile for each number of threads; never empty. Errors: kIo; those of parse_profiles.
Result<std::vector<DeviceProfile>> load_profiles(const std::string& path);
/// What the text of such a file says; `subject` names it in errors: kInvalidArgument for a text that is not a profile, kUnsupportedVersion
/// for one of another version, kOutOfMemory.
Result<std::vector<DeviceProfile>> parse_profiles(std::string_view text, std::string_view subject = "device profile");

/// The profile of so many threads; if there is none, the first one without its kernels, since its rates of reading hold. `profiles` is not
/// empty.
DeviceProfile profile_for_threads(std::span<const DeviceProfile> profiles, int threads);

/// The text of a file with these profiles, at least one, all of one device.
std::string text_of_profiles(std::span<const DeviceProfile> profiles);

/// The text of a profile whose samples have no seconds yet, for a device that fills them in as it prints: the parts before the time of each
/// sample, and the part after the last. Samples are sorted by kernel; rates are fitted when the text is read.
std::vector<std::string> pieces_of_profile(const DeviceProfile& profile);

}  // namespace sluice::profiler
