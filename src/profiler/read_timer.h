// How fast a file gives its bytes, by size of piece and pieces in flight, read as models are read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/core/error.h"
#include "sluice/profiler/device_profile.h"

namespace sluice::profiler {

/// Errors: kIo; kInvalidArgument for a file of less than kLeastFileToRead.
Status check_file_to_read(const std::string& file);

/// By depth, then size; read and checked as a loader does, twice, of which the better counts. Reads at most the first 256 MiB of the file
/// for each. Errors: kOutOfMemory; those of check_file_to_read.
Result<std::vector<ReadRate>> measure_reads(const std::string& file);

/// How long a thread takes to wake when another one advances the lane that it waits for: the median of many.
double measure_waking();

/// Reads and checks a file as a loader does, on a thread of its own, with requests of one size, so many at a time.
struct Reading {
  const std::string& file;
  std::uint64_t piece_bytes;
  std::uint32_t depth;
  std::span<const int> cpus;  // that its threads run on, where the system allows it; empty: anywhere
};
/// Reads while `work` runs again and again on the caller's.
struct Together {
  double bytes_per_second = 0;
  double work_seconds = 0;  // the median of its runs
};
/// Errors: kIo, kOutOfMemory.
Result<Together> measure_together(const Reading& reading, double (*work)(void* context), void* context);

/// Bytes per second of checksums, of what was just read from the file (of what memory holds, without one).
double measure_verifying(const std::string& file);

}  // namespace sluice::profiler
