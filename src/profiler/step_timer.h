// Runs steps on memory of their own, and says how long each takes: in turn, as a net runs them (time_in_turn), or one again and again.
//
//     ring       | weights of step 0 | of step 1 | of step 2 | ...   round and round in as many bytes as the run has that is emulated: a
//                                                                    step's weights were last used when all others had been used since
//     arena      | one side | other side | workspace |               a step reads what the one before it has just written
//
// Steps that are repeated by themselves find their code, weights, inputs and outputs in the nearest caches, and branches foretold: nets of
// half a millisecond then come out half as long, or large ones a quarter longer where weights are made to come from memory.
//
// A machine that others share is slower by half for minutes. So an anchor, always the same step, is timed before and after every 50 ms of
// runs, and times are also expressed in its units: a slowdown of both cancels out.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/core/arena.h"
#include "sluice/core/error.h"
#include "sluice/core/threads.h"
#include "sluice/kernels/kernel.h"
#include "sluice/profiler/device_profile.h"
#include "sluice/profiler/net_type.h"
#include "src/profiler/read_timer.h"

namespace sluice::profiler {

struct TimedStep {
  kernels::StepExtent extent;  // the part that was run: channels are cut if the whole weight is larger than the ring
  double seconds = 0;
  double anchors = 0;  // seconds over those of the anchor; plain seconds without an anchor
  // In a round: what is touched between two uses of the same weights, and what passes through shared caches (StepWork).
  std::uint64_t run_bytes = 0, shared_bytes = 0;
};

class StepTimer {
 public:
  /// A quarter of `memory` is for the ring of weights, if that is more than 96 MiB and until it is 384. Errors: kOutOfMemory.
  static Result<StepTimer> create(int threads, Bytes memory = Bytes());
  static constexpr std::uint64_t kLeastRing = 96 << 20;
  /// Bytes that a round's run can touch.
  std::uint64_t most_run_bytes() const noexcept;
  StepTimer(StepTimer&&) noexcept;
  StepTimer& operator=(StepTimer&&) noexcept;
  ~StepTimer();

  /// What to run: the first rows of a node and its first `share` of channels (all of them, where the kernel does not slice).
  struct Request {
    const model::Graph& graph;
    const model::Node& node;
    const kernels::KernelDescriptor& kernel;
    KernelUse use = KernelUse::kRun;
    double share = 1;
    double share_of_rows = 1;
  };
  /// Makes the ring's bytes weights as nets of this type have them, whose sums are of usual size; from `create` on they are floats. Of other
  /// bytes, scales were so large that functions of the sums met what processors take long for, and steps took ten times as long.
  void fill_weights(NetType type) noexcept;
  /// What others bring into shared caches in a second, from now on and for `shared_bytes`; takes some seconds.
  double watch_others();
  /// Makes a step the anchor. The objects that the request refers to must outlive the timer. Errors: kOutOfMemory.
  Status set_anchor(const Request& request);
  /// Seconds of an anchor now, the minimum of a few runs; 1 without an anchor.
  double time_anchor();
  /// The mean of the times without the longest tenth. Nothing when the weights are larger than the ring however they are
  /// cut. Errors: kOutOfMemory.
  Result<std::optional<TimedStep>> time(const Request& request);

  /// Steps that follow one another as those of a net do, again and again, in a run that touches so many bytes.
  struct Turn {
    std::vector<Request> steps;
    std::uint64_t run_bytes = 0;
  };
  /// Runs for about so many seconds, but a few passes at least, and gives each step's median time; nothing for a step whose weights are larger
  /// than the ring. What a run touches may have to be more than was asked for, and is less for steps that the round's larger ones are not
  /// among between two uses of their weights. Errors: kOutOfMemory.
  using TimedTurn = std::vector<std::optional<TimedStep>>;
  Result<TimedTurn> time_in_turn(const Turn& turn, double seconds);

  /// Times the same step while a file is being read. Errors: those of both.
  Result<Together> time_beside_reads(const Request& request, const Reading& reading);
  /// What it costs to share a call among the threads: the median time of one whose tasks do nothing but write where another thread wrote
  /// in the call before. 0 of one thread.
  double time_sharing() noexcept;

  /// The part of the node that `request` means.
  kernels::StepExtent extent_of(const Request& request) const;

 private:
  struct Call;
  struct Anchor;
  class TurnRun;
  /// The offset of the next weights: they go round and round in the first `end` bytes of the ring.
  struct RingPlace {
    std::uint64_t at = 0;
    std::uint64_t end = kLeastRing;
  };
  /// Asking for the processor's time takes a part of a microsecond, and some of the caches.
  enum class Clocks { kBoth, kWall };

  StepTimer() noexcept;
  Status place(Call& call, Arena& arena);
  Status make_room(Arena& arena, std::uint64_t bytes);
  void place_weights(Call& call, RingPlace& place);
  /// `next`: the weights that the step behind it will read, as a plan announces them.
  double run_once(Call& call, RingPlace& weights, Clocks clocks = Clocks::kBoth, std::span<const std::byte> next = {});

  std::unique_ptr<ThreadPool> pool_;
  double others_bytes_per_second_ = 0;
  Arena ring_;
  Arena arena_;
  std::unique_ptr<Anchor> anchor_;
  double least_anchor_ = std::numeric_limits<double>::infinity();  // seconds, so far
  double waiting_left_ = 3;  // seconds that anchors may wait in all: a machine that has become slower stays so
};

}  // namespace sluice::profiler
