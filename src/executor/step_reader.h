// Reads the weights that a step wants again and again while it runs (ADR 0013): the loads of a nested plan, in the step's workspace.
//
//     workspace   | of the kernel | slot 0: what the kernel works with | slot 1: what it says it will want next |
//
// A window that has room for one piece only is one slot; then nothing is read ahead. What lies in a slot already is not read again, so a
// body with one weight that fits reads it once. Reads are whole blocks and their stretches are verified, like a load's.
//
// Invariants: reads are under way between `begin` and `end` only, unless `end` lost patience with one that does not end: then nothing is
// begun before it has (`ready`). The first error stays until `end` returns it; after it `take` gives no data. Used by the compute thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "sluice/core/error.h"
#include "sluice/executor/executor.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "src/model/read_queue.h"

namespace sluice::executor {

class StepReader final : public kernels::WeightReader {
 public:
  StepReader(const model::Graph& graph, model::WeightSource& source, const ReadOptions& options,
             const std::atomic<bool>& cancelled) noexcept
      : graph_(graph), source_(source), options_(options), cancelled_(cancelled) {}
  StepReader(const StepReader&) = delete;
  StepReader& operator=(const StepReader&) = delete;
  ~StepReader();

  /// Errors: kOutOfMemory; kUnsupported where ReadMethod::kRing is refused.
  Status start(std::span<const int> cpus) noexcept;
  /// Waits for reads that an earlier step has left behind. Errors: kIo (ETIMEDOUT); kCancelled when this run is called off meanwhile.
  Status ready() noexcept;
  /// The same before another executor uses the arena; kCancelled when `next` (if there is one) is called off.
  Status drain(const Executor* next) noexcept;

  /// A step's weights, those without data being its own to read, and the bytes that it may read into.
  void begin(std::span<const WeightId> weights, std::span<const kernels::WeightOperand> operands, std::span<std::byte> window) noexcept;
  /// Waits for what is under way, and forgets the slots.
  Status end() noexcept;

  kernels::WeightPiece take(std::size_t weight, std::int64_t first_panel) noexcept override;
  void expect(std::size_t weight, std::int64_t first_panel) noexcept override;

  /// Since the last call.
  Bytes take_bytes_read() noexcept;
  /// Waiting for reads and checking them, since the last call of take_busy_ns.
  std::int64_t busy_ns() const noexcept { return busy_ns_; }
  std::int64_t take_busy_ns() noexcept;

 private:
  std::int64_t timeout_ns() const noexcept;
  template <class CalledOff>
  Status wait_for_leftovers(const CalledOff& called_off) noexcept;

  enum class State : std::uint8_t { kEmpty, kReading, kArrived, kReady };
  struct Slot {
    State state = State::kEmpty;
    std::byte* at = nullptr;
    std::size_t weight = 0;
    PanelRange panels;
    std::uint32_t first_stretch = 0, stretch_count = 0;
    model::FileRange range;
    std::int64_t due_ns = 0;
  };

  bool holds(const Slot& slot, std::size_t weight, std::int64_t first_panel) const noexcept {
    return slot.state != State::kEmpty && slot.weight == weight && slot.panels.begin == first_panel;
  }
  /// False: not even the least piece fits.
  bool choose(std::size_t weight, std::int64_t first_panel, Slot& slot) const noexcept;
  Status start_read(std::size_t index, std::size_t weight, std::int64_t first_panel) noexcept;
  Status await(std::size_t index) noexcept;
  Status check(const Slot& slot) const noexcept;
  bool wait_for_one(std::int64_t patience_ns) noexcept;

  const model::Graph& graph_;
  model::WeightSource& source_;
  const ReadOptions options_;
  const std::atomic<bool>& cancelled_;
  std::unique_ptr<model::ReadQueue> reads_;
  std::span<const WeightId> weights_;
  std::array<Slot, 2> slots_;
  std::size_t slot_count_ = 1, current_ = 0;
  std::uint64_t slot_bytes_ = 0;
  int in_flight_ = 0;
  Status status_;  // the first error
  std::int64_t device_free_ns_ = 0;
  Bytes bytes_read_;
  std::int64_t busy_ns_ = 0;
};

}  // namespace sluice::executor
