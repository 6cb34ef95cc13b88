#include "src/profiler/read_timer.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>

#include "sluice/core/arena.h"
#include "sluice/core/hash.h"
#include "sluice/core/lane.h"
#include "sluice/core/native_thread.h"
#include "sluice/model/weight_source.h"
#include "sluice/profiler/fit.h"
#include "sluice/profiler/measure.h"
#include "src/model/aligned_buffer.h"
#include "src/model/read_queue.h"
#include "src/profiler/middle.h"
#include "src/profiler/stopwatch.h"

namespace sluice::profiler {
namespace {

constexpr std::array<std::uint64_t, 6> kPieces = {16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};
constexpr std::array<std::uint32_t, 4> kDepths = {1, 2, 4, 8};
constexpr Bytes kRoom(kPieces.back() * (kDepths.back() + 1));  // one more than in flight is being checked
constexpr std::uint64_t kMostRead = 256 << 20;
constexpr double kSecondsEach = 0.2;
constexpr int kReadPasses = 2;  // the better counts: a disk that others share is slow for seconds at a time
constexpr std::uint64_t kPieceTogether = 256 << 10;
constexpr int kRoundsTogether = 40;
constexpr int kTurnsTogether = 5;
constexpr std::int64_t kGlanceNs = 50'000'000;
constexpr std::size_t kStackBytes = 64 * 1024;

std::uint64_t checksum(const std::byte* bytes, std::uint64_t size) {
  constexpr std::uint64_t kStretch = model::kStretchBytes.count();
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < size; at += kStretch) sum ^= xxh3_64({bytes + at, std::min(kStretch, size - at)});
  return sum;
}

/// Reads piece after piece as a session's loader does: `depth` of them in flight, on one thread, and when one has arrived the next is asked
/// for before it is checked.
class ReadStream {
 public:
  ReadStream(model::WeightSource& source, std::uint64_t piece, std::uint64_t first) : source_(source), piece_(piece), next_(first) {
    limit_ = std::min(align_down(source.size().count(), kPieces.back()), kMostRead);
  }

  /// Bytes per second, read and checked.
  Result<double> rate(std::uint32_t depth) {
    const int reads = static_cast<int>(depth);
    SLUICE_RETURN_IF_ERROR(open(reads));
    const Clock::time_point start = Clock::now();
    for (int slot = 0; slot < reads; ++slot) begin(slot);
    Status status;
    std::uint64_t bytes = 0;
    std::uint64_t sum = 0;
    for (int free = reads, in_flight = reads; in_flight > 0;) {
      const model::ReadQueue::Ended ended = queue_->wait(kGlanceNs);
      if (ended.slot < 0) continue;
      if (!ended.status) status = ended.status;
      if (status && seconds_since(start) < kSecondsEach) {
        begin(free);
      } else {
        --in_flight;
      }
      free = ended.slot;
      sum ^= checksum(at(free), piece_);
      bytes += piece_;
    }
    if (!status) return fail(status.error());
    // `sum` is used, so that the checking is done.
    return static_cast<double>(bytes + (sum == 1 ? 1 : 0)) / seconds_since(start);
  }
  /// Of reads that begin together, how many the disk works at together: of one after the other the first ends long before the last, of all
  /// together with it. `start`: what one of no bytes takes.
  Result<std::uint32_t> at_once(std::uint32_t depth, double start) {
    SLUICE_RETURN_IF_ERROR(open(static_cast<int>(depth)));
    std::vector<double> shares;
    for (int round = 0; round < kRoundsTogether; ++round) {
      const Clock::time_point begin_time = Clock::now();
      for (std::uint32_t slot = 0; slot < depth; ++slot) begin(static_cast<int>(slot));
      double first = 0;
      Status status;
      for (std::uint32_t left = depth; left > 0;) {
        const model::ReadQueue::Ended ended = queue_->wait(kGlanceNs);
        if (ended.slot < 0) continue;
        if (!ended.status) status = ended.status;
        if (left-- == depth) first = seconds_since(begin_time);
      }
      if (!status) return fail(status.error());
      const double last = seconds_since(begin_time);
      shares.push_back(std::max(first - start, 0.0) / std::max(last - start, 1e-9));
    }
    return static_cast<std::uint32_t>(std::clamp(std::round(middle_of(std::move(shares)) * depth), 1.0, static_cast<double>(depth)));
  }

  /// The offset at which the next stream begins, so that no cache of the disk serves it.
  std::uint64_t next() const noexcept { return next_; }

 private:
  Status open(int reads) {
    SLUICE_ASSIGN_OR_RETURN(arena_, Arena::reserve(kRoom));
    SLUICE_RETURN_IF_ERROR(arena_.commit(kRoom));
    SLUICE_ASSIGN_OR_RETURN(queue_, model::make_reads(source_, model::ReadMethod::kAuto, reads, {}, "profile"));
    return {};
  }

  std::byte* at(int slot) { return arena_.data() + piece_ * static_cast<std::uint64_t>(slot); }

  void begin(int slot) {
    queue_->start(slot, {Bytes(next_ / piece_ * piece_ % limit_), Bytes(piece_)}, at(slot));
    next_ += piece_;
  }

  model::WeightSource& source_;
  std::uint64_t piece_;
  std::uint64_t limit_;
  std::uint64_t next_;
  Arena arena_;  // as weights lie in a session
  std::unique_ptr<model::ReadQueue> queue_;
};

Result<std::unique_ptr<model::WeightSource>> open_large_file(const std::string& file) {
  SLUICE_ASSIGN_OR_RETURN(auto source, model::open_weight_source(file));
  if (source->size() >= kLeastFileToRead) return source;
  return fail(make_error(ErrorCode::kInvalidArgument, file, "the rate of reading wants a larger file", kLeastFileToRead.count(),
                         source->size().count()));
}

}  // namespace

Status check_file_to_read(const std::string& file) {
  SLUICE_ASSIGN_OR_RETURN(const auto source, open_large_file(file));
  return {};
}

Result<std::vector<ReadRate>> measure_reads(const std::string& file) {
  SLUICE_ASSIGN_OR_RETURN(const auto source, open_large_file(file));
  std::vector<ReadRate> rates;
  for (const std::uint32_t depth : kDepths)
    for (const std::uint64_t piece : kPieces) rates.push_back({depth, piece, 0});
  std::uint64_t at = 0;
  for (int pass = 0; pass < kReadPasses; ++pass) {
    for (ReadRate& best : rates) {
      ReadStream stream(*source, best.piece_bytes, at);
      SLUICE_ASSIGN_OR_RETURN(const double rate, stream.rate(best.depth));
      at = stream.next();
      best.bytes_per_second = std::max(best.bytes_per_second, rate);
    }
  }
  smooth_rates(rates);
  return rates;
}

Result<std::uint32_t> measure_reads_at_once(const std::string& file, double start_seconds) {
  SLUICE_ASSIGN_OR_RETURN(const auto source, open_large_file(file));
  return ReadStream(*source, kPieceTogether, 0).at_once(kDepths.back(), start_seconds);
}

double measure_waking() {
  constexpr std::uint64_t kRounds = 300;
  constexpr timespec kPause{0, 200'000};  // long enough that the other thread sleeps, as a loader does between loads
  struct Pair {
    Lane there;
    Lane back;
  };
  Pair pair;
  NativeThread thread;
  const auto main = [](void* context) noexcept {
    Pair& p = *static_cast<Pair*>(context);
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      p.there.wait_for(round);
      p.back.advance();
    }
  };
  if (!thread.start("waking", kStackBytes, main, &pair)) return DeviceProfile().wake_seconds;
  std::vector<double> seconds;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    nanosleep(&kPause, nullptr);
    const Clock::time_point start = Clock::now();
    pair.there.advance();
    pair.back.wait_for(round);
    seconds.push_back(seconds_since(start) / 2);
  }
  thread.join();
  return middle_of(std::move(seconds));
}

namespace {

/// Runs `work` for as long as it may `go_on`, at least once; the mean of its runs, in seconds.
template <class GoOn>
double mean_seconds(void (*work)(void* context), void* context, const GoOn& go_on) {
  const Clock::time_point start = Clock::now();
  int runs = 0;
  do {
    work(context);
    ++runs;
  } while (go_on(start));
  return seconds_since(start) / runs;
}

/// Reads on a thread of its own while the caller does `beside(reader)`.
struct Reader {
  ReadStream stream;
  std::uint32_t depth;
  Result<double> rate = 0.0;
  std::atomic<bool> over{false};

  template <class Beside>
  Result<double> read(std::span<const int> cpus, const Beside& beside) {
    const auto main = [](void* self) noexcept {
      Reader& r = *static_cast<Reader*>(self);
      r.rate = r.stream.rate(r.depth);
      r.over = true;
    };
    over = false;
    NativeThread thread;
    SLUICE_RETURN_IF_ERROR(thread.start("read rate", 2 * kStackBytes, main, this, cpus));
    beside();
    thread.join();
    return rate;
  }
};

}  // namespace

Result<Together> measure_together(const Reading& reading, void (*work)(void* context), void* context) {
  SLUICE_ASSIGN_OR_RETURN(const auto source, model::open_weight_source(reading.file));
  Reader reader{ReadStream(*source, reading.piece_bytes, 0), reading.depth};
  std::vector<double> rates, times;
  for (int turn = 0; turn < kTurnsTogether; ++turn) {
    SLUICE_ASSIGN_OR_RETURN(const double rate_alone, reader.read(reading.cpus, [] {}));
    const double alone = mean_seconds(work, context, [](Clock::time_point start) { return seconds_since(start) < kSecondsEach / 2; });
    double beside = 0;
    SLUICE_ASSIGN_OR_RETURN(const double rate, reader.read(reading.cpus, [&] {
      beside = mean_seconds(work, context, [&](Clock::time_point) { return !reader.over; });
    }));
    rates.push_back(rate / rate_alone);
    times.push_back(beside / alone);
  }
  return Together{middle_of(std::move(rates)), middle_of(std::move(times))};
}

double measure_verifying(const std::string& file) {
  constexpr std::uint64_t kPiece = 512 << 10;
  constexpr std::uint64_t kBytes = 32 << 20;
  const model::AlignedBuffer buffer = model::AlignedBuffer::allocate(Bytes(kPiece));
  if (buffer.data() == nullptr) return DeviceProfile().verify_bytes_per_second;
  std::fill_n(buffer.data(), kPiece, std::byte{1});
  const auto source = file.empty() ? nullptr : model::open_weight_source(file).value_or(nullptr);
  double seconds = 0;
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < kBytes; at += kPiece) {
    if (source != nullptr && !source->read({Bytes(at), Bytes(kPiece)}, buffer.data())) break;
    const Clock::time_point start = Clock::now();
    sum ^= checksum(buffer.data(), kPiece);
    seconds += seconds_since(start);
  }
  // `sum` is used, so that the work is done.
  return seconds > 0 ? static_cast<double>(kBytes) / seconds + (sum == 1 ? 1 : 0) : DeviceProfile().verify_bytes_per_second;
}

}  // namespace sluice::profiler
