// The loads of a subgraph's plan, turn after turn, as the thread goes that runs the turns: it starts what may start whenever a step is over, and
// waits where a step needs a load. Reads go on beside its steps; what they bring is decoded when it waits, or finds it done.
//
//     turn 0      every load of the plan            what is resident stays for the turns that follow
//     turn 1 ...  those that stream                 gates below 0 lie in the turn before: the first loads of a turn that may not come
//
// Reading, decoding and checking are the engine's that the loader has too (read_engine.h).
//
// Invariants: between `begin` and `end` only is anything read, unless `end` lost patience with a read that does not end: then nothing is
// begun before it has (`ready`). A load starts when its gate is open, in order. The first error stays until `end` returns it. Used by the
// compute thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/executor/executor.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "sluice/plan/plan.h"
#include "src/executor/bound_guards.h"
#include "src/executor/pass.h"
#include "src/executor/read_engine.h"

namespace sluice::executor {

class TurnLoader {
 public:
  TurnLoader(const model::Graph& graph, model::WeightSource& source, const ReadOptions& options, MakeDecoders make,
             const std::atomic<bool>& cancelled) noexcept
      : graph_(graph), source_(source), options_(options), make_decoders_(make), cancelled_(cancelled), engine_(graph, options) {}
  TurnLoader(const TurnLoader&) = delete;
  TurnLoader& operator=(const TurnLoader&) = delete;
  ~TurnLoader() { engine_.settle(kForever); }  // nobody may have the arena while the system still writes to it

  /// Errors: kOutOfMemory; kUnsupported where ReadMethod::kRing is refused.
  Status start(std::span<const int> cpus, const model::FileKey* key) noexcept;
  /// Waits for reads that an earlier step has left behind. Errors: kIo (ETIMEDOUT); kCancelled when this run is called off meanwhile.
  Status ready() noexcept {
    return engine_.clear([this] { return look(); });
  }
  /// The same before another executor uses the arena; kCancelled when `next` (if there is one) is called off, or after `patience_ns`.
  Status drain(const Executor* next, std::int64_t patience_ns = kForever) noexcept { return engine_.clear(Successor(next, patience_ns)); }

  /// The first turn of a plan whose arena begins at `arena`; `stretches`: by stretch of its graph, the number in the file's.
  void begin(const plan::Plan& plan, std::span<const std::uint32_t> stretches, const BoundGuards& guards, std::byte* arena) noexcept;
  void next_turn() noexcept;
  /// Waits until so many loads of the turn have ended, counted by pass. False: one could not be read.
  bool await(const std::array<std::uint32_t, kPasses.size()>& loads) noexcept;
  /// A step of the turn is over.
  void step_over() noexcept;
  /// Waits for what is under way.
  Status end() noexcept;

  Bytes take_bytes_read() noexcept { return engine_.take_bytes_read(); }
  /// Waiting for reads and decoding, since the last call of take_busy_ns.
  std::int64_t busy_ns() const noexcept { return busy_ns_; }
  std::int64_t take_busy_ns() noexcept;

 private:
  Verdict look() const noexcept { return cancelled_.load(std::memory_order_relaxed) ? Verdict::kCallOff : Verdict::kGoOn; }
  bool runs(std::uint64_t turn, std::size_t load) const noexcept { return turn == 0 || plan_->loads[load].streamed(); }
  void skip_to_next() noexcept;
  bool may_start() const noexcept;
  void fill() noexcept;

  const model::Graph& graph_;
  model::WeightSource& source_;
  const ReadOptions options_;
  const MakeDecoders make_decoders_;
  const std::atomic<bool>& cancelled_;
  ReadEngine engine_;
  const plan::Plan* plan_ = nullptr;
  std::span<const std::uint32_t> stretches_;
  const BoundGuards* guards_ = nullptr;
  std::byte* arena_ = nullptr;
  std::uint64_t turn_ = 0;        // under way
  std::uint64_t steps_done_ = 0;  // of the turn
  std::uint64_t base_ = 0;        // the engine's count of requests when the loads of the turn under way began
  std::uint64_t next_turn_ = 0;   // of the load that is to start next, and its number
  std::size_t next_load_ = 0;
  std::uint64_t streamed_ = 0;  // loads of each turn but the first
  std::int64_t busy_ns_ = 0;
};

}  // namespace sluice::executor
