// The decisions of a policy: a list of bounded length, made once, so that deciding allocates nothing.
//
// kStart   run units [first, last) of a job on a processor: at once where it is idle, else after what waits for it there
// kDrop    the job's deadline can no longer hold: forget it; what of it runs is left to end
// kPreempt the processor gives up its unit at the next step boundary; the rest of that unit stays with this processor
// kExpect  when the job is expected to end; `kNever`: as things stand its deadline cannot hold, and who asked may know at once
#pragma once

#include <vector>

#include "sluice/scheduler/device.h"

namespace sluice::scheduler {

/// A place in the table of jobs (state.h). Places are used again; a ticket is what names a job for good.
using JobSlot = Id<struct JobSlotTag>;

struct Decision {
  enum class Kind : std::uint8_t { kStart, kDrop, kPreempt, kExpect };

  Kind kind = Kind::kStart;
  JobSlot job{};
  UnitIndex first = 0, last = 0;
  ProcessorId processor{};
  Time when = 0;  // kExpect

  static Decision start(JobSlot job, UnitIndex first, UnitIndex last, std::size_t processor) noexcept {
    return {Kind::kStart, job, first, last, ProcessorId(processor), 0};
  }
  static Decision drop(JobSlot job) noexcept { return {Kind::kDrop, job, 0, 0, {}, 0}; }
  static Decision preempt(std::size_t processor) noexcept { return {Kind::kPreempt, {}, 0, 0, ProcessorId(processor), 0}; }
  static Decision expect(JobSlot job, Time when) noexcept { return {Kind::kExpect, job, 0, 0, {}, when}; }
  friend bool operator==(const Decision&, const Decision&) noexcept = default;
};

class Decisions {
 public:
  explicit Decisions(std::size_t most) { list_.reserve(most); }
  void clear() noexcept { list_.clear(); }
  void add(const Decision& decision) noexcept {
    SLUICE_DCHECK(list_.size() < list_.capacity(), "the list has room for what the largest table of jobs can need");
    if (list_.size() < list_.capacity()) list_.push_back(decision);
  }
  std::span<const Decision> all() const noexcept { return list_; }

 private:
  std::vector<Decision> list_;
};

}  // namespace sluice::scheduler
