// A budget that follows the machine: `--budget auto`.
//
//     read_memory_outlook() --> MemoryOutlook --> first_budget() at the beginning, changed_budget() between runs --> Session::set_budget
//
// What is free is the least of what the system calls available and what each memory cgroup above this process leaves. A process takes four
// fifths of it. It gives way at once when that shrinks or others stall for memory, and grows only into room that is plainly there: a
// budget that swings would cost more loads than it saves.
#pragma once

#include <optional>
#include <string>

#include "sluice/core/units.h"

namespace sluice {

struct MemoryOutlook {
  Bytes resident;                        // of this process
  Bytes available;                       // to this process in addition to what it holds: without swapping, within its cgroups
  Bytes cgroup_limit = kUnlimitedBytes;  // the least of its cgroups
  double pressure = 0;                   // share of the last ten seconds in which some task waited for memory (PSI), 0 to 1
};

/// Reads /proc and /sys below `root` (tests have their own). What is missing counts as no limit and no pressure; where there is
/// no memory for reading, nothing is available.
MemoryOutlook read_memory_outlook(const std::string& root = {});

/// A budget of process scope. It never exceeds a cgroup's limit less 4 MiB, which are for what the kernel charges the group besides the
/// process.
Bytes first_budget(const MemoryOutlook& outlook) noexcept;

/// The budget to change to from `current`, or none if the change would not be worth its loads.
std::optional<Bytes> changed_budget(const MemoryOutlook& outlook, Bytes current) noexcept;

}  // namespace sluice
