// How weights come from the model file into memory: the one reader behind the loader (plan's loads) and the step reader (a step's own).
//
//     push    piece  | reading | reading | reading |        several under way, at the device's rate (ReadOptions)
//     step      read, in any order -> in the order of the pushes: verify or decrypt -> expand -> publish
//               (ReadQueue)                               (Decoder, by a stretch's stored form)   (published() rises)
//
// A request is a run of adjacent stretches and the region that it is read into. It is read in pieces, so that stretches are decoded while
// they are in the cache and later pieces are under way; pieces end in any order and are decoded in order.
//
// Waits are counted in glances: the time for which the system was asked to wait, not the clock, so that a process that was stopped for a
// while does not take its own absence for the disk's. At each glance a wait looks whether it was called off (`Look`).
//
// Invariants: (R1) no request is published before all its stretches were decoded, and requests are published in the order of their pushes.
// (R2) The first error stays until `clear`; after it nothing is started, decoded or published. (R3) A read that was started has its region
// until it ends: `in_flight` counts them, and nothing forgets one. (R4) Nothing is allocated after `open`. Used by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "sluice/core/error.h"
#include "sluice/core/units.h"
#include "sluice/executor/decoder.h"
#include "sluice/executor/executor.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight.h"
#include "src/model/read_queue.h"

namespace sluice::executor {

inline constexpr std::uint64_t kPlanBlock = 4096;  // what the stretches of a plan begin on (Plan::block)

/// How often a wait looks whether it was called off, and how long a run that failed or was called off waits for reads under way before it
/// leaves them to the system: with a glance before it, below the 100 ms in which a cancellation ends a run.
inline constexpr std::int64_t kGlanceNs = 20'000'000;
inline constexpr std::int64_t kPatienceNs = 50'000'000;
/// How long a pause of the rate limit lasts at most before its caller may start more, where there is room: gates open meanwhile, and a device
/// would be told at once.
inline constexpr std::int64_t kPauseNs = 250'000;
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

/// What a wait finds when it looks up.
enum class Verdict : std::uint8_t { kGoOn, kLeave, kCallOff };

/// Looks up for those who wait for an earlier run's reads: whether the run that is to come was cancelled, or the patience is over.
class Successor {
 public:
  Successor(const Executor* next, std::int64_t patience_ns) noexcept : next_(next), left_ns_(patience_ns) {}
  Verdict operator()() noexcept {
    left_ns_ -= kGlanceNs;
    return left_ns_ <= 0 || (next_ != nullptr && next_->cancelled()) ? Verdict::kCallOff : Verdict::kGoOn;
  }

 private:
  const Executor* next_;
  std::int64_t left_ns_;
};

/// The time, so that tests need not wait for it.
struct ReadClock {
  std::int64_t (*now_ns)() noexcept;
  void (*sleep_ns)(std::int64_t ns) noexcept;
  static ReadClock system() noexcept;
};

struct ReadRequest {
  model::FileRange range;       // whole blocks; the end of the file may cut the last. Empty: nothing is read, and it is published in turn
  std::byte* stored = nullptr;  // where the first byte of `range` goes
  std::byte* raw = nullptr;     // where the first stretch's values go
  std::uint32_t first_stretch = 0;  // adjacent stretches inside `range`
  std::uint32_t stretch_count = 0;
  bool in_place = true;  // every stretch is used where it was read; else raw stretches lie back to back from `raw` on
};

/// Bytes of the region of stretches with `raw` bytes that lie in `range` of the file: as many as are read where they stay in place, else
/// the raw size rounded up and two blocks.
Bytes region_bytes(const model::FileRange& range, Bytes raw, bool in_place) noexcept;

/// Lays a run of stretches out in `region`, which is as long as `region_bytes` says.
ReadRequest lay_out(const model::Graph& graph, const model::FileRange& range, std::uint32_t first_stretch, std::uint32_t stretch_count,
                    std::byte* region) noexcept;

class ReadEngine {
 public:
  ReadEngine(const model::Graph& graph, const ReadOptions& options, ReadClock clock = ReadClock::system()) noexcept
      : graph_(graph), options_(options), clock_(clock) {}
  ReadEngine(const ReadEngine&) = delete;
  ReadEngine& operator=(const ReadEngine&) = delete;

  void open(std::unique_ptr<model::ReadQueue> reads, Decoders decoders) noexcept {
    reads_ = std::move(reads);
    decoders_ = std::move(decoders);
  }

  /// Whether `push` may come: all of the requests before is under way, and fewer reads than there may be.
  bool has_room() const noexcept { return status_.has_value() && !feeding_ && may_start(); }
  /// Begins to read a request. Precondition: `has_room`.
  void push(const ReadRequest& request) noexcept;
  /// Starts as many more pieces of what was pushed as may be under way.
  void fill() noexcept;

  /// Requests pushed, and those of them whose stretches are all in their places. They never fall.
  std::uint64_t pushed() const noexcept { return pushed_; }
  std::uint64_t published() const noexcept { return published_; }

  /// Takes one step with the front piece, of which there is one: waits until a read has ended, or pauses for the rate limit, or decodes what the
  /// read brought. Returns the first error; without one after `look` said kLeave too. Errors: those of the source and the decoders; kIo
  /// (ETIMEDOUT); kCancelled.
  template <class Look>
  Status step(const Look& look) noexcept;
  /// The first half of it: waits until a read has ended, of which one is under way, and leaves what it brought.
  template <class Look>
  Status await_read(const Look& look) noexcept;
  /// Pieces that are read or wait to be decoded.
  bool pending() const noexcept { return front_ != end_; }

  const Status& status() const noexcept { return status_; }
  /// Keeps `status` if it is the first error, and returns the one that is kept.
  Status give_up(const Status& status) noexcept;
  Status call_off() noexcept { return give_up(cancelled()); }

  int in_flight() const noexcept { return in_flight_; }
  /// Waits until no read is under way; their results are not used. False when that takes longer than `patience_ns`.
  bool settle(std::int64_t patience_ns) noexcept;
  /// Settles, then forgets what was pushed and the error. Where `look` calls it off or the time-out is over, nothing is forgotten. Errors:
  /// kCancelled, kIo (ETIMEDOUT).
  template <class Look>
  Status clear(Look look) noexcept;

  /// Forgets what was pushed, and the error. Precondition: no read is under way.
  void forget() noexcept;

  /// From now on it looks at the clock before and after each piece is decoded.
  void time_decoding() noexcept { times_decoding_ = true; }
  /// Spent in decoders since the last call; 0 without time_decoding.
  std::int64_t take_decode_ns() noexcept { return std::exchange(decode_ns_, 0); }

  /// Of the pieces decoded since the last call.
  Bytes take_bytes_read() noexcept { return std::exchange(bytes_read_, Bytes()); }

 private:
  struct Piece {
    model::FileRange range;
    std::uint32_t request = 0;  // index of its place
    std::int64_t due_ns = 0;    // when a device of the limited rate would have brought it; 0: at once
    bool arrived = false;
  };

  bool may_start() const noexcept { return in_flight_ < options_.in_flight && end_ - front_ < model::kReadSlots; }
  void start_piece() noexcept;
  bool take_ended(std::int64_t patience_ns) noexcept;
  std::int64_t pause_left(const Piece& piece) const noexcept { return piece.due_ns > 0 ? piece.due_ns - clock_.now_ns() : 0; }
  Status decode_front() noexcept;
  Status timed_decode(const ReadRequest& request, Bytes arrived) noexcept;
  Status decode_until(const ReadRequest& request, Bytes arrived) noexcept;
  std::int64_t timeout_ns() const noexcept;
  tl::unexpected<Error> cancelled() const noexcept;
  tl::unexpected<Error> timed_out(const char* reason) const noexcept;

  const model::Graph& graph_;
  const ReadOptions options_;
  const ReadClock clock_;
  Decoders decoders_;
  // Pieces [front_, end_) and the requests that they are of; the newest request is started up to fed_to_.
  std::array<Piece, model::kReadSlots> pieces_;
  std::array<ReadRequest, model::kReadSlots> requests_;
  std::uint32_t front_ = 0;
  std::uint32_t end_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t published_ = 0;
  bool feeding_ = false;
  Bytes fed_to_;
  // Of the front request: the next stretch, and where its values go.
  std::uint32_t next_stretch_ = 0;
  std::byte* next_raw_ = nullptr;
  int in_flight_ = 0;
  std::int64_t device_free_ns_ = 0;
  Bytes bytes_read_;
  bool times_decoding_ = false;
  std::int64_t decode_ns_ = 0;
  Status status_;
  std::unique_ptr<model::ReadQueue> reads_;  // last: its threads end before what they use
};

template <class Look>
Status ReadEngine::step(const Look& look) noexcept {
  if (!status_) return status_;
  const Piece& front = pieces_[front_ % model::kReadSlots];
  if (!front.arrived) return await_read(look);
  if (const std::int64_t left = pause_left(front); left > 0 && look() != Verdict::kCallOff) {
    clock_.sleep_ns(std::min(left, may_start() ? kPauseNs : kGlanceNs));
    return {};
  }
  return give_up(decode_front());
}

template <class Look>
Status ReadEngine::await_read(const Look& look) noexcept {
  for (std::int64_t waited_ns = 0; !take_ended(kGlanceNs);) {
    const Verdict verdict = look();
    if (verdict == Verdict::kCallOff) return call_off();
    if (verdict == Verdict::kLeave) return {};
    waited_ns += kGlanceNs;
    if (waited_ns >= timeout_ns()) return give_up(timed_out("a read of the model file does not end"));
  }
  return status_;
}

template <class Look>
Status ReadEngine::clear(Look look) noexcept {
  for (std::int64_t waited_ns = 0; !settle(kGlanceNs);) {
    if (look() == Verdict::kCallOff) return cancelled();
    waited_ns += kGlanceNs;
    if (waited_ns >= timeout_ns()) return timed_out("reads of an earlier run have not ended");
  }
  forget();
  return {};
}

}  // namespace sluice::executor
