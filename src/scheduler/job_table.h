// What the scheduler knows of a job beside its state on the board: its tensors, who is told, how it ended.
//
//     free --submit--> live, has a slot of the board --leaves the board--> ended --wait, or `done` was called--> free
//
// Invariant (J1): a record is found by its ticket, which holds its place and a count that is never used again; a ticket of a job that is
// gone finds nothing.
#pragma once

#include <vector>

#include "src/scheduler/fleet.h"

namespace sluice::scheduler {

struct JobRecord {
  enum class Phase : std::uint8_t { kFree, kLive, kEnded };

  Phase phase = Phase::kFree;
  bool cancelled = false;          // was asked to be
  std::uint64_t board_ticket = 0;  // on the board
  JobSlot slot{};                  // while live
  JobResult result;
  JobOptions options;
  std::vector<std::span<const std::byte>> inputs;  // room for any model's ports
  std::vector<std::span<std::byte>> outputs;
  std::size_t input_count = 0, output_count = 0;
};

class JobTable {
 public:
  static constexpr std::uint64_t kPlaces = 1 << 16;

  JobTable() = default;
  JobTable(std::size_t records, std::size_t most_inputs, std::size_t most_outputs) : records_(records) {
    for (JobRecord& record : records_) {
      record.inputs.resize(most_inputs);
      record.outputs.resize(most_outputs);
    }
  }

  /// A free record with a ticket of its own; nullptr where the table is full.
  JobRecord* take() noexcept {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      JobRecord& record = records_[(next_ + i) % records_.size()];
      if (record.phase != JobRecord::Phase::kFree) continue;
      next_ = (next_ + i + 1) % records_.size();
      record.phase = JobRecord::Phase::kLive;
      record.cancelled = false;
      record.result = {};
      record.result.ticket = ++count_ * kPlaces + static_cast<std::uint64_t>(&record - records_.data());
      return &record;
    }
    return nullptr;
  }

  JobRecord* find(Ticket ticket) noexcept {
    const std::uint64_t place = ticket % kPlaces;
    if (place >= records_.size()) return nullptr;
    JobRecord& record = records_[place];
    return record.phase != JobRecord::Phase::kFree && record.result.ticket == ticket ? &record : nullptr;
  }
  JobRecord* find_on_board(std::uint64_t board_ticket) noexcept {
    for (JobRecord& record : records_)
      if (record.phase == JobRecord::Phase::kLive && record.board_ticket == board_ticket) return &record;
    return nullptr;
  }
  /// Ended, and its `done` is still to be called.
  JobRecord* next_to_tell() noexcept {
    for (JobRecord& record : records_)
      if (record.phase == JobRecord::Phase::kEnded && record.options.done != nullptr) return &record;
    return nullptr;
  }

 private:
  std::vector<JobRecord> records_;
  std::size_t next_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace sluice::scheduler
