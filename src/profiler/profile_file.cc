#include "sluice/profiler/profile_file.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "sluice/core/cpu.h"
#include "sluice/core/file.h"
#include "sluice/core/sort.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/core/out_of_memory.h"

namespace sluice::profiler {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "sluice device profile";
constexpr int kVersion = 16;       // 16: other terms of pools of bytes, and means of whole maps are a variant
constexpr int kOldestVersion = 6;  // whose rates are of other terms: they are fitted anew from its samples

/// What keeps a text from being a profile; inside this file, as the JSON library's own exceptions are.
struct Mistake {
  const char* reason;
  int version = kVersion;  // of the file
};

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
  if (!std::isfinite(value) || value <= 0) throw Mistake{"is no device profile: a rate or time is not above zero"};
  return value;
}

/// A JSON number that a count may be.
template <class T>
T integer(const Json& json) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
    throw Mistake{"is no device profile: a count is no whole number, or far too large"};
  return static_cast<T>(json.get<std::uint64_t>());
}

/// Writes as many digits as a measurement has, so that the file stays small.
double rounded(double value, int digits = 5) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return std::strtod(text, nullptr);
}
template <class Numbers>
Json json_of_numbers(const Numbers& numbers) {
  Json array = Json::array();
  for (const auto number : numbers) array.push_back(rounded(static_cast<double>(number), 4));
  return array;
}

/// Writes for each sample: flops, bytes of input, output and weights, the shape, seconds, weight, bytes of its run, what is done
/// behind its sums, and what passes through shared caches where that is more.
Json json_of(const DeviceProfile& profile, const UsedKernel& used) {
  const kernels::KernelDescriptor* const kernel = kernels::find_kernel(used.kernel);
  Json samples = Json::array();
  for (const KernelSample& s : detail::of_kernel(profile.samples, used)) {
    const kernels::CostFeatures& cost = s.work.cost;
    const StepShape& shape = s.work.shape;
    Json sample =
        Json::array({cost.flops, cost.input_bytes, cost.output_bytes, cost.weight_bytes, shape.rows, shape.columns, shape.channels,
                     shape.depth, shape.taps, shape.stride, rounded(s.seconds), rounded(s.weight, 3), s.work.run_bytes, shape.epilogue});
    if (s.work.shared_bytes > s.work.run_bytes) sample.push_back(s.work.shared_bytes);
    samples.push_back(std::move(sample));
  }
  return {{"kernel", static_cast<int>(used.kernel)},
          {"use", static_cast<int>(used.use)},
          {"variant", used.variant},
          {"name", kernel == nullptr ? "" : std::string(kernel->name)},
          {"samples", samples}};
}

/// The rates of one kernel beside its samples.
Json json_of(const DeviceProfile& profile, const KernelRates& rates) {
  Json json = json_of(profile, rates.kernel);
  json["seconds_per"] = json_of_numbers(rates.seconds_per);
  json["scales"] = json_of_numbers(rates.scales);
  json["error"] = rounded(rates.error);
  return json;
}

UsedKernel kernel_of(const Json& json) {
  const int use = integer<int>(json.at("use"));
  if (use > static_cast<int>(KernelUse::kPrepare)) throw Mistake{"is no device profile: a kernel's use is unknown"};
  return {static_cast<KernelId>(integer<std::uint16_t>(json.at("kernel"))), static_cast<KernelUse>(use),
          integer<std::uint16_t>(json.at("variant"))};
}

constexpr std::size_t kMostFitted = 400;  // samples of one kernel: a fit takes their number cubed

constexpr double kLeastRateBeside = 0.1;  // of the rate of reads alone: what is measured is no less
constexpr double kMostRate = 1e3;         // seconds for one of what a term counts

KernelRates rates_of(const Json& json) {
  KernelRates rates{kernel_of(json), json.at("seconds_per").get<Terms>(), json.at("scales").get<Features>(), positive(json.at("error"))};
  for (const double value : rates.seconds_per)
    if (!(value >= 0 && value <= kMostRate)) throw Mistake{"is no device profile: a kernel's rate is below zero, or above 1000 seconds"};
  for (const float value : rates.scales)
    if (!std::isfinite(value) || value < 0) throw Mistake{"is no device profile: a feature's scale is below zero"};
  return rates;
}

/// Before version 12 slices and concatenations had the rows and pixels of their output, now they have pieces that are copied (step_work.cc). Those
/// of a profile's corpus cut channels, and join those of two maps; of a model's own steps that is a guess.
StepShape shape_by_pieces(const StepShape& before, KernelId kernel) {
  const double maps = kernel == kernels::kernel_id::kConcat ? 2 : 1, pixels = static_cast<double>(before.rows) * before.columns;
  constexpr double kAtOnce = kValuesMovedAtOnce, kMost = std::numeric_limits<std::uint32_t>::max();
  StepShape shape = before;
  shape.rows = static_cast<std::uint32_t>(std::clamp(std::min(pixels * maps, std::ceil(pixels * before.channels / kAtOnce)), 1.0, kMost));
  shape.columns = 1;
  shape.channels = static_cast<std::uint32_t>(std::clamp(std::round(pixels * before.channels / shape.rows), 1.0, kMost));
  return shape;
}

/// Before version 13 each row of a causal attention counted all keys, now those that it sees. How many queries a batch has follows from the bytes
/// where queries and values are equally wide: a row of output has one of queries, and its share of all keys and values. A sample of fewer rows is
/// of the first ones.
std::uint64_t flops_of_causal_rows(const StepWork& work) noexcept {
  const double keys = work.shape.taps, rows = work.shape.rows;
  const double of_keys =
      static_cast<double>(work.cost.input_bytes) / static_cast<double>(std::max<std::uint64_t>(work.cost.output_bytes, 1)) - 1;
  const double queries = of_keys > 2 ? std::clamp(std::round(2 * keys / of_keys), 1.0, keys) : keys;
  const double share = (keys - queries + (std::min(rows, queries) + 1) / 2) / keys;
  return share < 1 ? static_cast<std::uint64_t>(static_cast<double>(work.cost.flops) * share) : work.cost.flops;
}

/// Before version 16 means of whole maps of bytes were those of windows.
UsedKernel kernel_by_now(const UsedKernel& before, const StepShape& shape) {
  UsedKernel kernel = before;
  const bool mean =
      kernel.kernel == kernels::kernel_id::kIntegerPool && kernel.variant == static_cast<std::uint16_t>(PoolingKind::kAverage);
  if (mean && shape.rows == 1 && shape.columns == 1) kernel.variant = kWholeMean;
  return kernel;
}

KernelSample sample_of(const Json& json, const UsedKernel& kernel, int version) {
  const auto bytes = [&](std::size_t i) { return integer<std::uint64_t>(json.at(i)); };
  const auto extent = [&](std::size_t i) { return std::max<std::uint32_t>(1, integer<std::uint32_t>(json.at(i))); };
  KernelSample sample{
      kernel,
      {{bytes(0), bytes(1), bytes(2), bytes(3)}, {extent(4), extent(5), extent(6), extent(7), extent(8), extent(9)}, kernel.variant},
      positive(json.at(10)),
      json.at(11).get<double>()};
  if (version < 12 && (kernel.kernel == kernels::kernel_id::kSlice || kernel.kernel == kernels::kernel_id::kConcat))
    sample.work.shape = shape_by_pieces(sample.work.shape, kernel.kernel);
  if (version < 13 && kernel.kernel == kernels::kernel_id::kAttention && kernel.variant == kCausal)
    sample.work.cost.flops = flops_of_causal_rows(sample.work);
  if (version < 16) {
    sample.kernel = kernel_by_now(kernel, sample.work.shape);
    sample.work.variant = sample.kernel.variant;
  }
  sample.work.run_bytes = bytes(12);
  sample.work.shared_bytes = std::max(sample.work.run_bytes, json.size() > 14 ? bytes(14) : 0);
  sample.work.shape.epilogue = extent(13);
  if (!(sample.seconds >= kLeastStepSeconds && sample.seconds <= kMostStepSeconds))
    throw Mistake{"is no device profile: a step's time is no time"};
  if (!std::isfinite(sample.weight)) throw Mistake{"is no device profile: a sample's weight is no number"};
  return sample;
}

/// Reads kernels with their samples and works out what follows from them. A device that cannot fit rates prints none: then all are fitted
/// here, and so they are if its rates are of other terms.
void add_kernels(const Json& json, int version, DeviceProfile& profile) {
  bool fitted = version == kVersion;
  for (const Json& kernel : json) {
    for (const Json& sample : kernel.at("samples")) profile.samples.push_back(sample_of(sample, kernel_of(kernel), version));
    if (fitted && kernel.contains("seconds_per"))
      profile.kernels.push_back(rates_of(kernel));
    else
      fitted = false;
  }
  if (!fitted) {
    if (version < 16)
      sluice::sort(profile.samples.begin(), profile.samples.end(),
                   [](const KernelSample& a, const KernelSample& b) { return a.kernel < b.kernel; });
    for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
      if (samples.size() > kMostFitted) throw Mistake{"is no device profile: more samples of one kernel than can be fitted anew"};
    });
    return fit(profile);
  }
  sluice::sort(profile.kernels.begin(), profile.kernels.end(),
               [](const KernelRates& a, const KernelRates& b) { return a.kernel < b.kernel; });
  for_each_kernel(profile.samples, [&](std::span<KernelSample> samples) {
    if (detail::of_kernel(profile.kernels, samples.front().kernel).size() != 1)
      throw Mistake{"is no device profile: a kernel is there twice"};
  });
  place_samples(profile);
}

void check_read(const ReadRate& read) {
  if (read.depth < 1 || read.depth > kMostReadsInFlight) throw Mistake{"is no device profile: reads in flight are none, or more than 16"};
  if (read.piece_bytes == 0 || read.piece_bytes % kReadBlock.count() != 0 || read.piece_bytes > kMostReadBytes.count())
    throw Mistake{"is no device profile: the bytes of a read are no multiple of 4096, or above 1 GiB"};
}

/// Interruptions::met. Before version 11 the first, third and fifth were not measured: they are midway between their neighbours.
decltype(Interruptions::met) shares_met(const Json& json) {
  if (!json.is_array() || (json.size() != 5 && json.size() != 2))
    throw Mistake{"is no device profile: what runs meet of interruptions is not five numbers, nor two"};
  auto met = json.get<std::vector<double>>();
  if (met.size() == 2) met = {met[0] / 2, met[0], (met[0] + met[1]) / 2, met[1], (met[1] + 1) / 2};
  double before = 0;
  for (const double each : met) {
    if (!(each >= before && each <= 1)) throw Mistake{"is no device profile: what runs meet of interruptions does not grow from 0 to 1"};
    before = each;
  }
  return {met[0], met[1], met[2], met[3], met[4]};
}

/// What was measured on one number of threads.
DeviceProfile profile_of(const Json& whole, const Json& json) {
  DeviceProfile profile;
  profile.device = whole.at("device").get<std::string>();
  profile.isa = whole.at("isa").get<std::string>();
  profile.threads = integer<int>(json.at("threads"));
  if (profile.threads < 1) throw Mistake{"is no device profile: it is of no thread"};
  profile.step_overhead_seconds = positive(json.at("step_overhead_seconds"));
  profile.verify_bytes_per_second = positive(json.at("verify_bytes_per_second"));
  // Assumed for a profile that was written before this was measured.
  if (json.contains("decoded_per_second")) profile.decoded_per_second = positive(json.at("decoded_per_second"));
  if (json.contains("others_bytes_per_second")) profile.others_bytes_per_second = positive(json.at("others_bytes_per_second"));
  if (json.contains("anchor_seconds")) profile.anchor_seconds = positive(json.at("anchor_seconds"));
  if (json.contains("reads_at_once")) {
    profile.reads_at_once = integer<std::uint32_t>(json.at("reads_at_once"));
    if (profile.reads_at_once < 1 || profile.reads_at_once > kMostReadsInFlight)
      throw Mistake{"is no device profile: its disk works at no read at once, or at more than 16"};
  }
  if (json.contains("copies_views")) profile.copies_views = json.at("copies_views").get<bool>();
  profile.load_start_seconds = positive(json.at("load_start_seconds"));
  profile.wake_seconds = positive(json.at("wake_seconds"));
  profile.share_seconds = positive(json.at("share_seconds"));
  profile.read_rate_beside_compute = std::clamp(positive(json.at("read_rate_beside_compute")), kLeastRateBeside, 1.0);
  profile.step_time_beside_reads = positive(json.at("step_time_beside_reads"));
  // Samples of a profile that lacks it have interruptions in their times.
  if (json.contains("interrupted")) profile.interruptions.share = std::min(positive(json.at("interrupted")), 1.0);
  if (json.contains("interruptions_met")) profile.interruptions.met = shares_met(json.at("interruptions_met"));
  profile.common_error = positive(json.at("common_error"));
  profile.read_error = positive(json.at("read_error"));
  for (const Json& read : json.at("reads"))
    profile.reads.push_back(
        {integer<std::uint32_t>(read.at("in_flight")), integer<std::uint64_t>(read.at("bytes")), positive(read.at("bytes_per_second"))});
  for (const ReadRate& read : profile.reads) check_read(read);
  sluice::sort(profile.reads.begin(), profile.reads.end(),
               [](const auto& a, const auto& b) { return a.depth != b.depth ? a.depth < b.depth : a.piece_bytes < b.piece_bytes; });
  add_kernels(json.at("kernels"), integer<int>(whole.at("version")), profile);
  return profile;
}

std::vector<DeviceProfile> profiles_of(const Json& json) {
  if (json.at("format") != kFormat) throw Mistake{"is no device profile: it is of another format"};
  const int version = integer<int>(json.at("version"));
  if (version < kOldestVersion || version > kVersion)
    throw Mistake{"is a device profile of another version: measure anew with `sluice profile`", version};
  std::vector<DeviceProfile> profiles;
  for (const Json& each : json.at("profiles")) {
    profiles.push_back(profile_of(json, each));
    for (std::size_t i = 0; i + 1 < profiles.size(); ++i)
      if (profiles[i].threads == profiles.back().threads) throw Mistake{"is no device profile: it has a number of threads twice"};
  }
  if (profiles.empty()) throw Mistake{"is no device profile: it has no number of threads"};
  return profiles;
}

Json json_of(const DeviceProfile& profile) {
  Json json = {{"threads", profile.threads},
               {"step_overhead_seconds", profile.step_overhead_seconds},
               {"verify_bytes_per_second", profile.verify_bytes_per_second},
               {"load_start_seconds", profile.load_start_seconds},
               {"wake_seconds", profile.wake_seconds},
               {"share_seconds", profile.share_seconds},
               {"read_rate_beside_compute", profile.read_rate_beside_compute},
               {"step_time_beside_reads", profile.step_time_beside_reads},
               {"common_error", profile.common_error},
               {"read_error", profile.read_error},
               {"reads", Json::array()},
               {"kernels", Json::array()}};
  for (const ReadRate& read : profile.reads)
    json["reads"].push_back({{"in_flight", read.depth}, {"bytes", read.piece_bytes}, {"bytes_per_second", rounded(read.bytes_per_second)}});
  for (const KernelRates& rates : profile.kernels) json["kernels"].push_back(json_of(profile, rates));
  if (profile.interruptions.share > 0) {
    json["interrupted"] = rounded(profile.interruptions.share, 3);
    for (const double met : profile.interruptions.met) json["interruptions_met"].push_back(rounded(met, 3));
  }
  if (profile.others_bytes_per_second > 0) json["others_bytes_per_second"] = rounded(profile.others_bytes_per_second, 3);
  if (profile.anchor_seconds > 0) json["anchor_seconds"] = rounded(profile.anchor_seconds);
  if (profile.reads_at_once > 1) json["reads_at_once"] = profile.reads_at_once;
  if (profile.copies_views) json["copies_views"] = true;
  if (profile.decoded_per_second > 0) json["decoded_per_second"] = profile.decoded_per_second;
  return json;
}

}  // namespace

std::string default_profile_path() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = std::string(home) + "/.cache";
  } else {
    return {};
  }
  return folder + "/sluice/" + slug(device_name()) + "-" + std::string(name_of(active_isa())) + ".json";
}

std::string text_of_profiles(std::span<const DeviceProfile> profiles) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"device", profiles.front().device},
               {"isa", profiles.front().isa},
               {"profiles", Json::array()}};
  for (const DeviceProfile& profile : profiles) json["profiles"].push_back(json_of(profile));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> pieces_of_profile(const DeviceProfile& profile) {
  constexpr std::string_view kHole = "\"time\"";
  Json kernels = Json::array();
  for (auto first = profile.samples.begin(); first != profile.samples.end();) {
    const UsedKernel kernel = first->kernel;
    kernels.push_back(json_of(profile, kernel));
    for (Json& sample : kernels.back()["samples"]) sample.at(10) = "time";
    first = std::find_if(first, profile.samples.end(), [&](const KernelSample& s) { return s.kernel != kernel; });
  }
  Json whole = Json::parse(text_of_profiles(std::span(&profile, 1)));
  whole["profiles"][0]["kernels"] = std::move(kernels);
  const std::string text = whole.dump();
  std::vector<std::string> pieces;
  std::size_t from = 0;
  for (std::size_t at = text.find(kHole); at != std::string::npos; at = text.find(kHole, from)) {
    pieces.push_back(text.substr(from, at - from));
    from = at + kHole.size();
  }
  pieces.push_back(text.substr(from));
  return pieces;
}

Result<std::vector<DeviceProfile>> parse_profiles(std::string_view text, std::string_view subject) {
  // A device's console may print other text before the profile and after it.
  const std::size_t first = text.find('{'), last = text.rfind('}');
  const bool framed = first != std::string_view::npos && last != std::string_view::npos && first < last;
  try {
    return profiles_of(Json::parse(framed ? text.substr(first, last + 1 - first) : text));
  } catch (const Mistake& mistake) {
    if (mistake.version == kVersion) return fail(ErrorCode::kInvalidArgument, subject, mistake.reason);
    return fail(make_error(ErrorCode::kUnsupportedVersion, subject, mistake.reason, kVersion, static_cast<std::uint64_t>(mistake.version)));
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory(subject));
  } catch (const std::exception&) {  // of the JSON library
    return fail(ErrorCode::kInvalidArgument, subject, "is no device profile: it is no JSON, or a value is missing or of another type");
  }
}

Result<std::vector<DeviceProfile>> load_profiles(const std::string& path) {
  if (path.empty())  // default_profile_path had none
    return fail(ErrorCode::kIo, "device profile", "neither XDG_CACHE_HOME nor HOME says where it is kept: name its file");
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_file(path, kMostProfileBytes));
  return parse_profiles({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

DeviceProfile profile_for_threads(std::span<const DeviceProfile> profiles, int threads) {
  for (const DeviceProfile& profile : profiles)
    if (profile.threads == threads) return profile;
  DeviceProfile profile = profiles.front();
  forget_kernels(profile);
  return profile;
}

}  // namespace sluice::profiler
