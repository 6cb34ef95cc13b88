// Which processor serves the interrupts of a file's storage device.
//
// A device with one queue interrupts one processor for each read that ends. Whatever computes there is held up by every load; measured on
// two cores with a virtual disk, a convolution's steps took 15 to 25 % longer on that processor than on the other one. A loader that is
// bound to it keeps computing threads away: it runs there whenever reads end. A device with a queue for each processor answers where it was
// asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// The processor that has served at least nine tenths of the interrupts of the device that `file` lies on, counted since the system
/// started. nullopt: there is none (several queues, or too few interrupts yet), or the system does not say (no block device of its own, an
/// interrupt line that is not named after the device, as of SATA and USB, counts not published, more than 256 lines). Tests use `root` in
/// front of /sys.
std::optional<int> interrupted_by_reads(const std::string& file, const std::string& root = {});

/// The processors on which the loader of `file` best runs while `threads` threads compute on `compute_cpus` (empty: any): the small ones,
/// if the CPU has both kinds; else, if there are more processors than threads, the one that serves the file's interrupts, unless that one
/// is to compute. Names only processors that the calling thread may run on. Empty: any.
std::vector<int> processors_to_load_on(const std::string& file, int threads, const std::vector<int>& compute_cpus = {});

}  // namespace sluice
