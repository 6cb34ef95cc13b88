// Reads the parts of a table that a lookup's step asks for while it runs (ADR 0015), into the step's workspace.
//
//     workspace   | of the kernel | slot 0: what the kernel works with | slot 1: what it says it will want next |
//
// A window that has room for one piece only is one slot; then nothing is read ahead. What lies in a slot already is not read again. A slot's
// piece is one read of whole blocks, and one request of the engine that the loader uses too (read_engine.h): its stretches are decoded like
// a load's.
//
// Invariants: one read is under way at a time, between `begin` and `end` only, unless `end` lost patience with one that does not end: then
// nothing is begun before it has (`ready`). The first error stays until `end` returns it; after it `take` gives no data. Used by the
// compute thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/core/error.h"
#include "sluice/executor/executor.h"
#include "sluice/kernels/kernel.h"
#include "sluice/model/graph.h"
#include "sluice/model/weight_source.h"
#include "src/executor/read_engine.h"

namespace sluice::executor {

class StepReader final : public kernels::WeightReader {
 public:
  StepReader(const model::Graph& graph, model::WeightSource& source, const ReadOptions& options, MakeDecoders make,
             const std::atomic<bool>& cancelled) noexcept;
  StepReader(const StepReader&) = delete;
  StepReader& operator=(const StepReader&) = delete;
  ~StepReader();

  /// Errors: kOutOfMemory; kUnsupported where ReadMethod::kRing is refused.
  Status start(std::span<const int> cpus, const model::FileKey* key = nullptr) noexcept;
  /// Waits for reads that an earlier step has left behind. Errors: kIo (ETIMEDOUT); kCancelled when this run is called off meanwhile.
  Status ready() noexcept;
  /// The same before another executor uses the arena; kCancelled when `next` (if there is one) is called off, or after `patience_ns`.
  Status drain(const Executor* next, std::int64_t patience_ns = kForever) noexcept { return engine_.clear(Successor(next, patience_ns)); }

  /// A step's weights, those without data being its own to read, and the bytes that it may read into.
  void begin(std::span<const WeightId> weights, std::span<const kernels::WeightOperand> operands, std::span<std::byte> window) noexcept;
  /// Waits for what is under way, and forgets the slots.
  Status end() noexcept;

  kernels::WeightPiece take(std::size_t weight, std::int64_t first_panel) noexcept override;
  void expect(std::size_t weight, std::int64_t first_panel) noexcept override;

  /// Since the last call.
  Bytes take_bytes_read() noexcept { return engine_.take_bytes_read(); }
  /// Waiting for reads and checking them, since the last call of take_busy_ns.
  std::int64_t busy_ns() const noexcept { return busy_ns_; }
  std::int64_t take_busy_ns() noexcept;

 private:
  struct Slot {
    std::byte* at = nullptr;
    bool used = false;  // the rest says for what
    std::size_t weight = 0;
    PanelRange panels;
    std::uint64_t turn = 0;  // the engine has published so many requests when this one's values are there
    const std::byte* values = nullptr;
  };

  bool holds(const Slot& slot, std::size_t weight, std::int64_t first_panel) const noexcept {
    return slot.used && slot.weight == weight && slot.panels.begin == first_panel;
  }
  bool arriving(const Slot& slot) const noexcept { return slot.used && engine_.published() < slot.turn; }
  Verdict look() const noexcept { return cancelled_.load(std::memory_order_relaxed) ? Verdict::kCallOff : Verdict::kGoOn; }
  /// Nothing: not even the least piece fits.
  std::optional<ReadRequest> choose(std::size_t weight, std::int64_t first_panel, Slot& slot) const noexcept;
  Status start_read(Slot& slot, std::size_t weight, std::int64_t first_panel) noexcept;
  Status await(const Slot& slot) noexcept;

  const model::Graph& graph_;
  model::WeightSource& source_;
  const ReadOptions options_;
  const MakeDecoders make_decoders_;
  const std::atomic<bool>& cancelled_;
  ReadEngine engine_;
  std::span<const WeightId> weights_;
  std::array<Slot, 2> slots_;
  std::size_t slot_count_ = 1, current_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::int64_t patience_ns_ = kPatienceNs;  // with reads that a failed step leaves
  std::int64_t busy_ns_ = 0;
};

}  // namespace sluice::executor
