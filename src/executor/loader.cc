#include "src/executor/loader.h"

#include <algorithm>
#include <cerrno>

#include "sluice/core/hash.h"
#include "src/executor/clock.h"

namespace sluice::executor {
namespace {

// Direct reads reach the disk's rate from 256 KiB on and are flat from 1 MiB (1.5 GB/s, one in flight).
constexpr Bytes kPieceBytes{1 << 20};
// The loader's frames: a system call and a checksum.
constexpr std::size_t kStackBytes = 64 * 1024;

void sleep_ns(std::int64_t duration) noexcept {
  timespec rest{static_cast<time_t>(duration / 1'000'000'000), static_cast<long>(duration % 1'000'000'000)};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
  }
}

}  // namespace

Loader::~Loader() {
  stopping_ = true;
  begun_.advance();
  thread_.join();
}

Status Loader::start() noexcept { return thread_.start("loader", kStackBytes, &Loader::thread_main, this); }

void Loader::begin(bool prologue, std::uint64_t steps_base) noexcept {
  prologue_ = prologue;
  steps_base_ = steps_base;
  begun_.advance();
}

Status Loader::finish() noexcept {
  ended_.wait_for(begun_.count());
  return result_;
}

void Loader::thread_main(void* self) noexcept {
  Loader& loader = *static_cast<Loader*>(self);
  for (std::uint64_t run = 1;; ++run) {
    loader.begun_.wait_for(run);
    if (loader.stopping_) return;
    loader.stats_ = {};
    loader.result_ = loader.run_loads();
    if (!loader.result_) loader.loads_.interrupt();
    loader.ended_.advance();
  }
}

Status Loader::run_loads() noexcept {
  for (const plan::Load& load : plan_.loads) {
    if (!prologue_ && !load.streamed()) continue;
    // A gate below 0 would let a load begin in the previous run; it is allowed to begin later.
    if (load.gate > 0) steps_.wait_for(steps_base_ + static_cast<std::uint64_t>(load.gate));
    SLUICE_RETURN_IF_ERROR(run_load(load));
    loads_.advance();
  }
  return source_.check_unchanged();
}

Status Loader::run_load(const plan::Load& load) noexcept {
  const std::int64_t start = wall_now_ns();
  std::byte* region = arena_ + plan_.buffer(load.target).offset.count();
  std::uint32_t next_stretch = load.first_stretch;
  Status status;
  for (Bytes at = load.file.offset; status && at < load.file.end();) {
    const Bytes size = std::min(kPieceBytes, load.file.end() - at);
    status = source_.read({at, size}, region + (at - load.file.offset).count());
    if (!status) break;
    at += size;
    stats_.bytes_read += size;
    status = verify(load, at, next_stretch);
    if (limit_ > 0) pace(start);
  }
  stats_.busy_ns += wall_now_ns() - start;
  return status;
}

/// Compares the stretches of `load` that lie whole below file offset `arrived`, from `next_stretch` on.
Status Loader::verify(const plan::Load& load, Bytes arrived, std::uint32_t& next_stretch) noexcept {
  const std::byte* region = arena_ + plan_.buffer(load.target).offset.count();
  for (; next_stretch < load.first_stretch + load.stretch_count; ++next_stretch) {
    const model::Stretch& stretch = graph_.stretches[next_stretch];
    if (stretch.offset + stretch.stored_size > arrived) return {};
    const std::byte* bytes = region + (stretch.offset - load.file.offset).count();
    if (xxh3_64({bytes, stretch.stored_size.count()}) != stretch.xxh3) {
      return fail(make_error(ErrorCode::kChecksumMismatch, graph_.name,
                             "the weights at this offset of the model file are not those that were written", stretch.offset.count(),
                             stretch.offset.count()));
    }
  }
  return {};
}

/// Sleeps so that the bytes of this load do not come faster than the limit.
void Loader::pace(std::int64_t load_start_ns) noexcept {
  const double due = static_cast<double>(stats_.bytes_read.count()) / limit_ * 1e9;
  const double spent = static_cast<double>(stats_.busy_ns + wall_now_ns() - load_start_ns);
  if (due > spent) sleep_ns(static_cast<std::int64_t>(due - spent));
}

}  // namespace sluice::executor
