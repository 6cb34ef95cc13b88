// `sluice profile`: measures this device and writes what it found where `plan` and `run` look for it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sluice/core/cpu.h"
#include "sluice/core/file.h"
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
}

/// The largest of the models, if it is large enough to be timed: plans wait for the disk that it lies on, and what was just written may
/// still be in memory on the disk's far side. Else nothing.
std::string file_to_read(const std::vector<std::shared_ptr<const Model>>& models) {
  const auto size = [](const std::shared_ptr<const Model>& model) { return model->file().file_size(); };
  const auto largest = std::max_element(models.begin(), models.end(), [&](const auto& a, const auto& b) { return size(a) < size(b); });
  if (largest == models.end() || size(*largest) < profiler::kLeastFileToRead) return {};
  return (*largest)->file().path();
}

DeviceProfile measure(const ProfileOptions& options, const fs::path& folder) {
  std::vector<std::shared_ptr<const Model>> models;
  for (const std::string& path : options.models) models.push_back(open_model(path, {}, options.key));
  profiler::MeasureOptions measured;
  measured.threads = options.threads;
  for (const auto& model : models) measured.graphs.push_back(&model->graph());
  measured.file = options.file.empty() ? file_to_read(models) : options.file;
  std::optional<ScratchFile> scratch;
  if (measured.file.empty()) measured.file = scratch.emplace(folder).path();
  Progress progress("profile", 0);
  measured.progress = [](void* context, std::size_t done, std::size_t all) {
    static_cast<Progress*>(context)->update(done, [&] { return fmt::format("measurement {} of {}", done + 1, all); });
  };
  measured.progress_context = &progress;
  DeviceProfile profile = unwrap(profiler::measure_device(measured));
  profile.decoded_per_second = executor::coding::measure_decode_rate();
  return profile;
}

void print_as_text(const DeviceProfile& profile, const std::string& path) {
  fmt::print("{}, {}, {} thread{}\n\n", profile.device, profile.isa, profile.threads, profile.threads == 1 ? "" : "s");
  fmt::print("  {:<28}{:>8}{:>16}\n", "kernel", "samples", "typical error");
  for (const profiler::KernelRates& rates : profile.kernels) {
    constexpr const char* kUses[] = {"", " (derived)", " (prepare)"};
    const kernels::KernelDescriptor* const kernel = kernels::find_kernel(rates.kernel.kernel);
    const auto samples = profiler::detail::of_kernel(profile.samples, rates.kernel);
    fmt::print("  {:<28}{:>8}{:>15.1f}%\n", fmt::format("{}{}", kernel->name, kUses[static_cast<int>(rates.kernel.use)]), samples.size(),
               100 * profiler::typical_error(samples));
  }
  fmt::print("\n  {:<28}{:>8}{:>16}\n", "reads of", "at once", "rate");
  for (const profiler::ReadRate& read : profile.reads)
    fmt::print("  {:<28}{:>8}{:>11.2f} GB/s\n", format_bytes(Bytes(read.piece_bytes)), read.depth, read.bytes_per_second * 1e-9);
  fmt::print("  {:<36}{:>11.2f} GB/s\n", "checksums", profile.verify_bytes_per_second * 1e-9);
  fmt::print("  {:<36}{:>11.2f} billion a second\n", "coded values", profile.decoded_per_second * 1e-9);
  fmt::print("  {:<36}{:>11.0f} us\n  {:<36}{:>11.0f} us\n", "the first bytes after a gate", profile.load_start_seconds * 1e6,
             "waking after a load", profile.wake_seconds * 1e6);
  if (profile.threads > 1) fmt::print("  {:<36}{:>11.1f} us\n", "sharing a step among threads", profile.share_seconds * 1e6);
  fmt::print("\n  beside one another, reads keep {:.0f}% of their rate and steps take {:.0f}% of their time\n\nwritten to {}\n",
             100 * profile.read_rate_beside_compute, 100 * profile.step_time_beside_reads, path);
}

}  // namespace

void profile(const ProfileOptions& options) {
  const std::string path = options.output.empty() ? default_profile_path(options.threads) : options.output;
  if (path.empty()) raise(make_error(ErrorCode::kInvalidArgument, "--output", "is needed: there is no home folder to write to"));
  if (options.threads < 1 || options.threads > processor_count())
    raise(make_error(ErrorCode::kInvalidArgument, "--threads", "is a number from 1 to the number of processors"));
  const double limit = parse_rate(options.io_limit);
  DeviceProfile measured = measure(options, fs::absolute(path).parent_path());
  limit_reads(measured, limit);
  save_profile(measured, path);
  if (options.json) {
    std::fputs(text_of_profile(measured).c_str(), stdout);
  } else {
    print_as_text(measured, path);
  }
}

}  // namespace sluice::cli
