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

/// How many reads the file's disk works at together, of eight: 1 where each ends before the next one has its first byte. `start_seconds`: what a
/// read takes before its first byte. Errors: those of measure_reads.
Result<std::uint32_t> measure_reads_at_once(const std::string& file, double start_seconds);

/// How long a thread takes to wake when another one advances the lane that it waits for: the median of many.
double measure_waking();

/// Reads and checks a file as a loader does, on a thread of its own, with requests of one size, so many at a time.
struct Reading {
  const std::string& file;
  std::uint64_t piece_bytes;
  std::uint32_t depth;
  std::span<const int> cpus;  // that its threads run on, where the system allows it; empty: anywhere
};
/// What one does to the other: reading while `work` runs again and again on the caller's thread, beside either alone, a few times in turn.
struct Together {
  double read_rate = 1;     // of the rate alone
  double work_seconds = 1;  // of the seconds alone, in the mean: what takes the processor away is rare and long
};
/// Medians. Errors: kIo, kOutOfMemory.
Result<Together> measure_together(const Reading& reading, void (*work)(void* context), void* context);

/// Bytes per second of checksums, of what was just read from the file (of what memory holds, without one).
double measure_verifying(const std::string& file);

}  // namespace sluice::profiler
