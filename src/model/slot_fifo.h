// Slots of a ReadQueue that wait for something, in order.
#pragma once

#include <array>
#include <cstdint>

#include "src/model/read_queue.h"

namespace sluice::model {

class SlotFifo {
 public:
  bool empty() const noexcept { return first_ == end_; }
  std::uint32_t size() const noexcept { return end_ - first_; }
  void push(int slot) noexcept { slots_[end_++ % kReadSlots] = slot; }
  int pop() noexcept { return slots_[first_++ % kReadSlots]; }

 private:
  std::array<int, kReadSlots> slots_{};
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;
};

}  // namespace sluice::model
