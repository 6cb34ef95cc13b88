// What a job's units hand to each other: a region of memory for each live job, where a unit on a CPU processor makes its outputs and the
// next one, on the same processor or on another, finds them. Nothing is copied between the two (Session::place_output, place_input).
//
//     job in slot s --region_of--> [tensor|tail][tensor|tail]...     unit 0, cpu0, writes here;  unit 1, cpu1, reads here
//
// A run that was given up may still write, so it keeps the region, and its job goes on in another one with copies of what was done: the
// only copies there are. A run holds its region meanwhile; a worker can hang in one run at a time, so one spare region for each is enough.
//
// Invariants: (H1) a slot has one region, and no region has two slots; (H2) a region without a slot is free when nobody holds it; (H3) each
// tensor begins on 64 bytes and has 64 behind it that are nobody's, which kernels may read.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sluice/engine/engine.h"
#include "sluice/scheduler/state.h"
#include "src/core/out_of_memory.h"

namespace sluice::scheduler {

/// Zeros that begin on 64. Of large pieces only what somebody has touched is resident: of the regions of 64 live jobs the few that are used. The
/// first job in a region pays for its pages.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes = 0) : size_(static_cast<std::size_t>(align_up(bytes, kLine))) {
    if (size_ == 0) return;
    memory_.reset(std::calloc(size_ + kLine, 1));
    if (memory_ == nullptr) raise_out_of_memory();
  }
  AlignedBytes(const AlignedBytes& other) : AlignedBytes(other.size_) {
    if (size_ > 0) std::memcpy(begin(), other.begin(), size_);
  }
  AlignedBytes(AlignedBytes&& other) noexcept : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  AlignedBytes& operator=(AlignedBytes other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBytes() = default;

  std::span<std::byte> bytes() noexcept { return {begin(), size_}; }

 private:
  static constexpr std::size_t kLine = 64;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  std::byte* begin() const noexcept {
    if (memory_ == nullptr) return nullptr;
    return reinterpret_cast<std::byte*>(align_up(reinterpret_cast<std::uintptr_t>(memory_.get()), kLine));
  }

  std::unique_ptr<void, Free> memory_;
  std::size_t size_ = 0;
};

/// Bytes that a tensor takes of a region, with its tail.
inline std::size_t bytes_in_region(std::size_t tensor) noexcept {
  return static_cast<std::size_t>(align_up(tensor + kPortTail.count(), 64));
}

class HandOver {
 public:
  HandOver() = default;
  HandOver(std::size_t slots, std::size_t spare, std::size_t bytes) : regions_(slots + spare), of_slot_(slots) {
    for (Region& region : regions_) region.memory = AlignedBytes(bytes);
    for (std::size_t s = 0; s < slots; ++s) of_slot_[s] = s;
    free_.reserve(spare);
    for (std::size_t r = slots; r < slots + spare; ++r) free_.push_back(r);
  }

  std::size_t region_of(JobSlot slot) const noexcept { return of_slot_[slot.index()]; }
  std::span<std::byte> bytes(std::size_t region) noexcept { return regions_[region].memory.bytes(); }

  void hold(std::size_t region) noexcept { ++regions_[region].holders; }
  void let_go(std::size_t region) noexcept {
    Region& held = regions_[region];
    if (--held.holders == 0 && held.left) make_free(region);
  }

  /// The job goes on in another region; the run that holds this one keeps it. The region before.
  std::size_t leave(JobSlot slot) noexcept {
    SLUICE_CHECK(!free_.empty(), "a worker hangs in one run at a time");
    const std::size_t before = std::exchange(of_slot_[slot.index()], free_.back());
    free_.pop_back();
    regions_[before].left = true;
    if (regions_[before].holders == 0) make_free(before);
    return before;
  }

 private:
  struct Region {
    AlignedBytes memory;
    std::uint32_t holders = 0;  // runs
    bool left = false;          // no slot has it
  };
  void make_free(std::size_t region) noexcept {
    regions_[region].left = false;
    free_.push_back(region);
  }

  std::vector<Region> regions_;
  std::vector<std::size_t> of_slot_, free_;
};

}  // namespace sluice::scheduler
