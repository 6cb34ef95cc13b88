// When one processor is taken, in a plan that is being made: busy intervals in rising order, neighbours melted together, so that what is
// looked through is gaps and nothing else.
//
//     now     busy         gap          busy            free for ever
//      |######[a,b)......................[c,d)...........>
#pragma once

#include <vector>

#include "sluice/scheduler/device.h"

namespace sluice::scheduler {

class Timetable {
 public:
  struct Busy {
    Time begin = 0, end = 0;
  };

  void reserve(std::size_t most) { busy_.reserve(most + 1); }
  /// Taken until `free_from`, free afterwards.
  void reset(Time free_from) noexcept {
    busy_.clear();
    busy_.push_back({0, free_from});
  }

  /// The first moment >= `ready` at which `duration` fits. `cursor` may keep its place from one call to the next while `ready` rises.
  Time fit(Time ready, Time duration, std::size_t& cursor) const noexcept {
    while (cursor < busy_.size() && busy_[cursor].end <= ready) ++cursor;
    Time at = ready;
    for (std::size_t i = cursor; i < busy_.size(); ++i) {
      if (at + duration <= busy_[i].begin) return at;
      at = std::max(at, busy_[i].end);
    }
    return at;
  }

  /// [begin, end) is free and becomes taken. An interval that melts with no neighbour and finds no room is not possible: each one that is
  /// added is a unit of a job, and there is room for all of them.
  void take(Time begin, Time end) noexcept {
    std::size_t at = busy_.size();
    while (at > 0 && busy_[at - 1].begin > begin) --at;
    const bool joins_left = at > 0 && busy_[at - 1].end == begin;
    const bool joins_right = at < busy_.size() && busy_[at].begin == end;
    if (joins_left && joins_right) {
      busy_[at - 1].end = busy_[at].end;
      busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (joins_left) {
      busy_[at - 1].end = end;
    } else if (joins_right) {
      busy_[at].begin = begin;
    } else {
      SLUICE_DCHECK(busy_.size() < busy_.capacity(), "there is room for one interval a unit");
      busy_.insert(busy_.begin() + static_cast<std::ptrdiff_t>(at), {begin, end});
    }
  }

  std::span<const Busy> busy() const noexcept { return busy_; }

 private:
  std::vector<Busy> busy_;
};

}  // namespace sluice::scheduler
