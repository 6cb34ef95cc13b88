// `sluice profile`: measures this device and writes the profile to the file in which `plan` and `run` look for it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "sluice/core/cpu.h"
#include "sluice/core/file.h"
#include "sluice/engine/auto_budget.h"
#include "sluice/kernels/registry.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/cli/commands.h"
#include "src/cli/failure.h"
#include "src/cli/json.h"
#include "src/cli/open_model.h"
#include "src/cli/process.h"
#include "src/cli/profile_file.h"
#include "src/cli/session_options.h"
#include "src/cli/text.h"
#include "src/executor/coding/decode_rate.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using profiler::DeviceProfile;

/// A file to read for the rate of reading, gone when its owner is.
class ScratchFile {
 public:
  explicit ScratchFile(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    path_ = (folder / fmt::format("read-rate-{}.tmp", ::getpid())).string();
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    std::vector<char> block(std::size_t{1} << 20);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>((i * 2654435761u) >> 13);  // not what compresses to nothing
    constexpr int kBlocks = 128;
    for (int i = 0; i < kBlocks; ++i) file.write(block.data(), static_cast<std::streamsize>(block.size()));
    file.close();
    if (!file) {
      remove();
      raise(make_error(ErrorCode::kIo, path_, "the file whose reading is to be measured cannot be written; --file names another one"));
    }
    const FileDescriptor written = unwrap(open_for_reading(path_));
    file_ops().fsync(written.get());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { remove(); }
  const std::string& path() const { return path_; }

 private:
  void remove() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path_;
};

void limit_reads(DeviceProfile& profile, double limit) {
  if (limit <= 0) return;
  for (profiler::ReadRate& read : profile.reads) read.bytes_per_second = std::min(read.bytes_per_second, limit);
  profile.reads_at_once = 1;  // a limit is kept read by read
}

/// The largest of the models, if it is large enough to be timed: plans wait for the disk that it lies on, and what was just written may
/// still be in memory on the disk's far side. Else nothing.
std::string file_to_read(const std::vector<std::shared_ptr<const Model>>& models) {
  const auto size = [](const std::shared_ptr<const Model>& model) { return model->file().file_size(); };
  const auto largest = std::max_element(models.begin(), models.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
  if (largest == models.end() || size(*largest) < profiler::kLeastFileToRead) return {};
  return (*largest)->file().path();
}

bool is_of_this_device(const DeviceProfile& profile) {
  return profile.device == profiler::device_name() && profile.isa == name_of(active_isa());
}

/// The samples of an interrupted measurement, in a file beside the profile; removed when the profile is written.
class Partial {
 public:
  Partial(const std::string& path, int threads, profiler::NetType type)
      : path_(type == profiler::NetType::kF32 ? fmt::format("{}.{}t.partial", path, threads)
                                              : fmt::format("{}.{}t.{}.partial", path, threads, profiler::name_of(type))) {
    if (!fs::exists(path_)) return;
    try {
      DeviceProfile left = profiler::profile_for_threads(unwrap(profiler::load_profiles(path_)), threads);
      if (!is_of_this_device(left)) return;
      known_ = std::move(left.samples);
      known_anchor_seconds_ = left.anchor_seconds;
    } catch (const Failure&) {
      // The file is of another version, or cut short: it is measured anew.
    }
    if (!known_.empty()) fmt::print(stderr, "sluice: {} measurements of an interrupted run are taken from {}\n", known_.size(), path_);
  }
  const std::vector<profiler::KernelSample>& known() const { return known_; }
  double known_anchor_seconds() const { return known_anchor_seconds_; }
  void keep(const std::vector<profiler::KernelSample>& samples, int threads, double anchor_seconds) const {
    DeviceProfile profile;
    profile.device = profiler::device_name();
    profile.isa = name_of(active_isa());
    profile.threads = threads;
    profile.samples = samples;
    profile.anchor_seconds = anchor_seconds;
    profiler::fit(profile);
    save_profiles(std::span(&profile, 1), path_);
  }
  void done() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

 private:
  std::string path_;
  std::vector<profiler::KernelSample> known_;
  double known_anchor_seconds_ = 0;
};

/// What the measurement tells while it goes on.
struct Told {
  Progress progress;
  std::map<profiler::NetType, Partial> partials;
  int threads;
};

DeviceProfile measure(const ProfileOptions& options, int threads, const std::string& path) {
  std::vector<std::shared_ptr<const Model>> models;
  for (const std::string& name : options.models) models.push_back(open_model(name, {}, options.key));
  profiler::MeasureOptions measured;
  measured.threads = threads;
  measured.most = static_cast<std::size_t>(options.most);
  measured.seconds = options.seconds;
  measured.memory = read_memory_outlook().available;
  for (const auto& model : models) measured.graphs.push_back(&model->graph());
  measured.file = options.file.empty() ? file_to_read(models) : options.file;
  std::optional<ScratchFile> scratch;
  if (measured.file.empty()) measured.file = scratch.emplace(fs::absolute(path).parent_path()).path();
  Told told{{fmt::format("profile, {} thread{}", threads, threads == 1 ? "" : "s"), 0}, {}, threads};
  measured.types.clear();
  for (const std::string& name : options.types) {
    const profiler::NetType type = profiler::net_type_of(name).value_or(profiler::NetType::kF32);  // main.cc knows these names
    const auto [partial, first] = told.partials.try_emplace(type, path, threads, type);
    if (first) measured.types.push_back({type, &partial->second.known(), partial->second.known_anchor_seconds()});
  }
  measured.progress = [](void* context, std::size_t done, std::size_t all) {
    static_cast<Told*>(context)->progress.update(done, [&] { return fmt::format("measurement {} of {} at most", done + 1, all); });
  };
  measured.keep = [](void* context, profiler::NetType type, const std::vector<profiler::KernelSample>& samples, double anchor_seconds) {
    const Told& to_keep = *static_cast<Told*>(context);
    to_keep.partials.at(type).keep(samples, to_keep.threads, anchor_seconds);
  };
  measured.progress_context = &told;
  DeviceProfile profile = unwrap(profiler::measure_device(measured));
  profile.decoded_per_second = executor::coding::measure_decode_rate();
  for (const auto& [type, partial] : told.partials) partial.done();
  return profile;
}

void print_as_text(const DeviceProfile& profile, const std::string& path) {
  fmt::print("{}, {}, {} thread{}\n\n", profile.device, profile.isa, profile.threads, profile.threads == 1 ? "" : "s");
  fmt::print("  {:<34}{:>8}{:>10}\n", "kernel", "samples", "error");
  for (const profiler::KernelRates& rates : profile.kernels) {
    constexpr const char* kUses[] = {"", " (derived)", " (prepare)"};
    const kernels::KernelDescriptor* const kernel = kernels::find_kernel(rates.kernel.kernel);
    const auto samples = profiler::detail::of_kernel(profile.samples, rates.kernel);
    const std::string variant = rates.kernel.variant == 0 ? "" : fmt::format(" #{}", rates.kernel.variant);
    fmt::print("  {:<34}{:>8}{:>9.1f}%\n",
               fmt::format("{}{}{}", kernel == nullptr ? "?" : kernel->name, kUses[static_cast<int>(rates.kernel.use)], variant),
               samples.size(), 100 * rates.error);
  }
  fmt::print("\n  {:<28}{:>8}{:>16}\n", "reads of", "at once", "rate");
  for (const profiler::ReadRate& read : profile.reads)
    fmt::print("  {:<28}{:>8}{:>11.2f} GB/s\n", format_bytes(Bytes(read.piece_bytes)), read.depth, read.bytes_per_second * 1e-9);
  if (!profile.reads.empty()) fmt::print("  {:<36}{:>11}\n", "reads of eight that it works at together", profile.reads_at_once);
  fmt::print("  {:<36}{:>11.2f} GB/s\n", "checksums", profile.verify_bytes_per_second * 1e-9);
  fmt::print("  {:<36}{:>11.2f} billion a second\n", "coded values", profile.decoded_per_second * 1e-9);
  fmt::print("  {:<36}{:>11.0f} us\n  {:<36}{:>11.0f} us\n", "the first bytes after a gate", profile.load_start_seconds * 1e6,
             "waking after a load", profile.wake_seconds * 1e6);
  if (profile.threads > 1) fmt::print("  {:<36}{:>11.1f} us\n", "sharing a step among threads", profile.share_seconds * 1e6);
  fmt::print(
      "\n  {} measurements; beside one another, reads keep {:.0f}% of their rate and steps take {:.0f}% of their time\n\nwritten to {}\n",
      profile.samples.size(), 100 * profile.read_rate_beside_compute, 100 * profile.step_time_beside_reads, path);
}

/// The profiles of other numbers of threads that the file has already; a file of another version or device is written anew.
std::vector<DeviceProfile> beside(const std::string& path, const std::vector<int>& threads) {
  std::vector<DeviceProfile> kept;
  if (!fs::exists(path)) return kept;
  try {
    for (DeviceProfile& profile : unwrap(profiler::load_profiles(path))) {
      if (is_of_this_device(profile) && std::find(threads.begin(), threads.end(), profile.threads) == threads.end())
        kept.push_back(std::move(profile));
    }
  } catch (const Failure&) {
    kept.clear();
  }
  return kept;
}

DeviceProfile transfer(const ProfileOptions& options, int threads) {
  const std::vector<DeviceProfile> others = unwrap(profiler::load_profiles(options.transfer));
  const bool there = std::any_of(others.begin(), others.end(), [&](const DeviceProfile& p) { return p.threads == threads; });
  if (!there) raise(make_error(ErrorCode::kInvalidArgument, options.transfer, "has no profile of so many threads to transfer"));
  return unwrap(profiler::transfer_profile(profiler::profile_for_threads(others, threads),
                                           {.threads = threads, .memory = read_memory_outlook().available}));
}

/// Of so many threads, if it is of this device and says how fast that was.
const DeviceProfile& profile_to_check(const std::vector<DeviceProfile>& profiles, int threads, const std::string& path) {
  const auto refuse = [&](const std::string& subject, const char* why) { raise(make_error(ErrorCode::kInvalidArgument, subject, why)); };
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const DeviceProfile& p) { return p.threads == threads; });
  if (found == profiles.end()) refuse(fmt::format("{}, --threads {}", path, threads), "the file has no profile of so many threads");
  if (!is_of_this_device(*found))
    refuse(fmt::format("{} of {} ({}) on {} ({})", path, found->device, found->isa, profiler::device_name(), name_of(active_isa())),
           "is of another device: measure this one with `sluice profile`");
  if (found->anchor_seconds <= 0) refuse(path, "does not say how fast the machine was: measure it anew with `sluice profile`");
  return *found;
}

/// Is the machine now as fast as when its profile was measured?
void check(const ProfileOptions& options, const std::string& path) {
  constexpr double kSeconds = 1;
  ProfileOptions known;
  known.check = true;
  known.threads = options.threads;
  known.output = options.output;
  known.json = options.json;
  if (options != known)
    raise(make_error(ErrorCode::kInvalidArgument, "--check", "measures nothing anew: it goes with --output, --threads and --json"));
  const std::vector<DeviceProfile> profiles = unwrap(profiler::load_profiles(path));
  std::vector<const DeviceProfile*> asked;
  for (const int threads : options.threads) asked.push_back(&profile_to_check(profiles, threads, path));
  Json checks = Json::array();
  for (const DeviceProfile* const profile : asked) {
    const double now = unwrap(profiler::time_anchor(profile->threads, kSeconds)), ratio = now / profile->anchor_seconds;
    checks.push_back(
        {{"threads", profile->threads}, {"anchor_ms", 1e3 * profile->anchor_seconds}, {"anchor_ms_now", 1e3 * now}, {"ratio", ratio}});
    if (!options.json)
      fmt::print(
          "{} thread{}: computing takes {:.2f} times as long as when the profile was measured (a 1x1 convolution {:.4f} ms, {:.4f} then)\n",
          profile->threads, profile->threads == 1 ? "" : "s", ratio, 1e3 * now, 1e3 * profile->anchor_seconds);
  }
  if (options.json) print_json("sluice profile --check", {{"profile", path}, {"checks", checks}});
}

}  // namespace

void profile(const ProfileOptions& options) {
  const std::string path = options.output.empty() ? profiler::default_profile_path() : options.output;
  if (path.empty()) raise(make_error(ErrorCode::kInvalidArgument, "--output", "is needed: there is no home folder to write to"));
  for (const int threads : options.threads)
    if (threads < 1 || threads > processor_count())
      raise(make_error(ErrorCode::kInvalidArgument, "--threads", "are numbers from 1 to the number of processors"));
  if (options.check) return check(options, path);
  const double limit = parse_rate(options.io_limit);
  std::vector<DeviceProfile> profiles = beside(path, options.threads);
  for (const int threads : options.threads) {
    DeviceProfile measured = options.transfer.empty() ? measure(options, threads, path) : transfer(options, threads);
    limit_reads(measured, limit);
    if (!options.json) print_as_text(measured, path);
    profiles.push_back(std::move(measured));
    save_profiles(profiles, path);
  }
  if (options.json) std::fputs(profiler::text_of_profiles(profiles).c_str(), stdout);
}

}  // namespace sluice::cli
