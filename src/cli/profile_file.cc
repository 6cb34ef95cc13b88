#include "src/cli/profile_file.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <span>

#include "sluice/core/cpu.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/cli/failure.h"
#include "src/cli/file.h"
#include "src/cli/json.h"
#include "src/cli/text.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using profiler::DeviceProfile;
using profiler::KernelRates;
using profiler::KernelSample;

constexpr const char* kFormat = "sluice device profile";
constexpr int kVersion = 2;  // 2: rates of reading count checksums, a step costs 1 us beside its kernel
constexpr Bytes kMostBytes{16 << 20};
constexpr const char* kNone = "none";

/// "Intel(R) Xeon(R)" -> "intel-r-xeon-r".
std::string slug(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  while (text.ends_with('-')) text.pop_back();
  return text;
}

/// A JSON number that a rate or a time may be.
double positive(const Json& json) {
  const double value = json.get<double>();
  if (!std::isfinite(value) || value <= 0) throw std::invalid_argument("a rate or time is not above zero");
  return value;
}

profiler::UsedKernel used_kernel(const Json& number, const Json& use) {
  const int value = use.get<int>();
  if (value < 0 || value > static_cast<int>(profiler::KernelUse::kPrepare)) throw std::invalid_argument("a kernel's use is unknown");
  return {static_cast<KernelId>(number.get<std::uint16_t>()), static_cast<profiler::KernelUse>(value)};
}

Json json_of(const DeviceProfile& profile, const KernelRates& rates) {
  const auto samples = profiler::detail::of_kernel(profile.samples, rates.kernel);
  const kernels::KernelDescriptor* const kernel = kernels::find_kernel(rates.kernel.kernel);
  return {{"kernel", static_cast<int>(rates.kernel.kernel)},
          {"use", static_cast<int>(rates.kernel.use)},
          {"name", kernel == nullptr ? "" : std::string(kernel->name)},
          {"seconds_per", rates.seconds_per},
          {"samples", samples.size()},
          {"typical_error", profiler::typical_error(samples)}};
}

Json json_of(const KernelSample& s) {
  return Json::array({static_cast<int>(s.kernel.kernel), static_cast<int>(s.kernel.use), s.work.flops, s.work.input_bytes,
                      s.work.output_bytes, s.work.weight_bytes, s.seconds});
}

KernelRates rates_of(const Json& json) {
  KernelRates rates{used_kernel(json.at("kernel"), json.at("use")), json.at("seconds_per").get<profiler::Terms>()};
  for (const double value : rates.seconds_per)
    if (!std::isfinite(value) || value < 0) throw std::invalid_argument("a kernel's rate is below zero");
  return rates;
}

KernelSample sample_of(const Json& json) {
  KernelSample sample{used_kernel(json.at(0), json.at(1)), {}, positive(json.at(6))};
  sample.work = {json.at(2).get<std::uint64_t>(), json.at(3).get<std::uint64_t>(), json.at(4).get<std::uint64_t>(),
                 json.at(5).get<std::uint64_t>()};
  return sample;
}

/// Sorts kernels and samples and works out what follows from them.
void complete(DeviceProfile& profile) {
  std::sort(profile.kernels.begin(), profile.kernels.end(), [](const KernelRates& a, const KernelRates& b) { return a.kernel < b.kernel; });
  profiler::for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
    const auto rates = profiler::detail::of_kernel(profile.kernels, samples.front().kernel);
    if (rates.size() != 1) throw std::invalid_argument("a kernel has samples and no rates");
    profiler::place_samples(rates.front(), samples);
    for (const KernelSample& sample : samples)
      if (!std::isfinite(sample.deviation)) throw std::invalid_argument("a kernel's rates give no time for its own samples");
  });
}

DeviceProfile profile_of(const Json& json) {
  if (json.at("format") != kFormat || json.at("version") != kVersion) throw std::invalid_argument("it is of another format or version");
  DeviceProfile profile;
  profile.device = json.at("device").get<std::string>();
  profile.isa = json.at("isa").get<std::string>();
  profile.threads = json.at("threads").get<int>();
  if (profile.threads < 1) throw std::invalid_argument("it is of no thread");
  profile.step_overhead_seconds = positive(json.at("step_overhead_seconds"));
  profile.verify_bytes_per_second = positive(json.at("verify_bytes_per_second"));
  // Of a profile that was written before there was such a thing: assumed.
  if (json.contains("decoded_per_second")) profile.decoded_per_second = positive(json.at("decoded_per_second"));
  profile.load_start_seconds = positive(json.at("load_start_seconds"));
  profile.wake_seconds = positive(json.at("wake_seconds"));
  if (json.contains("share_seconds")) profile.share_seconds = positive(json.at("share_seconds"));
  profile.read_rate_beside_compute = positive(json.at("read_rate_beside_compute"));
  profile.step_time_beside_reads = positive(json.at("step_time_beside_reads"));
  for (const Json& rates : json.at("kernels")) profile.kernels.push_back(rates_of(rates));
  for (const Json& sample : json.at("samples")) profile.samples.push_back(sample_of(sample));
  for (const Json& read : json.at("reads"))
    profile.reads.push_back(
        {read.at("in_flight").get<std::uint32_t>(), read.at("bytes").get<std::uint64_t>(), positive(read.at("bytes_per_second"))});
  for (const profiler::ReadRate& read : profile.reads)
    if (read.piece_bytes == 0) throw std::invalid_argument("a read is of no bytes");
  std::sort(profile.reads.begin(), profile.reads.end(),
            [](const auto& a, const auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.piece_bytes < b.piece_bytes; });
  complete(profile);
  return profile;
}

}  // namespace

std::string default_profile_path(int threads) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  fs::path folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = fs::path(home) / ".cache";
  } else {
    return {};
  }
  return (folder / "sluice" / fmt::format("{}-{}-{}t.json", slug(profiler::device_name()), name_of(active_isa()), threads)).string();
}

std::string text_of_profile(const DeviceProfile& profile) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"device", profile.device},
               {"isa", profile.isa},
               {"threads", profile.threads},
               {"step_overhead_seconds", profile.step_overhead_seconds},
               {"verify_bytes_per_second", profile.verify_bytes_per_second},
               {"load_start_seconds", profile.load_start_seconds},
               {"wake_seconds", profile.wake_seconds},
               {"share_seconds", profile.share_seconds},
               {"read_rate_beside_compute", profile.read_rate_beside_compute},
               {"step_time_beside_reads", profile.step_time_beside_reads},
               {"reads", Json::array()},
               {"kernels", Json::array()},
               {"samples", Json::array()}};
  for (const profiler::ReadRate& read : profile.reads)
    json["reads"].push_back({{"in_flight", read.depth}, {"bytes", read.piece_bytes}, {"bytes_per_second", read.bytes_per_second}});
  for (const KernelRates& rates : profile.kernels) json["kernels"].push_back(json_of(profile, rates));
  for (const KernelSample& sample : profile.samples) json["samples"].push_back(json_of(sample));
  if (profile.decoded_per_second > 0) json["decoded_per_second"] = profile.decoded_per_second;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

DeviceProfile parse_profile(const std::string& text, const std::string& path) {
  try {
    return profile_of(Json::parse(text));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // of the JSON library, and those above
    throw Failure(ErrorCode::kInvalidArgument, fmt::format("{}: is no device profile: {}", path, error.what()));
  }
}

DeviceProfile load_profile(const std::string& path) {
  const std::vector<std::byte> bytes = unwrap(read_file(path, kMostBytes));
  return parse_profile({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

void save_profile(const DeviceProfile& profile, const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::absolute(path).parent_path(), error);  // what fails here fails below, with its reason
  const std::string text = text_of_profile(profile);
  write_atomically(path, std::as_bytes(std::span(text)));
}

FoundProfile find_profile(const std::string& option, int threads) {
  const char* const variable = std::getenv("SLUICE_PROFILE");
  const std::string named = !option.empty() ? option : variable != nullptr ? variable : "";
  if (named == kNone) return {};
  const std::string path = named.empty() ? default_profile_path(threads) : named;
  if (named.empty() && (path.empty() || !fs::exists(path))) return {};
  FoundProfile found;
  try {
    found = {path, load_profile(path)};
  } catch (const Failure& failure) {
    if (!named.empty()) throw;
    // Nobody asked for it: what another version once wrote there must not keep models from running.
    fmt::print(stderr, "sluice: {}; assumed rates are used, `sluice profile` measures anew\n", failure.what());
    return {};
  }
  if (found.profile->threads != threads) found.profile->kernels.clear();
  return found;
}

}  // namespace sluice::cli
